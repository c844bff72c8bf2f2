"""Aggregates over groups of events, as ``where`` and ``emit`` read them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_pace.core.columns import Ints
from spark_pace.core.expr import Aggregate
from spark_pace.core.ranks import float_orders, floats_of
from spark_pace.core.summaries.column_sums import deviation, squares_of, sums_of
from spark_pace.core.summaries.distribution import FUNCTIONS, distributed
from spark_pace.core.tables import bools

_KERNELS = {"count": "count", "min": "min", "max": "max"}


def aggregated(one: Aggregate, values: pa.Array | None, owner: Ints, rows: int) -> pa.Array:
    """An aggregate over the events of each group. Nulls count for `first` and `last` only.

    Floating-point numbers are added one after the other, as compiled searches add them.

    Args:
        one: the aggregate.
        values: of n events, each group's in stream order; None for ``count(x)``, which counts events.
        owner: int64[n], ascending, the group of each event.
        rows: how many groups there are. For a group without events a count is 0, anything else null.
    """
    if values is None:
        return pa.array(np.bincount(owner, minlength=rows))
    function = one.function
    if function in FUNCTIONS:
        return distributed(one, values, owner, rows)
    if function in ("first", "last"):
        return _first_or_last(function, owner, values, rows)
    if function in ("sum", "avg", "stddev"):
        return _summed(function, values, owner, rows)
    if function in ("min", "max") and pa.types.is_floating(values.type):
        return _extreme_float(one, values, owner, rows)
    assert function in _KERNELS, function
    groups = pa.table({"group": owner, "value": values}).group_by("group", use_threads=False)
    result = groups.aggregate([("value", _KERNELS[function])])
    present = result.column("group").to_numpy()
    column = result.column(f"value_{_KERNELS[function]}").combine_chunks()
    return _scatter(column, present, rows, 0 if function == "count" else None)


def _first_or_last(function: str, owner: Ints, values: pa.Array, rows: int) -> pa.Array:
    groups, first, counts = np.unique(owner, return_index=True, return_counts=True)
    at = first if function == "first" else first + counts - 1
    return _scatter(values.take(pa.array(at)), groups, rows, None)


def _summed(function: str, values: pa.Array, owner: Ints, rows: int) -> pa.Array:
    """The sum, the mean or the standard deviation of each group."""
    count = np.bincount(owner[bools(pc.is_valid(values))], minlength=rows)
    if function != "stddev" and pa.types.is_floating(values.type):
        total = np.bincount(owner, pc.fill_null(values, 0.0).to_numpy(), rows)
        return pa.array(total / np.maximum(count, 1) if function == "avg" else total, mask=count == 0)
    end = np.cumsum(events := np.bincount(owner, minlength=rows))
    sums = sums_of(values).over(end - events, end)
    if function == "stddev":
        return deviation(sums, squares_of(values).over(end - events, end), count)
    return sums.means(count) if function == "avg" else sums.totals(values.type, count)


def _extreme_float(one: Aggregate, values: pa.Array, owner: Ints, rows: int) -> pa.Array:
    """The least or greatest number of each group; as in SQL, NaN is greater than every number."""
    null = ~bools(pc.is_valid(values))
    orders = pa.array(float_orders(pc.fill_null(values, 0.0).to_numpy()), mask=null)
    found = aggregated(one, orders, owner, rows)
    return pa.array(floats_of(pc.fill_null(found, 0).to_numpy()), mask=~bools(pc.is_valid(found)))


def _scatter(values: pa.Array, groups: Ints, rows: int, missing: int | None) -> pa.Array:
    """The values by row: `groups` says the row of each value; rows without a value get `missing`."""
    place = np.full(rows, -1, np.int64)
    place[groups] = np.arange(len(groups))
    column = values.take(pa.array(place, mask=place < 0))
    return column if missing is None else column.fill_null(missing)
