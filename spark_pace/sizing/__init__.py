"""How many instances a job needs, and what batches of windows on one instance cost: models, no engine."""
