"""The fourth step, the operators: find the matches of a lane and compute their fields."""
