"""What numba compiles. Its modules are imported only where they are run: numba loads in half a second."""
