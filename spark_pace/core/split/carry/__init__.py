"""The carry, which a unit keeps from batch to batch by key. A batch reads and writes only keys it touches."""
