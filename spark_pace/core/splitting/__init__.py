"""The splitter's decisions, one file for each way of taking them."""
