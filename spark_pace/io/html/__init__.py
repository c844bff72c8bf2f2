"""Makes HTML of matches, for notebooks and browsers."""
