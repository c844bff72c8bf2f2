"""Aggregates over all events of each span, without a copy of the events that spans share.

Only DECIMALs are copied for each span that holds them, those of about `ways.PIECE_ROWS` events at a time.
Numbers of events, and sums of whole numbers, are differences of running sums over the lane. The least and the
greatest value of each span are taken from ranks. A sum of floating-point numbers rests on the order in which
they are added, so each span's are added one after the other, in stream order, however the stream is cut.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from spark_pace import ways
from spark_pace.core.columns import Bools, Ints
from spark_pace.core.expr import evaluate, evaluate_mask
from spark_pace.core.match.search.groups import aggregated
from spark_pace.core.match.stream import Stream
from spark_pace.core.plan.rule import Rule
from spark_pace.core.ranges import expand, pieces
from spark_pace.core.ranks import value_ranks
from spark_pace.core.tables import bools

Floats: TypeAlias = npt.NDArray[np.float64]
# What some rows (or a slice of them) add to the sums of their spans.
Terms: TypeAlias = Callable[[Ints | int, Ints | slice], Floats]

_HALF = 32  # sums of whole numbers are made of the sums of their halves, which do not overflow
_LOW = (1 << _HALF) - 1
_LARGEST = (1 << 63) - 1  # sums that are no greater do not overflow


def aggregate_spans(rule: Rule, stream: Stream, start: Ints, end: Ints) -> tuple[Ints, pa.Table]:
    """The spans that give a match, and the fields of these matches.

    Args:
        rule: a rule that aggregates.
        stream: the lane's stream.
        start: int64[s], the first row of each span.
        end: int64[s], the row after its last one.

    Returns:
        The indices of the spans for which `having` is true, and a table with a row for each.
    """
    kept = np.arange(len(start))
    if rule.having is not None:
        kept = np.flatnonzero(evaluate_mask(rule.having, SpanAggregates(stream, start, end)))
    columns = SpanAggregates(stream, start[kept], end[kept])
    return kept, pa.table({field.name: evaluate(field.expr, columns) for field in rule.emit if field.expr})


@dataclass(frozen=True)
class SpanAggregates:
    """What expressions over the events of spans see. No span is empty.

    Attributes:
        stream: the lane's stream.
        start: int64[s], the first row of each span.
        end: int64[s], the row after its last one.
    """

    stream: Stream
    start: Ints
    end: Ints

    @property
    def rows(self) -> int:
        """How many spans there are."""
        return len(self.start)

    def column(self, component: str | None, attribute: str) -> pa.Array:
        """An attribute that all events of a span share, or that of the event that opened it."""
        return self.stream.attribute(attribute).take(pa.array(self.start))

    def aggregate(self, function: str, component: str | None, attribute: str | None) -> pa.Array:
        """An aggregate over each span's events; `first` and `last` alone count nulls."""
        if attribute is None:
            return pa.array(self.end - self.start)
        values = self.stream.attribute(attribute)
        if function in ("first", "last"):
            return values.take(pa.array(self.start if function == "first" else self.end - 1))
        if function in ("min", "max"):
            return self._extreme(values, least=function == "min")
        valid = bools(pc.is_valid(values))
        count = self._difference(valid) if values.null_count else self.end - self.start
        if function == "count":
            return pa.array(count)
        if function == "stddev":
            return self._deviation(values, valid, count)
        if function == "sum":
            return self._sum(values, valid, count)
        return _quotient(self._total(values, valid), count, count > 0)

    def _difference(self, steps: npt.NDArray[np.generic]) -> Ints:
        """int64[s], the sum of the whole numbers of each span's rows."""
        running = np.append(0, np.cumsum(steps, dtype=np.int64))
        return running[self.end] - running[self.start]  # type: ignore[no-any-return]

    def _halves(self, values: pa.Array) -> tuple[Ints, Ints]:
        """The sum of whole numbers is ``high * 2 ** 32 + low``, low from 0 to 2 ** 32 - 1; int64[s] each."""
        numbers = pc.fill_null(values, 0).to_numpy()
        most = max(-int(numbers.min(initial=0)), int(numbers.max(initial=0)))
        if most * len(numbers) <= _LARGEST:
            total = self._difference(numbers)
            return total >> _HALF, total & _LOW
        high, low = self._difference(numbers >> _HALF), self._difference(numbers & _LOW)
        return high + (low >> _HALF), low & _LOW

    def _sum(self, values: pa.Array, valid: Bools, count: Ints) -> pa.Array:
        """Null where there is nothing to add, or a whole number does not fit in 64 bits."""
        if pa.types.is_decimal(values.type):
            return self._exact_sum(values)
        if not pa.types.is_integer(values.type):
            return pa.array(self._total(values, valid), mask=count == 0)
        high, low = self._halves(values)
        fits = high == (high << _HALF) >> _HALF
        return pa.array((high << _HALF) + low, mask=(count == 0) | ~fits)

    def _exact_sum(self, values: pa.Array) -> pa.Array:
        """The sum of each span's DECIMALs, null where there is nothing to add."""
        sums = [aggregated("sum", values.slice(0, 0), np.zeros(0, np.int64), 0)]
        for piece in pieces(self.end - self.start):
            spans, rows = expand(self.start[piece], self.end[piece])
            sums.append(aggregated("sum", values.take(pa.array(rows)), spans, piece.stop - piece.start))
        return pa.concat_arrays(sums)

    def _total(self, values: pa.Array, valid: Bools) -> Floats:
        """float64[s], the sum of each span's values."""
        if pa.types.is_integer(values.type):
            high, low = self._halves(values)
            return (high * float(1 << _HALF) + low).astype(np.float64)
        numbers = np.where(valid, pc.fill_null(values, 0.0).to_numpy(), 0.0)
        return self._added(lambda _, rows: numbers[rows])

    def _deviation(self, values: pa.Array, valid: Bools, count: Ints) -> pa.Array:
        """The standard deviation of a sample: from the mean, which a first pass finds."""
        numbers = pc.fill_null(values, 0).cast(pa.float64()).to_numpy()
        mean = self._total(values, valid) / np.maximum(count, 1)

        def squared(spans: Ints | int, rows: Ints | slice) -> Floats:
            away = np.where(valid[rows], numbers[rows] - mean[spans], 0.0)
            return away * away

        return pc.sqrt(_quotient(self._added(squared), count - 1, count > 1))

    def _added(self, terms: Terms) -> Floats:
        """float64[s], the terms of each span's rows, added in stream order.

        The loop takes one step for each span, or one for each event of the longest, whichever is less.
        """
        lengths = self.end - self.start
        sums = np.zeros(self.rows)
        if self.rows and ways.is_added_by_span(int(lengths.max()), self.rows):
            for span in range(self.rows):
                sums[span] = np.cumsum(terms(span, slice(self.start[span], self.end[span])))[-1]
            return sums + 0.0  # which makes 0.0 of -0.0
        order = np.argsort(-lengths, kind="stable")
        first = self.start[order]
        longer = np.searchsorted(-lengths[order], -np.arange(lengths.max(initial=0)))  # than each step
        by_length = np.zeros(self.rows)
        for step, count in enumerate(longer.tolist()):
            by_length[:count] += terms(order[:count], first[:count] + step)
        sums[order] = by_length
        return sums

    def _extreme(self, values: pa.Array, *, least: bool) -> pa.Array:
        """The least or greatest value of each span; as in SQL, NaN is greater than every number."""
        if pa.types.is_floating(values.type):
            values = pc.add(values, 0.0)  # which makes 0.0 of -0.0, so that equal values look alike
        (ranks,) = value_ranks([values])
        none = len(ranks) if least else -1
        row_of = np.zeros(len(ranks) + 1, np.int64)
        row_of[ranks] = np.arange(len(ranks))
        ranks = np.append(np.where(ranks < 0, none, ranks), none)
        fold = np.minimum if least else np.maximum
        # every second range is from a span's end to the next one's start
        bounds = np.column_stack([self.start, self.end]).ravel()
        found = fold.reduceat(ranks, bounds)[::2] if self.rows else bounds
        return values.take(pa.array(row_of[found], mask=found == none))


def _quotient(numerator: Floats, denominator: Ints, known: Bools) -> pa.Array:
    """Numerator / denominator where it is known, else null."""
    return pa.array(numerator / np.where(known, denominator, 1), mask=~known)
