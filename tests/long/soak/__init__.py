"""A job under load for long: nothing may be lost, and no memory may grow.

The load driver of `spark-pace bench` sends, stops the job and compares; here is what it is told to send, what
is looked at meanwhile, and how that is judged.
"""
