"""What a search for candidates works with: anchors, comparisons as integers, groups, forbidding events."""
