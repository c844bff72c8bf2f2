"""What the property tests compare: the core's result with the oracle's."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from hypothesis import note, settings

from spark_pace.core.plan.rule import Rule
from tests.oracle.contexts import Event
from tests.oracle.matches import evaluate
from tests.support.results import Row, brief, difference, from_core, from_oracle

WIDE = settings(max_examples=4 * settings().max_examples)  # for tests that take rules of every form


def told(event: Event) -> str:
    row = event.row
    values = " ".join(f"{name}={row[name]}" for name in "xyk")
    return f"{row['id']}@{event.time / 1e6:g} {values} {event.source}{event.offset}"


def expected_rows(rule: Rule, events: Sequence[Event]) -> list[Row]:
    """The oracle's matches; the stream is noted for the case that the test fails."""
    note("stream: " + ", ".join(told(event) for event in sorted(events, key=lambda event: event.time)))
    rows = from_oracle(rule, evaluate(rule, events))
    note("oracle:\n" + "\n".join(map(brief, rows)))
    return rows


def assert_equal(rule: Rule, expected: Sequence[Row], matches: pa.Table) -> None:
    found = difference(expected, from_core(rule, matches))
    assert not found, "\n" + found
