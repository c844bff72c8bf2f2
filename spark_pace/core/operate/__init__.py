"""The fourth step, an operator instance: find the matches of a lane and compute their fields."""
