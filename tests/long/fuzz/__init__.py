"""Random inputs for every reader of what others wrote: rule and job files, expressions, records, state."""
