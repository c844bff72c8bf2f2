"""What batches of windows on one instance cost, and how long queues become: models and their simulations."""
