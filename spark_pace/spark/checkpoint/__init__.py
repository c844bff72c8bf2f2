"""The files of a checkpoint: names, reading and writing, locks, and checks that they are whole and fit."""
