"""The files of a checkpoint: their names, who may write them, and whether they are whole and fit rules."""
