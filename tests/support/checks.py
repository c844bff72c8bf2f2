"""What the property tests compare: the core's result with the oracle's."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from hypothesis import note, settings

from spark_pace.core.local_run import LocalRun, run
from spark_pace.core.order import OrderSpec
from spark_pace.core.plan.plan import build_plan
from spark_pace.core.plan.rule import Rule
from tests.oracle.contexts import Event
from tests.oracle.matches import Match, evaluate
from tests.support.results import Row, brief, difference, from_core, from_oracle, table_of
from tests.support.streams import SECOND

WIDE = settings(max_examples=2 * settings().max_examples)  # for tests that take rules of every form
NARROW = settings(max_examples=settings().max_examples * 3 // 10)  # for one context and streams made for it


def told(event: Event) -> str:
    row = event.row
    values = " ".join(f"{name}={row[name]}" for name in "xyk")
    return f"{row['id']}@{event.time / 1e6:g} {values} {event.source}{event.offset}"


def expected_rows(rule: Rule, events: Sequence[Event]) -> list[Row]:
    """The oracle's matches; the stream is noted for the case that the test fails."""
    return rows_and_releases(rule, events)[0]


def rows_and_releases(rule: Rule, events: Sequence[Event]) -> tuple[list[Row], list[tuple[float, int]]]:
    """The same, and behind them where each of them is releasable."""
    note("stream: " + ", ".join(told(event) for event in sorted(events, key=lambda event: event.time)))
    matches = evaluate(rule, events)
    rows = from_oracle(rule, matches)
    note("oracle:\n" + "\n".join(map(brief, rows)))
    return rows, [match.releasable for match in matches]


def assert_equal(rule: Rule, expected: Sequence[Row], matches: pa.Table) -> None:
    found = difference(expected, from_core(rule, matches))
    assert not found, "\n" + found


def check(rule: Rule, events: list[Event]) -> None:
    """All events come in one batch: the core finds the oracle's matches."""
    result = run(build_plan([rule], order=OrderSpec(100 * SECOND)), [table_of(rule, events)])
    assert_equal(rule, expected_rows(rule, events), result.matches)


def assert_released_in_time(rule: Rule, matches: Sequence[Match], batches: Sequence[pa.Table]) -> list[Row]:
    """After each batch, what has gone out is what the frontier has made releasable. Returns that."""
    local, so_far, expected = LocalRun(build_plan([rule], order=OrderSpec())), [], list[Row]()
    for batch in batches:
        step = local.step(batch)
        so_far.append(step.matches)
        expected = [
            row
            for row, match in zip(from_oracle(rule, matches), matches, strict=True)
            if match.releasable[0] < step.frontier_us
        ]
        assert_equal(rule, expected, pa.concat_tables(so_far))
    return expected
