"""A job that is killed again and again, and what must be left of that at the end: nothing."""
