"""The engine: pure functions on columns of events, selections and matches. No Spark, no YAML, no clock."""
