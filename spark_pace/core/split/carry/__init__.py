"""What a unit keeps from batch to batch, by key: only the keys that a batch touches are read or written."""
