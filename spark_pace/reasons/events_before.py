"""Finds the event that keeps a later one from the first component: by a plain search of all before it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from spark_pace.core.columns import OFFSET, SOURCE, Ints
from spark_pace.core.expr import Aggregate, conjunction, evaluate_mask
from spark_pace.core.expr.canonical_text import canonical_duration, canonical_text
from spark_pace.core.match.stream import Stream
from spark_pace.core.operate.span_patterns import SpanColumns
from spark_pace.core.plan.conditions import earlier_columns
from spark_pace.core.plan.rule import Absence, Pattern
from spark_pace.reasons.answer_parts import ComponentTest, ConditionTest
from spark_pace.reasons.wording import iso


def with_events_before(
    pattern: Pattern, stream: Stream, row: int, test: ComponentTest, start: int
) -> ComponentTest:
    """The test of an event against the first component, also on the events before it.

    Args:
        pattern: the pattern.
        stream: a stream with all attributes that the conditions read.
        row: the event's row.
        test: the test on the event itself.
        start: the first row of the stream, or of the span.
    """
    first = pattern.components[0].name
    before = [_test(absence, first, stream, (start, row)) for absence in pattern.absences]
    return with_tests(test, before)


def unknown(pattern: Pattern) -> list[ConditionTest]:
    """The tests on the events before an event, where these are not known."""
    return [ConditionTest(_text(absence), None, {}) for absence in pattern.absences]


def with_tests(test: ComponentTest, more: Sequence[ConditionTest]) -> ComponentTest:
    """The test of a component with more conditions."""
    conditions = (*test.conditions, *more)
    known = [one.holds for one in conditions]
    holds = False if False in known else None if None in known else True
    return replace(test, holds=holds, conditions=conditions)


def _text(absence: Absence) -> str:
    near = "" if absence.within_us is None else f" within {canonical_duration(absence.within_us)}"
    where = f" where {canonical_text(conjunction(absence.where))}" if absence.where else ""
    return f"not {absence.component.name}{near}{where}"


def _test(absence: Absence, first: str, stream: Stream, rows: tuple[int, int]) -> ConditionTest:
    """The test that no event before the row forbids it; its value is the last one that does."""
    found = _forbidding(absence, first, stream, rows)
    values = {}
    if len(found):
        event = stream.events.slice(int(found[-1]), 1)
        at, source = iso(int(stream.time[found[-1]])), event[SOURCE][0].as_py()
        values[absence.component.name] = (
            f"#{stream.seq[found[-1]]}, {source}:{event[OFFSET][0].as_py()} at {at}"
        )
    return ConditionTest(_text(absence), not len(found), values)


def _forbidding(absence: Absence, first: str, stream: Stream, between: tuple[int, int]) -> Ints:
    """int64[m], the rows from `start` on that forbid the event of `row` to stand for the component `first`.

    `between` are `start` and `row`.
    """
    start, row = between
    rows = np.arange(start, row)
    if absence.within_us is not None:
        rows = rows[stream.time[rows] >= stream.time[row] - absence.within_us]
    predicate = absence.component.predicate
    nodes = earlier_columns([predicate])
    columns = SpanColumns(stream, nodes, rows, np.full(len(rows), start))
    rows = rows[evaluate_mask(predicate, columns)]
    pairs = {absence.component.name: rows, first: np.full(len(rows), row)}
    return rows[evaluate_mask(conjunction(absence.where), _Pairs(stream, pairs, len(rows)))]


@dataclass(frozen=True)
class _Pairs:
    """The columns of conditions on two events: for each component int64[n], the rows of its events."""

    stream: Stream
    at: dict[str, Ints]
    rows: int

    def column(self, component: str | None, attribute: str) -> pa.Array:
        """An attribute of the events of a component."""
        assert component is not None
        return self.stream.attribute(attribute).take(pa.array(self.at[component]))

    def aggregate(self, one: Aggregate) -> pa.Array:
        """Fail, for single events have no groups."""
        raise AssertionError(f"{one} over two events")
