"""Where the conditions of variables hold, as far as they read only rows at a fixed distance."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from spark_pace.core.columns import Ints
from spark_pace.core.expr import evaluate_mask
from spark_pace.core.match.row_patterns.rows import Rows, SlotColumns, typed
from spark_pace.core.plan.row_pattern import Computed, Navigation, RowPattern


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
