"""Events, their places in the rule's stream, and the windows that start at them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from spark_pace.core.plan.rule import Within
from tests.oracle.expressions import Row

Position = tuple[float, int, int]
BEGIN: Position = (-math.inf, 0, 0)
END: Position = (math.inf, 0, 0)


@dataclass(frozen=True)
class Event:
    """An event of the input: `row` holds its attributes, times as microseconds."""

    time: int
    source: str
    offset: int
    row: dict[str, Any] = field(hash=False)


@dataclass(frozen=True)
class Placed:
    """An event of the rule's stream (of one key).

    `before` has the events before it, which `prev` looks at: of the stream, or inside a span of the span
    alone. `opening` is the event that opened that span. `earlier` are the events before it in the stream.
    """

    event: Event
    place: int
    seq: int
    before: Sequence[Row] = field(default=(), compare=False, repr=False)
    opening: Row | None = field(default=None, compare=False, repr=False)
    earlier: Sequence[Placed] = field(default=(), compare=False, repr=False)

    @property
    def time(self) -> int:
        return self.event.time

    @property
    def row(self) -> dict[str, Any]:
        return self.event.row

    @property
    def position(self) -> Position:
        return (self.event.time, 0, self.place)


Stream = Sequence[Placed]


@dataclass(frozen=True)
class Bound:
    """One event of a production set, and the index of the component it stands for."""

    placed: Placed
    component: int


Production = tuple[Bound, ...]
Matching = list[list[bool]]  # by component, then by place in the stream


# ---------------------------------------------------------------- windows


def window_end(within: Within | None, stream: Stream, opening: Placed) -> Position:
    if within is None:
        return END
    ends = [END]
    if within.time_us is not None:
        ends.append((opening.time + within.time_us, 1, 0))
    if within.events is not None:
        last = opening.seq + within.events - 1
        ends += [placed.position for placed in stream if placed.seq == last]
    return min(ends)


def inside(within: Within | None, first: Placed, last: Placed) -> bool:
    """Whether `last` stands in the window that starts at `first`."""
    if within is None:
        return True
    if within.time_us is not None and last.time - first.time > within.time_us:
        return False
    return within.events is None or last.seq - first.seq < within.events
