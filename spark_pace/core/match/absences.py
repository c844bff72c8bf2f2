"""Tests negated components in first place: which events cannot begin a match, because of one before them.

Events are grouped by key, or by span, and by the values in which the conditions say that both events are
equal. If the conditions say nothing else, only the time of the last negated event before counts; else both
events are searched as a sequence of two.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_pace.core.expr import EventColumns, evaluate
from spark_pace.core.match.first import greatest
from spark_pace.core.match.search.search import Search
from spark_pace.core.match.stream import Stream, window_start
from spark_pace.core.plan.earlier_tests import AbsenceTest, AbsenceTests
from spark_pace.core.plan.rule import Pattern
from spark_pace.core.ranks import distinct, segments_of
from spark_pace.core.tables import LEAST, MASK, SEQ, TIME, Bools, Ints, has_bit, numbers, with_column


@dataclass(frozen=True)
class Grouped:
    """The events that forbid, and those that may be forbidden, in groups of the same key and equal values.

    Attributes:
        keys: int64[g], the key of each group.
        values: for each pair of `AbsenceTest.equal` the g values.
        group: int64[m], ascending.
        rows: int64[m], the events, which ascend in each group. An event that forbids others of its group, and
            may be forbidden itself, is there twice: first as the latter.
        forbids: bool[m], which of them forbid.
    """

    keys: Ints
    values: tuple[pa.Array, ...]
    group: Ints
    rows: Ints
    forbids: Bools

    @property
    def starts(self) -> Ints:
        """int64[g], where each group begins in `rows`."""
        return segments_of(self.group)

    def last_before(self, time: Ints, known: Ints) -> Ints:
        """int64[m], for each event, if there are any, the time of the last one before it that forbids.

        Args:
            time: int64[m], the times of the events.
            known: int64[g], the time of the last one of each group that is not here; `NOTHING_US` if none.
        """
        count = len(time)
        before = np.append(-1, np.maximum.accumulate(np.where(self.forbids, np.arange(count), -1))[:-1])
        first = np.repeat(self.starts, np.diff(np.append(self.starts, count)))
        return np.where(before >= first, time[before], known[self.group])


def grouped(test: AbsenceTest, events: pa.Table, keys: Ints) -> Grouped:
    """Group the events of a test; those with a null among the values that must be equal are in no group.

    Args:
        test: the test.
        events: n events with ``@mask`` and the attributes of the test; those of one key are in stream order.
        keys: int64[n], their keys.
    """
    mask = numbers(events, MASK)
    negated, first = (np.flatnonzero(has_bit(mask, bit)) for bit in (test.bit, 0))
    rows, forbids = np.append(negated, first), np.arange(len(negated) + len(first)) < len(negated)
    columns, known = _values(test, events, (negated, first)), np.ones(len(rows), np.bool_)
    for column in columns:
        known &= pc.is_valid(column).to_numpy(zero_copy_only=False)
    if not known.all():
        rows, forbids = rows[known], forbids[known]
        columns = [column.filter(pa.array(known)) for column in columns]
    one_of, group = distinct([pa.array(keys[rows]), *columns])
    order = np.argsort(2 * (group * len(mask) + rows) + forbids)
    values = tuple(column.take(pa.array(one_of)) for column in columns)
    return Grouped(keys[rows[one_of]], values, group[order], rows[order], forbids[order])


def _values(test: AbsenceTest, events: pa.Table, rows: tuple[Ints, Ints]) -> list[pa.Array]:
    """The values that must be equal, for each pair: of the events that forbid, then of the others."""
    tables = [EventColumns(events.take(pa.array(of_side))) for of_side in rows]
    return [
        pa.concat_arrays([evaluate(side, table) for side, table in zip(pair, tables, strict=True)])
        for pair in test.equal
    ]


def forbidden_by_steps(steps: Pattern, events: pa.Table, forbids: Bools, group: Ints) -> Ints:
    """Which of m events are forbidden by one before them in their group, with which they are `steps`.

    Args:
        steps: `AbsenceTest.steps`.
        events: m events; those of one group are in stream order.
        forbids: bool[m], which of them forbid; the others may be forbidden.
        group: int64[m].
    """
    order = np.argsort(group, kind="stable")
    seen = events.take(pa.array(order))
    seen = with_column(seen, MASK, np.where(forbids[order], 1, 2).astype(np.uint16))
    seen = with_column(seen, SEQ, np.arange(len(order)))
    search = Search(Stream(seen, segments_of(group[order])), steps)
    last = search.terminators
    matrix, _ = greatest(search, last, window_start(search.stream, last, steps.within))
    return order[matrix[:, -1]]


def inside_spans(tests: AbsenceTests, events: pa.Table, spans: Ints) -> pa.Table:
    """Clear the first component's bit of ``@mask`` where an event of its span forbids it, and the tests' own.

    Args:
        tests: the tests.
        events: n events with the attributes of the tests, span by span, in stream order.
        spans: int64[n], their spans.
    """
    return without_bits(events, ((test, _inside(test, events, spans)) for test in tests.tests))


def without_bits(events: pa.Table, forbidden: Iterable[tuple[AbsenceTest, Ints]]) -> pa.Table:
    """Clear the bits of ``@mask`` of some tests, and the first component's in the rows that each forbids."""
    mask = numbers(events, MASK)
    cleared = np.zeros(len(mask), np.uint16)
    for test, rows in forbidden:
        cleared |= np.uint16(1 << test.bit)
        cleared[rows] |= 1
    return with_column(events, MASK, mask & ~cleared)


def _inside(test: AbsenceTest, events: pa.Table, spans: Ints) -> Ints:
    """The rows of the events that one before them in their span forbids."""
    among = grouped(test, events, spans)
    if not len(among.rows):
        return among.rows
    if test.steps is not None:
        seen = events.take(pa.array(among.rows))
        return among.rows[forbidden_by_steps(test.steps, seen, among.forbids, among.group)]
    time = numbers(events, TIME)[among.rows]
    last_us = among.last_before(time, np.full(len(among.keys), LEAST))
    least = LEAST + 1 if test.within_us is None else time - test.within_us
    return among.rows[~among.forbids & (last_us >= least)]
