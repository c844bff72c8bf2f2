"""Java under Spark: the jars it needs, how it is started, and its process."""
