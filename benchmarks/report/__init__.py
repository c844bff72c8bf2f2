"""What becomes of the rows of measurements: a table, JSON, plots, a fitted model, and the page of figures."""
