"""Rules whose windows hold far more combinations of events than matches: what they take in memory and time.

Ten events a second, of the types a, b and c and twice `rare`, are put through the core, from a table in
memory, in one batch or in several of like size, each rule in a process of its own. The memory is the most
that process has had resident, the table and Python itself included. Before a figure is printed, the matches
are compared with those of a plain loop.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from benchmarks.processes import alone as alone_in
from benchmarks.rows import Row, Sizes
from spark_pace.core.local_run import run
from spark_pace.core.order import OrderSpec
from spark_pace.core.plan.plan import build_plan
from spark_pace.core.tables import Ints
from spark_pace.io.event_files import table_events
from spark_pace.rules import load_rules

EVENTS = 200_000
MOST_MB = 600
MOST_SECONDS = 20
EVERY_US = 100_000
TYPES = np.array(["a", "b", "c", "rare"])
MINUTE, HOUR = 600, 36_000  # how many rows later an event is that comes so much later

PAIR = "{sequence: [{a: type = 'a'}, {b: type = 'b'}]}"
TRIPLE = "{sequence: [{a: type = 'a'}, {b: type = 'b'}, {c: type = 'c'}]}"
TO_RARE = "{sequence: [{a: type = 'a'}, {b: type = 'b'}, {rare: type = 'rare'}]}"
GATHERED = "{sequence: [{a: type = 'a'}, {rare: type = 'rare'}]}"

Matches: TypeAlias = Iterator[list[int]]


@dataclass(frozen=True)
class Events:
    """Events as columns: int8[n] index into `TYPES`, float64[n] x, int64[n] card."""

    type: np.ndarray[Any, np.dtype[np.int8]]
    x: np.ndarray[Any, np.dtype[np.float64]]
    card: Ints

    @cached_property
    def table(self) -> pa.Table:
        """The events as a table."""
        times = pa.array(np.arange(len(self.x)) * EVERY_US, pa.timestamp("us"))
        return pa.table({"time": times, "type": TYPES[self.type], "x": self.x, "card": self.card})

    def of(self, letter: str) -> Ints:
        """The rows of a type, ascending."""
        return np.flatnonzero(TYPES[self.type] == letter)


def events_of(count: int) -> Events:
    """Random events, always the same; two of them are rare."""
    generator = np.random.default_rng(1)
    kind = generator.integers(0, 3, count).astype(np.int8)
    kind[[count // 3, 2 * count // 3]] = 3
    return Events(kind, generator.random(count), generator.integers(0, 20, count))


def nothing(events: Events) -> Matches:
    """No matches."""
    yield from ()


def latest_above(events: Events) -> Matches:
    """From each c back the nearest b behind the nearest a whose x is not above that of c; within a minute."""
    a, b = events.of("a"), events.of("b")
    for c in events.of("c").tolist():
        below = a[np.searchsorted(a, c - MINUTE) : np.searchsorted(a, c)]
        below = below[events.x[below] <= events.x[c]]
        last = b[np.searchsorted(b, c) - 1]
        if len(below) and below[0] < last:
            yield [int(below[np.searchsorted(below, last) - 1]), int(last), c]


def latest_of_card(events: Events) -> Matches:
    """From each c back the nearest b of its card behind an a of its card; within ten minutes."""
    for card in range(20):
        a, b, c = (rows[events.card[rows] == card] for rows in map(events.of, "abc"))
        for row in c.tolist():
            before = b[: np.searchsorted(b, row)]
            first = before[-1:] if len(before) else a[:0]
            second = a[: np.searchsorted(a, first[0])][-1:] if len(first) else a[:0]
            if len(second) and row - second[0] <= 10 * MINUTE:
                yield [int(second[0]), int(first[0]), row]


def latest_before_rare(events: Events) -> Matches:
    """The nearest a and b before each rare event."""
    a, b = events.of("a"), events.of("b")
    for rare in events.of("rare").tolist():
        second = b[np.searchsorted(b, rare) - 1]
        yield [int(a[np.searchsorted(a, second) - 1]), int(second), rare]


def pairs(choose: Callable[[Ints], Ints]) -> Callable[[Events], Matches]:
    """With each b one a, of those within ten minutes before it whose x is not above that of b."""

    def found(events: Events) -> Matches:
        a = events.of("a")
        for b in events.of("b").tolist():
            near = a[np.searchsorted(a, b - 10 * MINUTE) : np.searchsorted(a, b)]
            for first in choose(near[events.x[near] <= events.x[b]]).tolist():
                yield [first, b]

    return found


def used_up(events: Events) -> Matches:
    """With each b the first of those that no other b has."""
    free = np.full(len(events.x), True)
    a = events.of("a")
    for b in events.of("b").tolist():
        near = a[np.searchsorted(a, b - 10 * MINUTE) : np.searchsorted(a, b)]
        for first in near[free[near] & (events.x[near] <= events.x[b])][:1].tolist():
            free[first] = False
            yield [first, b]


def close_to(events: Events) -> Matches:
    """With each b the nearest a within ten minutes before it whose x is almost the same."""
    a = events.of("a")
    for b in events.of("b").tolist():
        near = a[np.searchsorted(a, b - 10 * MINUTE) : np.searchsorted(a, b)]
        for first in near[np.abs(events.x[near] - events.x[b]) < 0.001][-1:].tolist():
            yield [first, b]


def gathered(events: Events) -> Matches:
    """All a within the hour before each rare event, and that event."""
    a = events.of("a")
    start = 0
    for rare in events.of("rare").tolist():
        yield [*a[np.searchsorted(a, max(start, rare - HOUR)) : np.searchsorted(a, rare)].tolist(), rare]
        start = rare


NEVER = f"pattern: {PAIR}, where: b.x < a.x - 1000, within: 1 h"
ABOVE = f"pattern: {PAIR}, where: b.x >= a.x, within: 10 min"
CHAIN = f"pattern: {TRIPLE}, where: a.card = b.card and b.card = c.card, within: 10 min"
# the rule, and the matches that it must have
RULES: dict[str, tuple[str, Callable[[Events], Matches]]] = {
    "never_all_selected": (f"{NEVER}, context: 'all, selected'", nothing),
    "never_next_selected": (f"{NEVER}, context: 'next, selected'", nothing),
    "latest_zero_of_three": (
        f"pattern: {TRIPLE}, where: c.x >= a.x, within: 1 min, context: 'latest, zero'",
        latest_above,
    ),
    "latest_zero_chain": (f"{CHAIN}, context: 'latest, zero'", latest_of_card),
    "latest_selected_to_rare": (
        f"pattern: {TO_RARE}, within: 1 h, context: 'latest, selected'",
        latest_before_rare,
    ),
    "latest_zero": (f"{ABOVE}, context: 'latest, zero'", pairs(lambda near: near[-1:])),
    "earliest_zero": (f"{ABOVE}, context: 'earliest, zero'", pairs(lambda near: near[:1])),
    "earliest_selected": (f"{ABOVE}, context: 'earliest, selected'", used_up),
    "all_selected_gathers": (f"pattern: {GATHERED}, within: 1 h, context: 'all, selected'", gathered),
    "of_both_latest_zero": (
        f"pattern: {PAIR}, where: abs(a.x - b.x) < 0.001, within: 10 min, context: 'latest, zero'",
        close_to,
    ),
    "of_both_never": (
        f"pattern: {PAIR}, where: a.x + b.x > 1000, within: 10 min, context: 'next, selected'",
        nothing,
    ),
}


def rule_file(name: str) -> str:
    """The text of a rule file with that rule."""
    schema = "time TIMESTAMP, type STRING, x DOUBLE, card BIGINT"
    events = f'events: {{schema: "{schema}", event_time: time}}'
    return f"{events}\nrules:\n  - {{name: {name}, {RULES[name][0]}}}\n"


def alone(name: str, count: int, batches: int = 1) -> dict[str, Any]:
    """Run one rule in this process; ends it if the matches are wrong."""
    events = events_of(count)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rules.yaml"
        path.write_text(rule_file(name), encoding="utf-8")
        rules = load_rules(path)
    plan = build_plan(tuple(rules), order=OrderSpec(), tie_break="columns")
    table = table_events(events.table, rules[0].schema, "table").events
    rows = -(-count // batches)
    begin = time.perf_counter()
    result = run(plan, [table.slice(start, rows) for start in range(0, count, rows)])
    seconds, peak_mb = time.perf_counter() - begin, most_resident_mb()
    found = [[event["offset"] for event in match] for match in result.matches["events"].to_pylist()]
    if found != sorted(RULES[name][1](events)):
        raise SystemExit(f"{name}: the {len(found):,} matches differ from those of the plain loop")
    return {"rule": name, "matches": len(found), "seconds": round(seconds, 2), "peak_mb": peak_mb}


def most_resident_mb() -> int:
    """The most memory this process has had resident since it began, where Linux says so.

    What `getrusage` says includes the process that has started this one.
    """
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return next(int(line.split()[1]) >> 10 for line in status.splitlines() if line.startswith("VmHWM:"))


def measure(sizes: Sizes) -> Iterator[Row]:
    """Each rule in a process of its own."""
    for name in RULES:
        figures = alone_in("explosions", name, min(EVENTS, sizes.kernel_events))
        for unit, most in (("peak_mb", MOST_MB), ("seconds", MOST_SECONDS)):
            case = f"{name}; {unit.replace('_', ' ')}"
            yield Row(
                "explosions",
                case,
                figures[unit],
                "MB" if unit == "peak_mb" else "s",
                None,
                f"<= {most}",
                "a plain loop",
            )
