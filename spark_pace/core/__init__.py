"""The engine without an engine: events, selections and matches on columns. No Spark, no YAML, no clock."""
