"""SQL with ``MATCH_RECOGNIZE``: its words, its clauses, and what they mean over the columns of an input."""
