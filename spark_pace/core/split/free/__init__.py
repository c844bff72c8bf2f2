"""Consumption *zero*: every initiator opens a selection, and no match uses up its events."""
