"""Comparisons of two components as comparisons of two integers, and a compiled search over them."""
