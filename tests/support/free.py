"""What tests of rules that use nothing up have in common."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import strategies as st

from tests.oracle.contexts import Event
from tests.support.loaded_rules import CONTEXTS
from tests.support.streams import SECOND

WAYS = [*((context, False) for context in CONTEXTS if context.consumption == "zero"), (CONTEXTS[0], True)]
FREE = pytest.mark.parametrize(
    ("context", "close_window"), WAYS, ids=[f"{context}{' window' * close}" for context, close in WAYS]
)
BEYOND = 200 * SECOND  # behind every window


def some_at_a_time(data: st.DataObject, events: list[Event], most: int) -> list[list[Event]]:
    """Batches of the events, and behind them one of a type that no component has, behind every window."""
    batches = []
    while events:
        size = data.draw(st.integers(1, most))
        batches.append(events[:size])
        events = events[size:]
    if batches:
        last = batches[-1][-1]
        row = {**last.row, "type": "z", "x": 9, "y": 9}
        batches.append([replace(last, time=last.time + BEYOND, row=row)])
    return batches
