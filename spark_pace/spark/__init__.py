"""Runs the core on Spark, which moves rows and state and decides nothing about patterns."""
