"""Calls the Python functions of rules, and checks and converts what they return."""
