"""How what the commands show is laid out."""
