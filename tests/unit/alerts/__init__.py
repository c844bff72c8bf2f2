"""Alerts: what is read, sent and kept. No Spark."""
