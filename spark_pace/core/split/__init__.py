"""The third step, the splitter: number events, decide where selections open and close, and cut lanes."""
