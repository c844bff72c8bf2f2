"""Completions: for each initiator the first event that completes a candidate that starts there."""

from __future__ import annotations

import numpy as np

from spark_pace import ways
from spark_pace.core.columns import Ints, has_bit
from spark_pace.core.match.candidates import Ranges, candidates
from spark_pace.core.match.first import depth_first, nearest
from spark_pace.core.match.search.any_order import AnyOrder
from spark_pace.core.match.search.nearest_sets import nearest_sets
from spark_pace.core.match.search.search import Search


def completions(search: Search, starts: Ints, end: Ints) -> Ints:
    """The first row that completes a candidate from each start.

    Args:
        search: the pattern over a stream.
        starts: int64[m], rows of initiators, ascending.
        end: int64[m], the row after the last one a candidate may use.

    Returns:
        int64[m]; -1 where no row does.
    """
    if isinstance(search, AnyOrder):
        return _in_any_order(search, starts, end)
    technique = search.techniques.completion
    if technique.how == "nearest":
        rows = starts
        for level in range(1, search.steps):
            rows = search.following(level, rows)
        return np.where(rows < end, rows, -1)
    closes = np.full(len(starts), -1, np.int64)
    ranges = Ranges(starts, starts, end)
    if technique.how == "walk":
        index, matrix = nearest(search, ranges)
        closes[index] = matrix[:, -1]
    elif technique.compilable and search.many:
        index, matrix = depth_first(search, ranges, shorten=True)
        closes[index] = matrix[:, -1]
    else:
        _within_horizons(search, ranges, closes)
    return closes


def _in_any_order(search: AnyOrder, starts: Ints, end: Ints) -> Ints:
    """The completions of a conjunction; see `completions`.

    Where each order of its components is searched as a sequence, the first completion of all orders counts.
    """
    rows, how = search.stream.rows, search.techniques.completion.how
    if how == "nearest set":
        closes = search.lasts(nearest_sets(search, starts, starts, backwards=False))
        return np.where(closes < end, closes, -1)
    closes = np.full(len(starts), -1, np.int64)
    if how == "all candidates":
        _within_horizons(search, Ranges(starts, starts, end), closes)
        return closes
    for order in search.orders:
        mine = np.flatnonzero(has_bit(search.stream.mask[starts], order[0]))
        found = completions(search.in_sequence(order), starts[mine], end[mine])
        least = np.minimum(*(np.where(one < 0, rows, one) for one in (found, closes[mine])))
        closes[mine] = np.where(least < rows, least, -1)
    return closes


def _within_horizons(search: Search, ranges: Ranges, closes: Ints) -> None:
    """Write the completions into `closes`, which is -1 where none is known.

    All candidates within the next few rows of each start are made, then within ever more rows, until there is
    one.
    """
    starts, end = ranges.anchors, ranges.end
    waiting = np.arange(len(starts))
    horizon = ways.FIRST_HORIZON_ROWS
    while len(waiting):
        reach = np.minimum(end[waiting], starts[waiting] + horizon)
        _first_ends(search, starts, closes, waiting, reach)
        waiting = waiting[(closes[waiting] < 0) & (reach < end[waiting])]
        horizon *= 4


def _first_ends(search: Search, starts: Ints, closes: Ints, waiting: Ints, reach: Ints) -> None:
    """Write into `closes` the least last row of each waiting start's candidates that end before `reach`.

    `waiting` are indices of starts, and `reach` has a row for each of them.
    """
    for found in candidates(search, Ranges(starts[waiting], starts[waiting], reach)):
        index = np.searchsorted(starts, search.firsts(found))
        least = np.full(len(starts), search.stream.rows, np.int64)
        np.minimum.at(least, index, search.lasts(found))
        touched = np.unique(index)
        before = np.where(closes[touched] < 0, search.stream.rows, closes[touched])
        closes[touched] = np.minimum(before, least[touched])
