"""Decides how many lanes a unit's work of a batch is cut into, and where.

Without a bound, the lanes are about equal. With a bound, once the rule has a price, there are as few lanes as
keep the bound. No result depends on the cut.

Sources: Mayer, Tariq, Rothermel 2017, section 4. Here all events of a lane are there when it starts, so no
    time
between their arrivals is subtracted from the predicted work.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from spark_pace.core.plan.price import Floats
from spark_pace.core.ranks import even_ranges
from spark_pace.core.split.task import Piece, SplitTask
from spark_pace.core.tables import Ints

_HALVINGS = 20  # halvings of the interval that has the weight to find
_ROUNDING = 1 + 1e-9


def lanes_by_rows(task: SplitTask, rows: Ints) -> list[Piece]:
    """Cut work into lanes whose costs are those of their rows.

    Args:
        task: its plan's `lanes` is the greatest number of lanes, `least_lane_rows` the fewest rows of one if
            there is no prediction.
        rows: int64[n], the rows of each thing that must not be cut: a row, a key's stream, a selection.

    Returns:
        The lanes, in order.
    """
    return _pieces(task, rows, even_ranges(rows, task.plan.lanes, task.plan.least_lane_rows))


def lanes_by_calls(task: SplitTask, rows: Ints) -> list[Piece]:
    """Cut selections into lanes for a Python operator; one may be a lane, because calls are expensive.

    Args:
        task: its plan's `lanes` is the greatest number of lanes.
        rows: int64[n], the rows of each selection.

    Returns:
        The lanes, in order.
    """
    return _pieces(task, rows, even_ranges(np.ones(len(rows), np.int64), task.plan.lanes, 1))


def _pieces(task: SplitTask, rows: Ints, ranges: list[tuple[int, int]]) -> list[Piece]:
    """The lanes: by the predicted seconds if there is a bound and a price, else with these ranges."""
    bound_us, price = task.plan.latency_bound_us, task.price
    if bound_us is None or price is None:
        return [Piece(first, last, int(rows[first:last].sum()), None) for first, last in ranges]
    seconds = price.seconds(rows)
    return [
        Piece(first, last, int(rows[first:last].sum()), float(seconds[first:last].sum()))
        for first, last in fewest_ranges(seconds, task.plan.lanes, bound_us / 1_000_000)
    ]


def fewest_ranges(weights: Floats, most: int, bound: float) -> list[tuple[int, int]]:
    """Cut n things into the fewest neighbouring ranges that keep a bound, as far as that is possible.

    Args:
        weights: float64[n], the weight of each thing.
        most: the greatest number of ranges.
        bound: the greatest weight of a range.

    Returns:
        The ranges (first, last + 1), in order. No cut into as many ranges has a heaviest range that is much
        lighter.
    """
    ends = np.cumsum(weights)
    count = len(_filled(ends, bound, most)) - 1
    if count < 2:
        return [(0, len(weights))] if count else []
    low, high = max(float(ends[-1]) / count, float(weights.max())), float(ends[-1])
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if _filled(ends, middle, count)[-1] == len(ends) else (middle, high)
    bounds = _filled(ends, high, count)
    bounds[-1] = len(ends)  # also for weights that cannot be compared, such as NaN
    return list(pairwise(bounds))


def _filled(ends: Floats, limit: float, most: int) -> list[int]:
    """The bounds of at most `most` ranges, each filled up to `limit`, with at least one thing in it."""
    bounds = [0]
    while bounds[-1] < len(ends) and len(bounds) <= most:
        done = float(ends[bounds[-1] - 1]) if bounds[-1] else 0.0
        stop = int(np.searchsorted(ends, (done + limit) * _ROUNDING, "right"))
        bounds.append(max(stop, bounds[-1] + 1))
    return bounds
