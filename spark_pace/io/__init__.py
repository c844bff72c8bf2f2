"""Reads files of events, reads and writes Delta tables. Nothing here knows patterns."""
