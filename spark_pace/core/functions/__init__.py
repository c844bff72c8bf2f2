"""What the Python functions of rules are given, how they are called, and what they return."""
