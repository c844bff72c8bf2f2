"""The third step, the splitter: it numbers events, decides where selections begin and end, cuts lanes."""
