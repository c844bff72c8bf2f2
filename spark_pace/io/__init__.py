"""Readers and writers: files of events, Delta tables. Options are checked; no logic of patterns."""
