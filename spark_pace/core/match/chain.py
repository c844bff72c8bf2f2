"""Consumption *selected* with at most one open selection: which initiators open one, one after the other.

An initiator opens a selection when none is open. The event that closes the selection uses up all its events.
If the window ends first, nothing is used up, and the next initiator after the opening one opens the next
selection.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from spark_pace.core.columns import Bools, Ints
from spark_pace.core.match.candidates import Search
from spark_pace.core.match.completions import completions
from spark_pace.core.match.found import Found
from spark_pace.core.match.stream import Stream
from spark_pace.core.match.window import Horizon, window_end

# Takes the rows of s initiators, and the row after the last one of each one's window. Returns int64[s], the
# row that closes each one's selection, -1 where none does; and int64[s, n], the matches that close them, or
# None where it is not a match that closes a selection.
Closing: TypeAlias = Callable[[Stream, Search, Ints, Ints], tuple[Ints, Ints | None]]


@dataclass(frozen=True)
class Chain:
    """The selections that were opened, in order.

    Attributes:
        openings: int64[s], opening rows.
        closes: int64[s], the row that closed it; -1 where its window has ended, or it is still open.
        open: bool[s], whether it is still open; only the last selection of a segment can be.
        matches: int64[s, n], the match that closed it, -1 where none did; None where matches do not close.
        deciding: int64[s], the row at the end of whose window it is known what has closed it; None where the
            closing event tells.
    """

    openings: Ints
    closes: Ints
    open: Bools
    matches: Ints | None
    deciding: Ints | None

    def found(self, search: Search) -> Found:
        """The matches that have closed selections: walks over the same stream."""
        assert self.matches is not None
        done = np.flatnonzero(self.closes >= 0)
        return search.varied(walking=True).found(self.openings, self.closes, done, self.matches[done])


def chain(search: Search, closing: Closing, horizon: Horizon) -> Chain:
    """Decide the selections, given what would close the selection of each initiator.

    Sources: Siddam 2015, sections 5.2 and 5.3; semantics, section 4.
    """
    stream, within, initiators = search.stream, search.pattern.within, search.members[0]
    end = window_end(stream, initiators, within)
    closes, matches = closing(stream, search, initiators, end)
    over = horizon.over(stream, initiators, within)
    deciding = None
    if search.trailing:
        deciding = initiators if matches is not None else _deciding(search, initiators, end, closes)
        undecided = (closes >= 0) & ~horizon.over(stream, deciding, within)
        closes, over = np.where(undecided, -1, closes), over & ~undecided
    opened = _follow(stream, initiators, closes, over)
    still_open = (closes[opened] < 0) & ~over[opened]
    of_opened = (None if column is None else column[opened] for column in (matches, deciding))
    return Chain(initiators[opened], closes[opened], still_open, *of_opened)


def _deciding(search: Search, initiators: Ints, end: Ints, closes: Ints) -> Ints:
    """The last initiator of which a candidate ends up to the closing row of each, trailing negation aside.

    Whether events forbid these candidates is known at the end of that one's window.
    """
    ends = completions(search.varied(structural=True), initiators, end)
    ended = np.flatnonzero(ends >= 0)
    ended = ended[np.argsort(ends[ended], kind="stable")]
    latest = np.append(np.maximum.accumulate(initiators[ended]), 0)
    last = latest[np.searchsorted(ends[ended], closes, "right") - 1]
    return np.where(closes >= 0, last, initiators)


def closed_by_completion(stream: Stream, search: Search, initiators: Ints, end: Ints) -> tuple[Ints, None]:
    """The first event that completes *any* candidate in the window from each initiator on; -1 for none."""
    completed = completions(search, initiators, end)
    closes = np.where(completed < 0, stream.rows, completed)
    closes = np.minimum.accumulate(closes[::-1])[::-1]
    return np.where(closes < end, closes, -1), None


def _follow(stream: Stream, initiators: Ints, closes: Ints, over: Bools) -> Ints:
    """The indices of the initiators that open a selection; the loop takes one step for each selection."""
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
