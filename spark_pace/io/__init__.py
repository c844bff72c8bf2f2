"""Readers and writers of files of events and of Delta tables; nothing here knows of patterns."""
