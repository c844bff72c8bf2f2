"""What a pattern finds in a stream: windows, candidates, and one kernel for each parameter context."""
