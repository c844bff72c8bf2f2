"""When a match may go out: where it is decided, and where the selections before its own are resolved.

Matches that are known and not out hold back the rules that read them.

Sources: semantics, section 5.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np

from spark_pace.core.match.search.search import Search
from spark_pace.core.match.stream import Found, Horizon, Positions, Stream, end_times, window_end, window_ends
from spark_pace.core.plan.rule import Within
from spark_pace.core.tables import NOTHING_US, UNKNOWN_CODE, UNKNOWN_TIME, Bools, Ints


def at_rows(stream: Stream, rows: Ints) -> Positions:
    """The positions of the events in these rows."""
    return Positions(2 * rows, stream.time[rows])


def resolved(stream: Stream, found: Found, within: Within | None, horizon: Horizon) -> Positions:
    """Where each selection is resolved: where it closes, else at the end of its window, if that is known.

    That of a match which is decided later is resolved there.
    """
    if (found.closes >= 0).all() and found.deciding is None:
        return at_rows(stream, found.closes)
    code, time = 2 * found.closes, stream.time[found.closes]
    unclosed = np.flatnonzero(found.closes < 0)
    ends = window_ends(stream, found.openings[unclosed], within, horizon)
    code[unclosed], time[unclosed] = ends.code, ends.time
    if found.deciding is not None:
        decided = decisions(stream, found, within, horizon)
        np.maximum.at(code, found.selection, decided.code)
        np.maximum.at(time, found.selection, decided.time)
    return Positions(code, time)


def earlier_resolved(resolved_at: Positions, segment: Ints, first_row: Ints) -> Positions:
    """For each selection the position by which all selections before it in its segment are resolved.

    Args:
        resolved_at: where each of s selections is resolved, in the order of the selections.
        segment: int64[s], the segment of each selection.
        first_row: int64[s], the first row of that segment.

    Returns:
        s positions; that of a segment's first selection lies before all events of the segment.
    """
    count = len(segment)
    code = np.append(-1, resolved_at.code[:-1])[:count]
    time = np.append(NOTHING_US, resolved_at.time[:-1])[:count]
    first = np.append(True, np.diff(segment) != 0)[:count]
    code = np.where(first, 2 * first_row - 1, code)
    time = np.where(first, NOTHING_US, time)
    running = _running_last_greatest(code, first)
    return Positions(code[running], time[running])


def _running_last_greatest(code: Ints, first: Ints) -> Ints:
    """For each code the index of the greatest code of its run up to there; of equal ones the last counts.

    A run begins where `first` is true.
    """
    known = code[code != UNKNOWN_CODE]
    most = int(known.max(initial=-1)) + 1
    key = np.cumsum(first) * (most + 2) + np.minimum(code, most)  # those of a later run are always greater
    greatest = np.maximum.accumulate(key)
    index = np.where(key == greatest, np.arange(len(code)), -1)
    return np.maximum.accumulate(index)


def decisions(stream: Stream, found: Found, within: Within | None, horizon: Horizon) -> Positions:
    """Where each match is decided: at its last event, or at the end of the window that decides it."""
    return decided_at(stream, found.last, found.deciding, within, horizon)


def settling(search: Search, openings: Ints, firsts: Ints, lasts: Ints, decided: tuple[Ints, Ints]) -> Ints:
    """int64[m], the row at the end of whose window all matches are known that stand before each of m matches.

    They are in earlier selections, or in its own with an earlier last event. Each of them ends in the window
    of the selection before its own, for windows end in order, or before its last event.

    Args:
        search: the pattern over a stream; a negated component stands last.
        openings: int64[s], the row that opened each selection.
        firsts: int64[m], the first row of each match.
        lasts: int64[m], the last row of each.
        decided: int64[t], the rows that may end a match; int64[t], the first row of the last candidate of
            each, -1 where it has none.
    """
    terminators, latest = decided
    ends = np.append(window_end(search.stream, openings, search.pattern.within), 0)
    end_before = ends[np.searchsorted(openings, firsts) - 1]  # before the first one none has ended
    up_to = np.maximum(lasts + 1, end_before)
    rows: Ints = np.maximum.accumulate(latest)[np.searchsorted(terminators, up_to) - 1]
    return rows


def known(stream: Stream, found: Found, within: Within | None, horizon: Horizon, *, waits: bool) -> Positions:
    """Where each match is decided and, if matches wait, all that stand before it are known."""
    decided = decisions(stream, found, within, horizon)
    if not waits:
        return decided
    return decided.later(decided_at(stream, found.last, found.settling, within, horizon))


def decided_at(
    stream: Stream, last: Ints, deciding: Ints | None, within: Within | None, horizon: Horizon
) -> Positions:
    """Where matches are decided that end at the rows `last`; see `Found.deciding`."""
    at_last = at_rows(stream, last)
    if deciding is None:
        return at_last
    ends = at_last.later(window_ends(stream, deciding, within, horizon))
    own = deciding < 0
    return Positions(np.where(own, at_last.code, ends.code), np.where(own, at_last.time, ends.time))


def match_times(stream: Stream, last: Ints, deciding: Ints | None, within: Within | None) -> Ints:
    """int64[m], the time of each match: that of its last event, or the end of the window that decides.

    Args:
        stream: the stream.
        last: int64[m], the row of each match's last event.
        deciding: int64[m], see `Found.deciding`.
        within: how long windows are.
    """
    if deciding is None:
        return stream.time[last]
    end = window_end(stream, deciding, within)
    ends = end_times(stream, deciding, end, within, stream.time[end - 1])
    return np.where(deciding < 0, stream.time[last], ends)


def releases(
    stream: Stream, found: Found, decided: Positions, resolved_at: Positions, *, waits: bool
) -> Positions:
    """Where each match becomes releasable.

    That is where it is decided; if matches wait, it is where all selections before its own are resolved, too.
    So no match may go out before one that stands before it: of a selection with several matches, all are
    decided by its window, or in turn (`contexts/earliest_selected.py`).

    Args:
        stream: the stream.
        found: its selections and matches.
        decided: where each match is decided.
        resolved_at: where each selection is resolved.
        waits: whether matches wait for the selections before their own.

    Returns:
        One position for each match.
    """
    if not waits or not found.matches:
        return decided
    segment = stream.segment[found.openings]
    before = earlier_resolved(resolved_at, segment, stream.starts[segment])
    return decided.later(before.take(found.selection))


def _no_selections() -> Ints:
    return np.zeros(0, np.int64)


@dataclass(frozen=True)
class Resolution:
    """Which selections of a rule's whole stream are resolved: needed where only a part of it is looked at.

    Attributes:
        first: the number of the first selection that is not resolved.
        closed: int64[], ascending, the numbers of later selections that are resolved.
        before: what `first` was when the batch began.
    """

    first: int = 0
    closed: Ints = field(default_factory=_no_selections)
    before: int = 0

    def begun(self) -> Resolution:
        """The resolution with which a new batch begins: all that is resolved was so before."""
        return replace(self, before=self.first)

    def after(self, over: Ints, closed: Ints) -> Resolution:
        """What is resolved after more selections have ended. Windows end in the order of their selections.

        Args:
            over: int64[], selections whose windows are over: every new one, in any order.
            closed: int64[], distinct selections that an event has closed: every new one, in any order.
        """
        first = max(self.first, int(over.max(initial=-1)) + 1)
        new = np.sort(closed[closed >= first])
        place = np.searchsorted(self.closed, new)
        inside = place < len(self.closed)
        inside[inside] = self.closed[place[inside]] == new[inside]
        numbers = np.insert(self.closed, place[~inside], new[~inside])
        numbers = numbers[np.searchsorted(numbers, first) :]
        apart = np.flatnonzero(numbers != first + np.arange(len(numbers)))
        run = int(apart[0]) if len(apart) else len(numbers)
        return Resolution(first + run, numbers[run:], self.before)

    def lets_out(self, selections: Ints, new: Bools) -> Bools:
        """bool[m], which matches go out now: all selections before their own are resolved.

        Args:
            selections: int64[m], the selection of each match.
            new: bool[m], whether each match is decided in this batch; the others were decided before.
        """
        return (selections <= self.first) & (new | (selections > self.before))


def _none() -> Ints:
    return np.zeros(0, np.int64)


@dataclass(frozen=True)
class Waiting:
    """How many matches wait, by their times; or by how many these have changed, which may be less than 0.

    Attributes:
        times: int64[n], the `matched_at` of matches, ascending, each once.
        counts: int64[n], none of them 0.
    """

    times: Ints = field(default_factory=_none)
    counts: Ints = field(default_factory=_none)

    @staticmethod
    def change(come: Ints, gone: Ints) -> Waiting:
        """The change by matches of the times `come` that wait from now on, and `gone` that do no longer."""
        times = np.concatenate([come, gone])
        return _summed(times, np.repeat([1, -1], [len(come), len(gone)]))

    @staticmethod
    def sum(parts: Iterable[Waiting]) -> Waiting:
        """All of these together."""
        parts = [part for part in parts if len(part.times)]
        if len(parts) < 2:
            return parts[0] if parts else NOTHING_WAITS
        times, counts = (np.concatenate([getattr(part, name) for part in parts]) for name in _COLUMNS)
        return _summed(times, counts)

    @property
    def first_us(self) -> int:
        """The least time at which a match waits; `UNKNOWN_TIME` if none does."""
        times = self.times[self.counts > 0]
        return int(times[0]) if len(times) else UNKNOWN_TIME

    def since(self, time_us: int) -> Waiting:
        """Those of this time and later ones."""
        first = np.searchsorted(self.times, time_us)
        return Waiting(self.times[first:], self.counts[first:])

    def stored(self) -> list[list[int]]:
        """Both columns as plain values."""
        return [self.times.tolist(), self.counts.tolist()]

    @staticmethod
    def of(stored: list[list[int]]) -> Waiting:
        """What `stored` has made plain values of."""
        times, counts = (np.array(column, np.int64) for column in stored)
        return Waiting(times, counts)


_COLUMNS = ("times", "counts")
NOTHING_WAITS = Waiting()


def _summed(times: Ints, counts: Ints) -> Waiting:
    distinct, place = np.unique(times, return_inverse=True)
    sums = np.zeros(len(distinct), np.int64)
    np.add.at(sums, place, counts)
    left = sums != 0
    return Waiting(distinct[left], sums[left])


def come_to_wait(matched_us: Ints, out: Bools, passed_us: int, frontier_us: int) -> Waiting:
    """The matches that are known only now and do not go out now.

    Args:
        matched_us: int64[m], the times of certain matches.
        out: bool[m], whether each goes out now, or has gone out before.
        passed_us: the frontier before the batch.
        frontier_us: the frontier now.
    """
    come = matched_us[~out & (matched_us >= passed_us) & (matched_us < frontier_us)]
    return Waiting.change(come, _none())
