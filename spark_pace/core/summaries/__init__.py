"""What many values come to: exact sums, how they are distributed, sketches of their sets."""
