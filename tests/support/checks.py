"""What the property tests compare: the core's result with the oracle's."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
from hypothesis import note, settings

from spark_pace.core.local_run import LocalRun, LocalStep
from spark_pace.core.order import OrderSpec
from spark_pace.core.plan.plan import Plan, build_plan
from spark_pace.core.plan.rule import Rule
from spark_pace.core.tables import UNKNOWN_TIME
from tests.oracle.contexts import Event
from tests.oracle.matches import Match, evaluate
from tests.support.drive import Step
from tests.support.results import Row, brief, difference, from_core, from_oracle
from tests.support.streams import Parallelism

WIDE = settings(max_examples=2 * settings().max_examples)  # for tests that take rules of every form
NARROW = settings(max_examples=settings().max_examples * 3 // 10)  # for one context and streams made for it


def told(event: Event) -> str:
    row = event.row
    values = " ".join(f"{name}={row[name]}" for name in "xyk")
    return f"{row['id']}@{event.time / 1e6:g} {values} {event.source}{event.offset}"


def plan_for(rules: Sequence[Rule], order: OrderSpec, spread: Parallelism, **more: Any) -> Plan:
    """The plan of rules whose work is spread so."""
    slots, buckets, lanes = spread.slots, spread.buckets, spread.lanes
    return build_plan(
        rules, order=order, slots=slots, buckets=buckets, lanes=lanes, least_lane_rows=1, **more
    )


def noted_matches(rule: Rule, events: Sequence[Event]) -> list[Match]:
    """The oracle's matches; they and the stream are noted for the case that the test fails."""
    note("stream: " + ", ".join(told(event) for event in sorted(events, key=lambda event: event.time)))
    matches = evaluate(rule, events)
    note("oracle:\n" + "\n".join(map(brief, from_oracle(rule, matches))))
    return matches


def expected_rows(rule: Rule, events: Sequence[Event]) -> list[Row]:
    """The rows of the same."""
    return from_oracle(rule, noted_matches(rule, events))


def assert_equal(rule: Rule, expected: Sequence[Row], matches: pa.Table) -> None:
    found = difference(expected, from_core(rule, matches))
    assert not found, "\n" + found


def is_out(match: Match, frontier_us: int) -> bool:
    """Whether the frontier has made a match releasable, or the input has ended."""
    return match.releasable[0] < frontier_us or frontier_us == UNKNOWN_TIME


def assert_out_in_time(rule: Rule, matches: Sequence[Match], steps: Iterable[Step | LocalStep]) -> list[Row]:
    """After each batch, what has gone out is what the frontier has made releasable. Returns that."""
    rows, so_far, expected = from_oracle(rule, matches), list[pa.Table](), list[Row]()
    for step in steps:
        so_far.append(step.matches)
        expected = [row for row, match in zip(rows, matches, strict=True) if is_out(match, step.frontier_us)]
        assert_equal(rule, expected, pa.concat_tables(so_far))
    return expected


def assert_released_in_time(rule: Rule, matches: Sequence[Match], batches: Sequence[pa.Table]) -> list[Row]:
    """The same in one process."""
    local = LocalRun(build_plan([rule], order=OrderSpec()))
    return assert_out_in_time(rule, matches, map(local.step, batches))
