"""Which events are late follows from the input and its order, however it is cut and worked on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from spark_pace.core.expr import Expr
from spark_pace.core.local_run import run
from spark_pace.core.order import OrderSpec, Tick
from spark_pace.core.plan.plan import Plan
from spark_pace.core.plan.rule import Rule
from tests.oracle.contexts import Event
from tests.oracle.expressions import Bindings, holds
from tests.oracle.order import Reading, late_by_record, read
from tests.support.checks import WIDE, assert_equal, expected_rows, plan_for
from tests.support.drawn_rules import any_rule
from tests.support.drive import drive
from tests.support.loaded_rules import condition_of
from tests.support.results import table_of
from tests.support.streams import SECOND, Parallelism, parallelisms, streams

HEARTBEAT = condition_of("type = 'd'")
DELAYS = st.sampled_from([0, 1, 2, 4]).map(lambda seconds: seconds * SECOND)


@dataclass(frozen=True)
class Cut:
    """Parts of an input, and where batches begin among them: two or more batches, or one.

    A part is a file or a tick of the clock.
    """

    parts: tuple[tuple[Event, ...] | Tick, ...]
    edges: tuple[int, ...]


@st.composite
def files(draw: st.DrawFn) -> Cut:
    """Events in any order at all, in files; a batch is some files that follow each other."""
    events = draw(st.permutations(draw(streams())))
    cuts = sorted(draw(st.lists(st.integers(0, len(events)), max_size=6)))
    parts = [events[start:stop] for start, stop in pairwise([0, *cuts, len(events)])]
    named = (
        tuple(replace(event, source=f"f{number:02d}", offset=offset) for offset, event in enumerate(part))
        for number, part in enumerate(parts)
    )
    mixed: list[tuple[Event, ...] | Tick] = list(named)
    for _ in range(draw(st.integers(0, 2))):
        near = draw(st.sampled_from([event.time for event in events] or [0]))
        mixed.insert(draw(st.integers(0, len(mixed))), Tick(near + draw(st.integers(-1, 3)) * SECOND))
    inner = sorted(draw(st.sets(st.integers(1, max(1, len(mixed) - 1)), max_size=4)))
    return Cut(tuple(mixed), tuple(sorted({0, *inner, len(mixed)})))


def late_rows(tables: list[pa.Table]) -> list[tuple[Any, ...]]:
    rows = (row for table in tables for row in table.to_pylist())
    return sorted(
        (row["source"], row["offset"], row["lateness_us"], row["reason"].split(" had ")[0]) for row in rows
    )


def expected_late(plan: Plan, reading: Reading) -> list[tuple[Any, ...]]:
    who = "its source" if plan.order.before == "records" else "the frontier"
    return sorted((event.source, event.offset, lateness_us, who) for event, lateness_us in reading.late)


def beats(heartbeat: Expr | None, event: Event) -> bool:
    return heartbeat is not None and holds(heartbeat, Bindings(event=event.row))


def assert_all_ways(rule: Rule, plan: Plan, batches: list[list[pa.Table | Tick]], reading: Reading) -> None:
    """A job's stages with saved states, one process in as many batches, and in one batch."""
    wanted, late = expected_rows(rule, reading.kept), expected_late(plan, reading)
    steps = list(drive(plan, batches, finish=True))
    assert late_rows([table for step in steps for table in step.late]) == late
    assert_equal(rule, wanted, pa.concat_tables([step.matches for step in steps]))
    counts = sum((step.counts for step in steps[1:]), steps[0].counts)
    assert (counts["late"], counts["heartbeats"]) == (len(late), reading.heartbeats)
    assert counts["records"] == counts["events"] + counts["late"] + counts["heartbeats"] + counts["repeats"]
    for cut in (batches, [[table for batch in batches for table in batch]]):
        result = run(plan, cut)
        assert late_rows([result.late]) == late
        assert result.stats["late"] == len(late)
        assert_equal(rule, wanted, result.matches)


@WIDE
@given(any_rule(), files(), parallelisms(), DELAYS, st.data())
def test_files_decide_by_the_files_before_them(
    rule: Rule, cut: Cut, spread: Parallelism, delay_us: int, data: st.DataObject
) -> None:
    by_source = data.draw(st.booleans())
    spec = OrderSpec(
        delay_us,
        by_source,
        idle_after_us=data.draw(st.sampled_from([None, 2 * SECOND])) if by_source else None,
        expected_sources=data.draw(st.sampled_from([(), ("u", "v"), ("w",)])) if by_source else (),
        deduplicate_on=data.draw(st.sampled_from([(), ("x",)])),
        before="files",
    )
    name = data.draw(st.sampled_from(["k", "x"])) if by_source else None
    heartbeat = data.draw(st.sampled_from([None, HEARTBEAT]))
    reading = read(
        rule,
        cut.parts,
        spec,
        lambda event: None if name is None or event.row[name] is None else str(event.row[name]),
        lambda event: beats(heartbeat, event),
    )
    tables = [part if isinstance(part, Tick) else table_of(rule, part) for part in cut.parts]
    batches = [tables[start:stop] for start, stop in pairwise(cut.edges)]
    plan = plan_for([rule], spec, spread, source_column=name, heartbeat=heartbeat)
    assert_all_ways(rule, plan, batches, reading)


@st.composite
def partitions(draw: st.DrawFn) -> tuple[list[list[Event]], list[list[int]]]:
    """Events in any order at all, in partitions by their key; and where each batch ends in each of them."""
    events = draw(st.permutations(draw(streams())))
    keyed = [replace(event, row=event.row | {"k": event.row["k"] or "u"}) for event in events]
    place = {"u": 0, "v": draw(st.integers(0, 1)), "w": 1}
    parts: list[list[Event]] = [[], []]
    for event in keyed:
        part = parts[place[event.row["k"]]]
        part.append(replace(event, source=f"t/{place[event.row['k']]}", offset=len(part)))
    count = draw(st.integers(0, 4))
    ends = [
        [*sorted(draw(st.lists(st.integers(0, len(part)), min_size=count, max_size=count))), len(part)]
        for part in parts
    ]
    return parts, ends


@WIDE
@given(any_rule(), partitions(), parallelisms(), DELAYS, st.sampled_from([None, "k"]), st.booleans())
def test_records_decide_by_the_earlier_ones_of_their_source(
    rule: Rule,
    cut: tuple[list[list[Event]], list[list[int]]],
    spread: Parallelism,
    delay_us: int,
    name: str | None,
    has_beats: bool,
) -> None:
    parts, ends = cut
    heartbeat = HEARTBEAT if has_beats else None
    expected = ("t/0", "t/1") if name is None else tuple(sorted({e.row["k"] for part in parts for e in part}))
    spec = OrderSpec(delay_us, True, expected_sources=expected, before="records")
    reading = late_by_record(
        parts,
        spec,
        lambda event: event.source if name is None else event.row[name],
        lambda event: beats(heartbeat, event),
    )
    batches = []
    for batch in range(len(ends[0])):
        read_of = [
            part[(end[batch - 1] if batch else 0) : end[batch]] for part, end in zip(parts, ends, strict=True)
        ]
        batches.append([table_of(rule, records) for records in read_of])
    plan = plan_for([rule], spec, spread, source_column=name, heartbeat=heartbeat)
    assert_all_ways(rule, plan, batches, reading)
