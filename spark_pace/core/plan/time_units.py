"""The units of time in rule files, and the text of a window's length: ``30 min``, ``1000 events``."""

from __future__ import annotations

from collections.abc import Callable

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
    return ", ".join(_lengths(within, lambda events: f"{events} events"))


def length_in_words(within: Within) -> str:
    """The text of a window's length for people, such as ``30 min``, ``1 event`` or ``30 min and 1 event``."""
    return " and ".join(_lengths(within, show_events))


def _lengths(within: Within, show: Callable[[int], str]) -> list[str]:
    """The texts of a window's time and of its number of events, as far as it has them."""
    times = [] if within.time_us is None else [canonical_duration(within.time_us)]
    return times if within.events is None else [*times, show(within.events)]


def show_events(count: int) -> str:
    """A number of events, as a rule file would have it."""
    return "1 event" if count == 1 else f"{count} events"
