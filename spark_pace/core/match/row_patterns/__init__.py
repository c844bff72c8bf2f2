"""Row patterns over a sorted table of Arrow: matches are searched, and measures are computed on columns."""
