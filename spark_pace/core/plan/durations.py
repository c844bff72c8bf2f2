"""Lengths of time as people write and read them: ``30 min``, ``500 ms``, ``1000 events``."""

from __future__ import annotations

from spark_pace.core.expr.canonical import canonical_duration
from spark_pace.core.plan.rule import Within

# To add one here lets rule files use it. Checkpoints keep lengths in the units of
# `spark_pace.core.expr.canonical`, which never change.
UNITS_US = {
    "us": 1,
    "ms": 1_000,
    "s": 1_000_000,
    "min": 60_000_000,
    "h": 3_600_000_000,
    "d": 86_400_000_000,
}


def show_length(within: Within) -> str:
    """The length of a window. Checkpoints keep this text, so it never changes."""
    return canonical_duration(within.time_us or 0) if within.events is None else show_events(within.events)


def show_events(count: int) -> str:
    """A number of events, as a rule file would have it."""
    return "1 event" if count == 1 else f"{count} events"
