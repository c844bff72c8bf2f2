"""Spark moves rows and state; it takes no decision about a pattern."""
