"""Parses lines of text, and values in text, into columns of declared types."""
