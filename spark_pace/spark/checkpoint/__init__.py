"""The files of a checkpoint: who may write them, whether they are whole, and which rules they belong to."""
