"""What the driver sends, when, and where to."""
