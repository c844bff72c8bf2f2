"""Sends new rows of a job's tables to places where somebody hears of them."""
