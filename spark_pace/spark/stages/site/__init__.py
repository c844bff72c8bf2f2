"""A folder for PYTHONPATH, whose `sitecustomize` Spark's Python processes run when they start."""
