"""Completions: for each initiator the first event that completes a candidate that starts there."""

from __future__ import annotations

import numpy as np

from spark_pace import ways
from spark_pace.core.columns import Ints
from spark_pace.core.match.candidates import Ranges, candidates
from spark_pace.core.match.compiled_search import searches_of
from spark_pace.core.match.first import nearest
from spark_pace.core.match.search.alternatives import Alternatives
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
    if isinstance(search, Alternatives):
        return _of_alternatives(search, starts, end)
    technique = search.techniques.completion
    if technique.how == "nearest":
        rows = starts
        for level in range(1, search.steps):
            rows = search.following(level, rows)
        return np.where(rows < end, rows, -1)
    if technique.how != "walk" and technique.compiled:
        found: Ints = searches_of(search).completing(search, starts, end)
        return found
    closes, ranges = np.full(len(starts), -1, np.int64), Ranges(starts, starts, end)
    if technique.how == "walk":
        index, matrix = nearest(search, ranges)
        closes[index] = matrix[:, -1]
    else:
        _within_horizons(search, ranges, closes)
    return closes


def _of_alternatives(search: Alternatives, starts: Ints, end: Ints) -> Ints:
    """The first row that completes a candidate of any alternative from each start; -1 where no row does."""
    closes = np.full(len(starts), search.stream.rows)
    for part in search.parts:
        mine = np.flatnonzero(np.isin(starts, part.initiators))
        own = completions(part, starts[mine], end[mine])
        closes[mine] = np.minimum(closes[mine], np.where(own < 0, search.stream.rows, own))
    return np.where(closes < search.stream.rows, closes, -1)


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
