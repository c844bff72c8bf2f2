"""Consumption *selected* with at most one open selection: which initiators open one, one after the other.

An initiator opens a selection when none is open. It is used up with all its span where an event closes it;
where its window ends without a result nothing is used up, and the next initiator after it opens the next.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spark_pace.core.columns import Bools, Ints
from spark_pace.core.match.candidates import Search
from spark_pace.core.match.completions import completions
from spark_pace.core.match.stream import Horizon, Stream
from spark_pace.core.match.walk import walk
from spark_pace.core.plan.rule import Pattern


@dataclass(frozen=True)
class Chain:
    """The selections opened, in order.

    Attributes:
        openings: int64[s], opening rows.
        closes: int64[s], the row that closed it; -1 where its window ended, or it is open.
        open: bool[s], whether it is still open; only the last one of a segment can be.
        matrix: int64[s, n], the match that closed it (*next* only; -1 where there is none).
    """

    openings: Ints
    closes: Ints
    open: Bools
    matrix: Ints | None = None


def chain(stream: Stream, pattern: Pattern, search: Search, horizon: Horizon) -> Chain:
    """Decide the selections of *each*, *latest*, *all* or *next* with consumption *selected*.

    Sources: Siddam 2015, sections 5.2 and 5.3; semantics, section 4.
    """
    initiators = search.members[0]
    end = stream.window_end(initiators, pattern.within)
    matrix = None
    if pattern.context.selection == "next":
        matrix = np.full((len(initiators), search.steps), -1, np.int64)
        found, matches = walk(search, initiators, end)
        matrix[found] = matches
        closes = matrix[:, -1]
    else:
        closes = _first_inside(stream, completions(search, initiators, end), end)
    over = horizon.over(stream, initiators, pattern.within)
    opened = _follow(stream, initiators, closes, over)
    still_open = (closes[opened] < 0) & ~over[opened]
    return Chain(initiators[opened], closes[opened], still_open, None if matrix is None else matrix[opened])


def _first_inside(stream: Stream, completed: Ints, end: Ints) -> Ints:
    """The first event that completes *any* candidate inside the window from each initiator on; -1 for none."""
    closes = np.where(completed < 0, stream.rows, completed)
    closes = np.minimum.accumulate(closes[::-1])[::-1]
    return np.where(closes < end, closes, -1)


def _follow(stream: Stream, initiators: Ints, closes: Ints, over: Bools) -> Ints:
    """The indices of the initiators that open a selection: one step of this loop for each selection."""
    count = len(initiators)
    after = np.searchsorted(initiators, closes, "right")
    next_segment = np.searchsorted(initiators, stream.segment_end[initiators], "left")
    following = np.where(closes >= 0, after, np.where(over, np.arange(count) + 1, next_segment)).tolist()
    opened = []
    index = 0
    while index < count:
        opened.append(index)
        index = following[index]
    return np.array(opened, np.int64)
