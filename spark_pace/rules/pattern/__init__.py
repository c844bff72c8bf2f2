"""Reads the pattern of a rule: a module for each part of it, and `pattern.py`, which puts them together."""
