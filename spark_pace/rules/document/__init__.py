"""A YAML document with the place of every value, its sections, and the report of what is wrong with it."""
