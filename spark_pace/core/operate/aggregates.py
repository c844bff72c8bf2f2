"""Aggregates over all events of each span, without a copy of the events that spans share.

The lane has events or, for spans on a grid, rows of panes; see `spark_pace.core.contents`. Sums are exact and
rounded once, so they are the same however the stream is cut.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from spark_pace.core.columns import Ints
from spark_pace.core.contents import Contents, held_in
from spark_pace.core.expr import Aggregate, evaluate, evaluate_mask
from spark_pace.core.plan.rule import Rule
from spark_pace.core.ranges import expand, pieces
from spark_pace.core.summaries.column_sums import deviation
from spark_pace.core.summaries.distribution import FUNCTIONS, distributed
from spark_pace.core.summaries.sketches import sizes


def aggregate_spans(rule: Rule, spans: SpanAggregates | SharedAggregates) -> tuple[Ints, pa.Table]:
    """Find the spans that give a match, and compute the fields of ``emit`` for them.

    Returns:
        the indices of these spans: of all, or of those for which `Rule.having` is true; and a table of the
            fields with a row for each of them.
    """
    kept = np.arange(spans.rows)
    if rule.having is not None:
        kept = np.flatnonzero(evaluate_mask(rule.having, spans))
        spans = spans.take(kept)
    return kept, pa.table({field.name: evaluate(field.expr, spans) for field in rule.emit if field.expr})


@dataclass(frozen=True)
class SpanAggregates:
    """What expressions over the events of spans see. No span is empty.

    Attributes:
        contents: what the rows of the lane hold.
        start: int64[s], the first row of each span.
        end: int64[s], the row after its last one.
    """

    contents: Contents
    start: Ints
    end: Ints

    @property
    def rows(self) -> int:
        """How many spans there are."""
        return len(self.start)

    def take(self, index: Ints) -> SpanAggregates:
        """The same of the spans at these indices."""
        return SpanAggregates(self.contents, self.start[index], self.end[index])

    def column(self, component: str | None, attribute: str) -> pa.Array:
        """An attribute that all events of a span share, or that of the event that opened it."""
        return self.contents.stream.attribute(attribute).take(pa.array(self.start))

    def aggregate(self, one: Aggregate) -> pa.Array:
        """An aggregate over each span's events; `first` and `last` alone count nulls."""
        start, end, contents = self.start, self.end, self.contents
        function, attribute = one.function, one.attribute
        if attribute is None:
            return pa.array(contents.events(start, end))
        if function in ("first", "last", "min", "max"):
            return held_in(contents, function, attribute, start, end)
        if function in FUNCTIONS:
            return self._distributed(one, contents.values("each", attribute))
        if function == "approx_count_distinct":
            return pa.array(sizes(contents.registers(attribute, start, end)))
        count = contents.known(attribute, start, end)
        if function == "count":
            return pa.array(count)
        sums = contents.sums(attribute, start, end)
        if function == "sum":
            return sums.totals(contents.type_of(attribute), count)
        if function == "avg":
            return sums.means(count)
        assert function == "stddev", function
        squares = contents.sums(attribute, start, end, squared=True)
        return deviation(sums, squares, count)

    def _distributed(self, one: Aggregate, values: pa.Array) -> pa.Array:
        """What needs all values of each span, in pieces in which a value stands once for each span."""
        found = [distributed(one, values.slice(0, 0), np.zeros(0, np.int64), 0)]
        for piece in pieces(self.end - self.start):
            owner, rows = expand(self.start[piece], self.end[piece])
            of_spans = values.take(pa.array(rows))
            found.append(distributed(one, of_spans, owner, piece.stop - piece.start))
        return pa.concat_arrays(found)


@dataclass(frozen=True)
class SharedAggregates:
    """The same for some spans of a lane that rules share: each aggregate is computed once, of all its spans.

    Attributes:
        lane: all spans of the lane.
        index: int64[s], the spans.
        known: what is computed.
    """

    lane: SpanAggregates
    index: Ints
    known: dict[Aggregate, pa.Array]

    @property
    def rows(self) -> int:
        """How many spans there are."""
        return len(self.index)

    def take(self, index: Ints) -> SharedAggregates:
        """The same of the spans at these indices."""
        return replace(self, index=self.index[index])

    def column(self, component: str | None, attribute: str) -> pa.Array:
        """See `SpanAggregates`."""
        return self.lane.take(self.index).column(component, attribute)

    def aggregate(self, one: Aggregate) -> pa.Array:
        """See `SpanAggregates`."""
        if one not in self.known:
            self.known[one] = self.lane.aggregate(one)
        return self.known[one].take(pa.array(self.index))
