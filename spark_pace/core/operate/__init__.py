"""The fourth step, the operators: finds the matches of a lane and computes their fields."""
