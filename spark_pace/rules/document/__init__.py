"""Reads YAML documents with the place of every value, and collects what is wrong with them."""
