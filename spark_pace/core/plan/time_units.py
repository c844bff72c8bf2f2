"""The units of time in rule files, and the text of a window's length: ``30 min``, ``1000 events``."""

from __future__ import annotations

from spark_pace.core.expr.canonical_text import canonical_duration
from spark_pace.core.plan.rule import Within

# Rule files may use every unit of this table. Checkpoints keep lengths in the units of
# `spark_pace.core.expr.canonical_text`, which never change.
UNITS_US = {
    "us": 1,
    "ms": 1_000,
    "s": 1_000_000,
    "min": 60_000_000,
    "h": 3_600_000_000,
    "d": 86_400_000_000,
}


def show_length(within: Within) -> str:
    """The text of a window's length, such as ``30 min``. Checkpoints keep this text, so it never changes."""
    events = [] if within.events is None else [f"{within.events} events"]
    times = [] if within.time_us is None else [canonical_duration(within.time_us)]
    return ", ".join([*times, *events])


def length_in_words(within: Within) -> str:
    """The text of a window's length for people, such as ``30 min``, ``1 event`` or ``30 min and 1 event``."""
    events = [] if within.events is None else [show_events(within.events)]
    times = [] if within.time_us is None else [canonical_duration(within.time_us)]
    return " and ".join([*times, *events])


def show_events(count: int) -> str:
    """A number of events, as a rule file would have it."""
    return "1 event" if count == 1 else f"{count} events"
