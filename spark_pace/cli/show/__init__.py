"""The layout of what the commands show."""
