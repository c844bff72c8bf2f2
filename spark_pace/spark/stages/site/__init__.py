"""A folder for PYTHONPATH: what Spark's Python processes do as they start."""
