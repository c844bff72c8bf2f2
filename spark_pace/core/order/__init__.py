"""The second step: holds events back until the frontier has passed them, and puts them in stream order."""
