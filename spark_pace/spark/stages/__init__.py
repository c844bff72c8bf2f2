"""What runs in Spark's tasks, and the end of each batch: the hosts of the core's steps."""
