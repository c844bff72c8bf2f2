"""How large lanes are: into how many, and where, a unit's work of a batch is cut."""

from __future__ import annotations

import numpy as np

from spark_pace.core.columns import Ints, even_ranges
from spark_pace.core.plan.plan import Plan


def lanes_by_rows(plan: Plan, rows: Ints) -> list[tuple[int, int]]:
    """The lanes of work that costs what its rows cost.

    Args:
        plan: its `lanes` is the most lanes there are, its `lane_rows` the fewest rows of one.
        rows: int64[n], of each thing that must not be cut: a row, a key's stream, a selection.

    Returns:
        For each lane the range of these things, in order.
    """
    return even_ranges(rows, plan.lanes, plan.lane_rows)


def lanes_by_calls(plan: Plan, selections: int) -> list[tuple[int, int]]:
    """The lanes of selections for a Python operator: a call costs far more than its rows, so one is enough.

    Returns:
        For each lane the range of its selections, in order.
    """
    return even_ranges(np.ones(selections, np.int64), plan.lanes, 1)
