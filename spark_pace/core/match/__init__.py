"""Matching: what a pattern finds in a stream, by its window, its conditions and its parameter context."""
