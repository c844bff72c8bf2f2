"""The rows that are searched: a sorted table, its partitions, and where the conditions of variables hold.

Conditions are computed of each row before the search as far as they read only rows at a fixed distance.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from spark_pace.core.expr import ARROW_TYPES, Aggregate, Expr, ExprType, evaluate, evaluate_mask
from spark_pace.core.plan.row_pattern import Computed, Navigation, OrderKey, RowPattern
from spark_pace.core.ranks import value_codes, value_orders
from spark_pace.core.tables import Bools, Ints, array


def expression_type(kind: pa.DataType) -> ExprType | None:
    """The type that a column has in expressions; None if it can only be taken as it is."""
    types = pa.types
    if types.is_decimal128(kind) and 0 <= kind.scale <= kind.precision:
        return f"DECIMAL({kind.precision},{kind.scale})"
    tests = {
        "BOOLEAN": types.is_boolean,
        "BIGINT": lambda one: types.is_integer(one) and one != pa.uint64(),
        "DOUBLE": lambda one: types.is_floating(one) and one != pa.float16(),
        "STRING": lambda one: types.is_string(one) or types.is_large_string(one),
        "TIMESTAMP": types.is_timestamp,
        "DATE": types.is_date32,
    }
    return next((name for name, test in tests.items() if test(kind)), None)


def typed(table: pa.Table, name: str) -> pa.Array:
    """A column in the type that it has in expressions."""
    column = array(table, name)
    kind = expression_type(column.type)
    assert kind is not None, column.type
    return column if column.type == ARROW_TYPES[kind] else pc.cast(column, ARROW_TYPES[kind], safe=False)


def sorted_table(table: pa.Table, partition: Sequence[str], order: Sequence[OrderKey]) -> pa.Table:
    """The rows of each partition together, sorted; rows that are equal in `order` stay as they are."""
    ascending = [OrderKey(name, False, True) for name in partition]
    keys = [one for key in (*ascending, *order) for one in _numbers(table, key)]
    if not keys:
        return table
    return table.take(pa.array(np.lexsort(keys[::-1])))


def _numbers(table: pa.Table, key: OrderKey) -> Iterator[npt.NDArray[np.integer[Any]]]:
    """Numbers in the order of a column: whether it is null, if it is anywhere, then those of its values."""
    column = typed(table, key.column)
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.int8())
    if column.null_count:
        null = column.is_null().to_numpy(zero_copy_only=False)
        yield (~null if key.nulls_first else null).view(np.int8)
    (numbers,) = value_orders([column])
    yield ~numbers if key.descending else numbers  # unlike -, ~ has a result for all numbers


def partition_bounds(table: pa.Table, partition: Sequence[str]) -> Ints:
    """int64[partitions + 1], where the rows of each partition begin, and where the last ones end."""
    rows = table.num_rows
    new = np.zeros(max(rows - 1, 0), np.bool_)
    for name in partition:
        new |= np.diff(value_codes(typed(table, name))) != 0
    return np.concatenate([np.zeros(min(rows, 1), np.int64), np.flatnonzero(new) + 1, [rows]]).astype(
        np.int64
    )


@dataclass(frozen=True)
class SlotColumns:
    """What an expression over slots reads: a column for each slot."""

    rows: int
    slots: Sequence[pa.Array]

    def column(self, component: str | None, attribute: str) -> pa.Array:
        """The values of a slot."""
        return self.slots[int(attribute[1:])]

    def aggregate(self, one: Aggregate) -> pa.Array:
        """Fail, for aggregates are slots."""
        raise AssertionError(one)


@dataclass(frozen=True)
class Extent:
    """What is known of partitions of which some rows may be gone, and others may still come.

    Attributes:
        first: see `spark_pace.core.match.row_patterns.compiled.Input`, as are the next two.
        start: see there.
        open: see there.
        matches: int64[partitions], how many matches of each were found before.
    """

    first: Ints
    start: Ints
    open: Ints
    matches: Ints


@dataclass(frozen=True)
class Rows:
    """Sorted rows.

    Attributes:
        table: the rows.
        bounds: see `partition_bounds`.
        of_stream: what is known of the partitions of a stream; None: their rows are all there.
    """

    table: pa.Table
    bounds: Ints
    of_stream: Extent | None = None
    _known: dict[Expr, pa.Array] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """How many there are."""
        return int(self.table.num_rows)

    @property
    def extent(self) -> Extent:
        """What is known of the partitions."""
        none = np.zeros(len(self.bounds) - 1, np.int64)
        return self.of_stream or Extent(self.bounds[:-1], self.bounds, none, none)

    def column(self, component: str | None, attribute: str) -> pa.Array:
        """A column of the input, in the type that it has in expressions."""
        return typed(self.table, attribute)

    def aggregate(self, one: Aggregate) -> pa.Array:
        """Fail, for a row has no group to aggregate."""
        raise AssertionError(one)

    def values(self, of: Expr) -> pa.Array:
        """What is computed of each row."""
        if of not in self._known:
            self._known[of] = evaluate(of, self)
        return self._known[of]

    def shifted(self, of: Expr, shift: int) -> pa.Array:
        """What is computed of the row that lies `shift` rows behind each row in its partition."""
        values = self.values(of)
        if not shift:
            return values
        begin = np.repeat(self.bounds[:-1], np.diff(self.bounds))
        end = np.repeat(self.bounds[1:], np.diff(self.bounds))
        at = np.arange(self.rows) + shift
        return taken(values, at, (at >= begin) & (at < end))


def taken(values: pa.Array, at: Ints, known: Bools) -> pa.Array:
    """The values at these places; null where the place is not known."""
    return values.take(pa.array(np.where(known, at, 0), mask=~known))


def holding(plan: RowPattern, rows: Rows) -> Ints:
    """int64[n], of each row a bit for each variable: the fixed parts of its condition hold."""
    holds = np.zeros(rows.rows, np.int64)
    for variable, condition in enumerate(plan.conditions):
        mask = np.ones(rows.rows, np.bool_)
        for part in condition.fixed:
            mask &= evaluate_mask(part.expr, SlotColumns(rows.rows, _slots(part, rows)))
        holds |= mask.astype(np.int64) << variable
    return holds


def _slots(part: Computed, rows: Rows) -> list[pa.Array]:
    columns = []
    for slot in part.slots:
        assert isinstance(slot, Navigation) and slot.of is not None, slot
        columns.append(rows.shifted(slot.of, slot.shift))
    return columns


def reaches(plan: RowPattern, rows: Rows) -> Ints:
    """int64[n], the first row that is too late for a match that begins in each row; int64[0] without WITHIN.

    The times ascend in each partition, as `ORDER BY` sorts them first; a row without a time is in no match
    with others.
    """
    if plan.within_us is None:
        return np.zeros(0, np.int64)
    column = typed(rows.table, plan.order[0].column).cast(pa.timestamp("us")).cast(pa.int64())
    known = column.is_valid().to_numpy(zero_copy_only=False)
    times = column.fill_null(0).to_numpy()
    reach = np.arange(rows.rows) + 1
    for begin, end in zip(rows.bounds[:-1].tolist(), rows.bounds[1:].tolist(), strict=True):
        there = begin + np.flatnonzero(known[begin:end])
        if len(there):
            behind = np.searchsorted(times[there], times[there] + plan.within_us, "left")
            reach[there] = there[0] + behind
    return reach
