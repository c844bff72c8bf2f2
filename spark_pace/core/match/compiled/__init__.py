"""What runs as machine code (`spark_pace.machine_code`). None of its modules imports numba."""
