"""How large lanes are: into how many, and where, a unit's work of a batch is cut.

Without a bound, lanes are about equal. With a bound, once the rule has a price, there are as few of them as
keep the bound. No result depends on the cut.

Sources: Mayer, Tariq, Rothermel 2017, section 4: all events of a lane are there when it starts, so that
nothing of its work is set off against time in between.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from spark_pace.core.columns import Ints
from spark_pace.core.plan.price import Floats
from spark_pace.core.ranges import even_ranges
from spark_pace.core.split.lanes import Piece
from spark_pace.core.split.task import SplitTask

_HALVINGS = 20  # of the doubt about the least weight of the greatest range
_ROUNDING = 1 + 1e-9


def lanes_by_rows(task: SplitTask, rows: Ints) -> list[Piece]:
    """The lanes of work that costs what its rows cost.

    Args:
        task: its plan's `lanes` is the most lanes there are, `least_lane_rows` the fewest rows of one
            where nothing is predicted.
        rows: int64[n], of each thing that must not be cut: a row, a key's stream, a selection.

    Returns:
        The lanes, in order.
    """
    return _pieces(task, rows, even_ranges(rows, task.plan.lanes, task.plan.least_lane_rows))


def lanes_by_calls(task: SplitTask, rows: Ints) -> list[Piece]:
    """The lanes of selections for a Python operator: a call costs far more than its rows, so one is enough.

    Args:
        task: its plan's `lanes` is the most lanes there are.
        rows: int64[n], of each selection.

    Returns:
        The lanes, in order.
    """
    return _pieces(task, rows, even_ranges(np.ones(len(rows), np.int64), task.plan.lanes, 1))


def _pieces(task: SplitTask, rows: Ints, ranges: list[tuple[int, int]]) -> list[Piece]:
    """The lanes, with these ranges unless something is predicted."""
    bound_us, price = task.plan.latency_bound_us, task.price
    if bound_us is None or price is None:
        return [Piece(first, last, int(rows[first:last].sum()), None) for first, last in ranges]
    seconds = price.seconds(rows)
    return [
        Piece(first, last, int(rows[first:last].sum()), float(seconds[first:last].sum()))
        for first, last in fewest_ranges(seconds, task.plan.lanes, bound_us / 1_000_000)
    ]


def fewest_ranges(weights: Floats, most: int, bound: float) -> list[tuple[int, int]]:
    """Cut a run of things into the fewest neighbouring ranges that keep a bound, as far as they can.

    Args:
        weights: float64[n], of each thing.
        most: the most ranges.
        bound: what no range is to weigh more than.

    Returns:
        The ranges, in order, with all things in them. Among all cuts into so many, the greatest weight of
        theirs is about the least.
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
    bounds[-1] = len(ends)  # whatever the weights are, even none that can be compared
    return list(pairwise(bounds))


def _filled(ends: Floats, limit: float, most: int) -> list[int]:
    """The bounds of at most so many ranges, each filled with what it may weigh, and one thing at least."""
    bounds = [0]
    while bounds[-1] < len(ends) and len(bounds) <= most:
        done = float(ends[bounds[-1] - 1]) if bounds[-1] else 0.0
        stop = int(np.searchsorted(ends, (done + limit) * _ROUNDING, "right"))
        bounds.append(max(stop, bounds[-1] + 1))
    return bounds
