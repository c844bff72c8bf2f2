"""Hypothesis strategies: streams over a small alphabet, and the batches in which their events arrive."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from random import Random
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from spark_pace.core.expr import Aggregate, walk
from spark_pace.core.plan.meaning import expressions_over_matches
from spark_pace.core.plan.rule import Rule
from tests.oracle.contexts import Event
from tests.support.draws import built_once, chosen, composite, shuffled
from tests.support.results import table_of

SECOND = 1_000_000
# a sum of two is a BIGINT or is not; the last ones are times in nanoseconds
LARGE = (2**63 - 1, 2**62, 1 - 2**62, -(2**63), 1_700_000_000_000_000_001, 1_700_000_000_000_000_002)
REALS = (0.1, 0.7, 1e16, -1e16, 0.3, -2.0, math.nan, -0.0, 1e16)  # their sum depends on the order


@built_once
def lists_of_kinds(size: int) -> st.SearchStrategy[list[tuple[Any, ...]]]:
    """Of each event the gap before it, its type, x, y, its key and its source."""
    kinds = st.tuples(
        st.sampled_from([1, 1, 1, 1, 1, 0, 0, 0, 2, 6]),
        st.sampled_from("abcabcabcabcabcd"),
        st.sampled_from([0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 2, None]),
        st.sampled_from([0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 2, None]),
        st.sampled_from(["u", "u", "u", "u", "u", "v", "v", None]),
        st.sampled_from(["s", "s", "t"]),
    )
    return st.lists(kinds, min_size=size, max_size=size)


@composite
def streams(draw: st.DrawFn) -> list[Event]:
    """Events in the order of their times, which may be equal and before 1970, with few types and values."""
    time = chosen(draw, [0, -7 * SECOND, 1_357_000_000 * SECOND])
    size = chosen(draw, [0, 1, 4, 6, 8, 10, 11, 12, 12, 13, 13, 14, 14, 14, 15, 15, 16, 16])
    events = []
    for place, (gap, kind, x, y, k, source) in enumerate(draw(lists_of_kinds(size))):
        time += gap * SECOND
        events.append(
            Event(
                time,
                source,
                place,
                row_of(time, place, kind, x, y) | {"k": k},
            )
        )
    return events


def row_of(time: int, place: int, kind: str, x: int | None, y: int | None) -> dict[str, Any]:
    """An event's attributes but for its key."""
    z = None if x is None else REALS[(place + x) % len(REALS)]
    return {"time": time, "id": f"{kind}{place}", "type": kind, "x": x, "y": y, "z": z}


@built_once
def dense_streams(size: int = 13) -> st.SearchStrategy[list[Event]]:
    """As many events, near each other, of few types and values: most patterns have candidates in them.

    They are drawn from a seed, so that they are no simpler at first than later.
    """
    return st.integers(0, 2**32 - 1).map(lambda seed: dense(Random(seed), size))


def adds_up(rules: Sequence[Rule]) -> bool:
    """Whether rules add numbers up, and no function of theirs does, which would have to hold the sum."""
    exprs = [
        expr for rule in rules for expr in (*expressions_over_matches(rule), rule.having) if expr is not None
    ]
    nodes = [node for expr in exprs for node in walk(expr)]
    summed = any(isinstance(node, Aggregate) and node.function in ("sum", "avg") for node in nodes)
    return summed and not any(rule.operator or rule.function for rule in rules)


def enlarged(number: int | None, random: Random) -> int | None:
    """A number of a stream, often with one of `LARGE` in its place."""
    return random.choice(LARGE) if number and random.random() < 0.6 else number


@built_once
def sparse_or_dense() -> st.SearchStrategy[list[Event]]:
    return st.one_of(dense_streams(), streams())


def dense(random: Random, size: int) -> list[Event]:
    time, events = 0, []
    for place in range(size):
        time += random.choice([1, 1, 1, 0, 2]) * SECOND
        kind = random.choice("aaabbbccd")
        x, y = (random.choice([0, 1, 0, 1, 2, None]) for _ in "xy")
        row = row_of(time, place, kind, x, y) | {"k": random.choice("uuv")}
        events.append(Event(time, "s", place, row))
    return events


@dataclass(frozen=True)
class Arrival:
    """Events as they arrive: batches of them, and the disorder that is allowed."""

    batches: tuple[tuple[Event, ...], ...]
    delay_us: int

    def tables(self, rule: Rule) -> list[pa.Table]:
        return [table_of(rule, batch) for batch in self.batches]

    def enlarged(self, random: Random) -> Arrival:
        """The same events, with large numbers among them."""
        batches = [
            tuple(
                replace(
                    event, row={**event.row, **{name: enlarged(event.row[name], random) for name in "xy"}}
                )
                for event in batch
            )
            for batch in self.batches
        ]
        return replace(self, batches=tuple(batches))

    def on_time(self) -> tuple[list[Event], list[tuple[Event, int]], list[int | None]]:
        """The events on time, the late ones with their lateness in microseconds, each batch's frontier."""
        on_time: list[Event] = []
        late: list[tuple[Event, int]] = []
        frontiers: list[int | None] = []
        frontier: int | None = None
        for batch in self.batches:
            for event in batch:
                if frontier is not None and event.time < frontier:
                    late.append((event, frontier - event.time))
                else:
                    on_time.append(event)
            reached = [event.time - self.delay_us for event in batch]
            frontier = max([*reached, *([] if frontier is None else [frontier])], default=None)
            frontiers.append(frontier)
        return on_time, late, frontiers


@built_once
def lists_of_numbers(size: int, most: int) -> st.SearchStrategy[list[int]]:
    return st.lists(st.integers(0, most), min_size=size, max_size=size)


@built_once
def up_to_five_numbers(most: int) -> st.SearchStrategy[list[int]]:
    return st.lists(st.integers(0, most), max_size=5)


@composite
def arrivals(
    draw: st.DrawFn, *, late: bool = False, of: st.SearchStrategy[list[Event]] | None = None
) -> Arrival:
    """A stream in any order that the delay allows, cut into batches anywhere; some may be empty.

    `late`: in any order at all. `of`: the streams to take it from.
    """
    events = draw(streams() if of is None else of)
    delay_us = chosen(draw, [0, 1, 2, 10]) * SECOND
    if late:
        events = shuffled(draw, events)
    else:
        jitters = draw(lists_of_numbers(len(events), delay_us // SECOND))
        ranked = sorted(zip(events, jitters, strict=True), key=lambda pair: pair[0].time + pair[1] * SECOND)
        events = [event for event, _ in ranked]
    cuts = sorted(draw(up_to_five_numbers(len(events))))
    edges = [0, *cuts, len(events)]
    return Arrival(tuple(tuple(events[start:stop]) for start, stop in pairwise(edges)), delay_us)


@dataclass(frozen=True)
class Parallelism:
    """How the work is spread."""

    slots: int
    buckets: int
    lanes: int


@built_once
def parallelisms() -> st.SearchStrategy[Parallelism]:
    return st.builds(Parallelism, st.integers(1, 3), st.sampled_from([1, 4]), st.sampled_from([1, 2, 3, 8]))
