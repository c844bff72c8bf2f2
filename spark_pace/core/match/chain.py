"""Consumption *selected* with at most one open selection: which initiators open one, one after the other.

An initiator opens a selection when none is open. The event that closes the selection uses up all its events.
If the window ends first, nothing is used up, and the next initiator after the opening one opens the next
selection.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from spark_pace import ways
from spark_pace.core.match.first import completions
from spark_pace.core.match.search.limits import deciding_rows
from spark_pace.core.match.search.search import Search
from spark_pace.core.match.stream import Found, Horizon, Stream, window_end
from spark_pace.core.tables import Bools, Ints

# Takes the rows of s initiators, and for each the row after the last one of its window. Returns int64[s], the
# row that would close the selection of each initiator, -1 where none would; and int64[s, n], the match that
# would close it, -1 where none would, or None if it is not a match that closes a selection; and what
# `optional_last.behind` gives of these matches.
Closed: TypeAlias = tuple[Ints, Ints | None, Ints | None]
Closing: TypeAlias = Callable[[Stream, Search, Ints, Ints], Closed]


@dataclass(frozen=True)
class Chain:
    """The selections that were opened, in order.

    Attributes:
        openings: int64[s], opening rows.
        closes: int64[s], the row that closed each; -1 where its window has ended, or it is still open.
        open: bool[s], whether each is still open; only the last selection of a segment can be.
        matches: int64[s, n], the match that closed each, -1 where none did; None if it is not a match that
            closes a selection.
        following: what `optional_last.behind` gives of these.
        deciding: int64[s], the row at the end of whose window it is known what has closed each; -1, or None
            for all, where that is known at the closing event.
    """

    openings: Ints
    closes: Ints
    open: Bools
    matches: Ints | None
    following: Ints | None
    deciding: Ints | None

    def found(self, search: Search) -> Found:
        """The matches that have closed selections: walks of *next* in the stream of `search`."""
        assert self.matches is not None
        done, deciding = np.flatnonzero(self.closes >= 0), self.deciding_in_turn(search)
        deciding = None if deciding is None else deciding[done]
        walker = search.varied(walking=True)
        following = None if self.following is None else self.following[done]
        return walker.found(self.openings, self.closes, done, self.matches[done], deciding, following)

    def deciding_in_turn(self, search: Search) -> Ints | None:
        """The column `deciding`, where no match is decided before that of an earlier selection."""
        if self.deciding is None:
            return None
        stream = search.stream
        latest = np.maximum.accumulate(np.where(self.closes < 0, -1, self.deciding))
        latest = np.where(latest < stream.segment_start[self.openings], -1, latest)
        is_over = window_end(stream, latest, search.pattern.within) <= self.closes
        return np.where((latest < 0) | is_over, -1, latest)


def chain(search: Search, closing: Closing, horizon: Horizon, *, apart: bool) -> Chain:
    """Decide the selections, given what would close the selection of each initiator.

    Sources: Siddam 2015, sections 5.2 and 5.3; semantics, section 4.

    Args:
        search: the pattern over a stream.
        closing: what closes selections.
        horizon: what is known of the future.
        apart: whether only a match that begins with the opening event can close a selection. Then `closing`
            is asked about ever larger blocks of initiators, for many of them open no selection.
    """
    stream, initiators, within = search.stream, search.initiators, search.pattern.within
    over = horizon.over(stream, initiators, within)
    start, size = 0, ways.FIRST_OPENINGS
    if not apart:
        all_end = window_end(stream, initiators, within)
        all_closes, _, _ = closing(stream, search, initiators, all_end)
        all_deciding = _deciding(search, initiators, all_end, all_closes) if search.trailing else initiators
    no_rows = np.zeros(0, np.int64)
    no_matches = np.zeros((0, search.steps), np.int64) if apart else None
    no_deciding = no_rows if search.trailing else None
    links = [Chain(no_rows, no_rows, np.zeros(0, np.bool_), no_matches, None, no_deciding)]
    while start < len(initiators):
        block = slice(start, start + size)
        rows, ended = initiators[block], over[block]
        if apart:
            closes, matches, following = closing(stream, search, rows, window_end(stream, rows, within))
        else:
            closes, matches, following = all_closes[block], None, None
        deciding = None
        if search.trailing:
            deciding = all_deciding[block] if matches is None else deciding_rows(search, rows, following)
            undecided = (closes >= 0) & (deciding >= 0) & ~horizon.over(stream, deciding, within)
            closes, ended = np.where(undecided, -1, closes), ended & ~undecided
        opened, next_start = _follow(search, start, closes, ended)
        of_opened = (None if column is None else column[opened] for column in (matches, following, deciding))
        links.append(Chain(rows[opened], closes[opened], ((closes < 0) & ~ended)[opened], *of_opened))
        start, size = next_start, 4 * size
    return _joined(links)


def if_no_more_come(search: Search, closing: Closing, horizon: Horizon) -> tuple[Ints, Ints, Bools]:
    """The matches that there are if no more events come, as far as nothing can forbid them any more.

    Those behind a selection that is open are none if it has one yet.

    Args:
        search: the pattern over a stream.
        closing: what closes selections, if only a match that begins with the opening event can.
        horizon: what is known of the future.

    Returns:
        int64[m], the last row of each; int64[m], the row at the end of whose window it is decided, -1 where
        its last event decides; bool[m], which are behind what is open.
    """
    stream, within = search.stream, search.pattern.within
    ended = replace(horizon, complete=np.full(len(stream.starts), True))
    links = chain(search, closing, ended, apart=True)
    closed, in_turn = links.closes >= 0, links.deciding_in_turn(search)
    deciding = np.full(len(closed), -1) if in_turn is None else in_turn
    window = np.where(closed & (deciding >= 0), deciding, links.openings)
    is_open = ~horizon.over(stream, window, within) & ~(closed & (deciding < 0))
    segment, opened = stream.segment[links.openings], np.append(0, np.cumsum(is_open))
    behind = opened[:-1] > opened[np.searchsorted(segment, segment)]
    done = np.flatnonzero(closed & ~is_open)
    return links.closes[done], deciding[done], behind[done]


def _deciding(search: Search, initiators: Ints, end: Ints, closes: Ints) -> Ints:
    """For each initiator the row at the end of whose window it is known what closes its selection.

    That is the last initiator of which a candidate, trailing negations aside, ends at the closing row or
    before it: no window of such a candidate ends later. It is the initiator itself if no row closes it.
    """
    ends = completions(search.varied(structural=True), initiators, end)
    ended = np.flatnonzero(ends >= 0)
    ended = ended[np.argsort(ends[ended], kind="stable")]
    latest = np.append(np.maximum.accumulate(initiators[ended]), 0)
    last = latest[np.searchsorted(ends[ended], closes, "right") - 1]
    return np.where(closes >= 0, last, initiators)


def _joined(links: list[Chain]) -> Chain:
    """The chains of successive blocks as one chain."""
    openings, closes, still_open = (
        np.concatenate([getattr(link, name) for link in links]) for name in ("openings", "closes", "open")
    )
    columns = ([getattr(link, name) for link in links] for name in ("matches", "following", "deciding"))
    there = ([column for column in each if column is not None] for each in columns)
    return Chain(openings, closes, still_open, *(np.concatenate(each) if each else None for each in there))


def closed_by_completion(stream: Stream, search: Search, initiators: Ints, end: Ints) -> Closed:
    """The first row that completes *any* candidate in the window from each initiator on; -1 if none does.

    The candidate may begin with a later initiator: it is no match that closes, so the others are None.
    """
    fitting = search.may_fit(initiators, search.terminators)
    all_fit = len(fitting) == len(initiators)
    place: Ints | slice = slice(None) if all_fit else np.searchsorted(initiators, fitting)
    completed = completions(search, fitting, end[place])
    closes = np.full(len(initiators), stream.rows)
    closes[place] = np.where(completed < 0, stream.rows, completed)
    closes = np.minimum.accumulate(closes[::-1])[::-1]
    return np.where(closes < end, closes, -1), None, None


def _follow(search: Search, start: int, closes: Ints, over: Bools) -> tuple[Ints, int]:
    """Which initiators of a block open a selection; the loop takes one step for each selection.

    Args:
        search: the search.
        start: the index of the block's first initiator, which opens a selection.
        closes: int64[b], the row that would close the selection of each initiator; -1 where none would.
        over: bool[b], whether the window of each is over.

    Returns:
        the indices in the block, ascending; and the index, among all initiators, of the one behind the block
            that opens the next selection.
    """
    initiators, count = search.initiators, len(closes)
    after = search.initiators_before(closes + 1)
    next_segment: Ints | int = len(initiators)
    if len(search.stream.starts) > 1:
        ends = search.stream.segment_end[initiators[start : start + count]]
        next_segment = np.searchsorted(initiators, ends, "left")
    behind = start + 1 + np.arange(count)
    following = np.where(closes >= 0, after, np.where(over, behind, next_segment)) - start
    opened = _reached(np.minimum(following, count))
    return opened, start + int(following[opened[-1]])


def _reached(following: Ints) -> Ints:
    """The places on the way that begins at 0 and goes on from place i to place ``following[i]``.

    Each ``following[i]`` is greater than i; the way ends where it leaves the array. Places to which no place
    leads are left out, again and again, as long as a round leaves out an eighth of them. If the last round
    leaves out none, all the others are on the way; else a loop goes it place by place.
    """
    count = len(following)
    places, before = np.arange(count), 2 * count + 8
    while len(places) < before - before // 8:
        before = len(places)
        left = np.zeros(count + 1, np.bool_)
        left[following[places]] = True
        left[0] = True
        places = np.flatnonzero(left[:count])
    if len(places) == before:
        return places
    step, index, reached = following.tolist(), 0, []
    while index < count:
        reached.append(index)
        index = step[index]
    return np.array(reached, np.int64)
