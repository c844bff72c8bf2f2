"""The pattern of a rule: a file for each part of it, and `pattern.py`, which puts them together."""
