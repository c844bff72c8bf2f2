"""Random inputs against every reader of what others wrote: rule and job files, expressions, records, state."""
