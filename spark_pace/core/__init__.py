"""The engine: events, selections and matches as pure functions on columns. No Spark, no YAML, no clock."""
