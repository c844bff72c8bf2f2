"""The second step: hold events back until the frontier has passed them, then put them into stream order."""
