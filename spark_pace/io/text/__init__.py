"""Lines of text, and values in text, as columns of declared types."""
