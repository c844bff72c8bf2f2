"""What a search for candidates goes by: anchors, comparisons as integers, groups and what forbids."""
