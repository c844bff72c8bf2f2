"""The hosts of the core's steps: in Spark's tasks, and on the driver at the end of each batch."""
