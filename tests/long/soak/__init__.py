"""A job under load for long: nothing may be lost, and no memory may grow."""
