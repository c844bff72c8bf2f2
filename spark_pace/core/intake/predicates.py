"""Evaluates all predicates of a plan on a table of events."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_pace.core.columns import Bools, Ints
from spark_pace.core.expr import ARROW_TYPES, EventColumns, evaluate_mask
from spark_pace.core.intake.bitmaps import Bitmap, bitmap_of, bitmap_of_rows
from spark_pace.core.plan.lookups import Lookup, Sought
from spark_pace.core.plan.plan import Plan


@dataclass(frozen=True)
class _Events(EventColumns):
    """The attributes that expressions read: of all rows of a table, or of some.

    Attributes:
        at: the rows; None: all rows.
        known: columns of the whole table that were read so far.
    """

    at: pa.Array | None = None
    known: dict[str, pa.Array] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """The number of events."""
        return int(self.events.num_rows) if self.at is None else len(self.at)

    def column(self, component: str | None, attribute: str) -> pa.Array:
        """The values of an attribute."""
        if attribute not in self.known:  # so that a column's chunks are put together once
            self.known[attribute] = super().column(component, attribute)
        whole = self.known[attribute]
        return whole if self.at is None else whole.take(self.at)

    def some(self, rows: Ints) -> _Events:
        """The attributes of the events at these rows of the table."""
        return _Events(self.events, pa.array(rows), self.known)


def held(plan: Plan, table: pa.Table) -> list[Bitmap]:
    """For each predicate of the plan, the bitmap of the events for which it holds.

    A predicate that is looked up by a constant is tested only on the events with this constant.
    """
    events, lookups = _Events(table), plan.lookups
    found = {number: bitmap_of(evaluate_mask(plan.predicates[number], events)) for number in lookups.others}
    shared = [evaluate_mask(expr, events) for expr in lookups.shared]
    for lookup in lookups.columns:
        for sought, rows in _looked_up(lookup, events):
            found[sought.number] = bitmap_of_rows(_tested(sought, rows, shared, events), table.num_rows)
    return [found[number] for number in range(len(plan.predicates))]


def _looked_up(lookup: Lookup, events: _Events) -> Iterator[tuple[Sought, Ints]]:
    """Yield each predicate of a lookup with the rows that have its constant, int64[m], ascending."""
    constants = pa.array(lookup.constants, ARROW_TYPES[lookup.column.type])
    places = pc.index_in(events.column(None, lookup.column.attribute), value_set=constants)
    rows = np.flatnonzero(pc.is_valid(places).to_numpy(zero_copy_only=False))
    code = pc.drop_null(places).to_numpy()
    if len(constants) <= np.iinfo(np.uint16).max:
        code = code.astype(np.uint16)  # numpy sorts these by radix
    order = np.argsort(code, kind="stable")
    rows, bounds = rows[order], np.searchsorted(code[order], np.arange(len(constants) + 1))
    for sought in lookup.sought:
        yield sought, rows[bounds[sought.constant] : bounds[sought.constant + 1]]


def _tested(sought: Sought, rows: Ints, shared: list[Bools], events: _Events) -> Ints:
    """The rows for which the rest of the predicate holds too."""
    for number in sought.shared:
        rows = rows[shared[number][rows]]
    if sought.rest is None or not len(rows):
        return rows
    return rows[evaluate_mask(sought.rest, events.some(rows))]
