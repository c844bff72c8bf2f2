"""What a run of the driver has measured: seen while it runs, computed and shown after it."""
