"""Java below Spark: its jars, the start of the JVM, and the JVM's process."""
