"""A rule's stream as columns, the windows in it, and what the matching kernels find.

Rows are sorted by segment, then by stream order. A segment is the stream of one partition key, or one span;
no match reaches across segments. A *row* is an index into these columns; `seq` is the event's place in the
rule's stream. The two differ, for events are left out once nothing can need them any more.

What is found are selections, and the production sets of the matches in them.

A window of a time T that starts at an event of time t holds the events up to t + T, that time included. A
window of N events holds N events of the segment, the first included. A window of both holds what both hold.
Without ``within`` a window ends with its segment, and so does one of N events that the segment does not fill.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from spark_pace import ways
from spark_pace.core.plan.rule import Within
from spark_pace.core.ranks import segments_of, value_codes
from spark_pace.core.tables import (
    END_OF_INPUT,
    MASK,
    SEQ,
    TIME,
    UNKNOWN_CODE,
    UNKNOWN_TIME,
    Bools,
    Ints,
    array,
    has_bit,
    numbers,
)


@dataclass(frozen=True)
class Stream:
    """Events with their segments.

    Attributes:
        events: table of n rows with ``@time, @seq, @mask`` and the attributes that the rule uses.
        starts: int64[s], first row of each segment, ascending; no segment is empty.
    """

    events: pa.Table
    starts: Ints

    @property
    def rows(self) -> int:
        """How many events there are."""
        return int(self.events.num_rows)

    @cached_property
    def time(self) -> Ints:
        """int64[n], event time in microseconds."""
        return numbers(self.events, TIME)

    @cached_property
    def seq(self) -> Ints:
        """int64[n], place in the rule's stream."""
        return numbers(self.events, SEQ)

    @cached_property
    def mask(self) -> npt.NDArray[np.uint16]:
        """uint16[n], bit k set where the event matches component k."""
        return numbers(self.events, MASK)

    @cached_property
    def segment(self) -> Ints:
        """int64[n], the number of each row's segment."""
        if len(self.starts) == 1:
            return np.zeros(self.rows, np.int64)
        lengths = np.diff(np.append(self.starts, self.rows))
        return np.repeat(np.arange(len(self.starts)), lengths)

    @cached_property
    def segment_start(self) -> Ints:
        """int64[n], the first row of each row's segment."""
        return self.starts[self.segment]

    @cached_property
    def segment_end(self) -> Ints:
        """int64[n], the row after the last one of each row's segment."""
        if len(self.starts) == 1:
            return np.full(self.rows, self.rows)
        return np.append(self.starts[1:], self.rows)[self.segment]

    def matching(self, bit: int) -> Ints:
        """The rows that match component `bit`, ascending."""
        return np.flatnonzero(has_bit(self.mask, bit))

    def attribute(self, name: str) -> pa.Array:
        """The attribute of that name of all rows."""
        return array(self.events, name)

    @cached_property
    def _distinct_times(self) -> Ints | None:
        """The distinct times, ascending; None where (segment, time) fits into one number as it is."""
        span = int(self.time.max()) - int(self.time.min()) + 2
        return None if len(self.starts) * span < 1 << 62 else np.unique(self.time)

    def _ranks(self, times: Ints, side: Literal["left", "right"]) -> Ints:
        """Numbers from 0 to below `_span` by which times are placed among those of the events.

        On the side "right" they are greater than the numbers of events of the same time.
        """
        if self._distinct_times is not None:
            return np.searchsorted(self._distinct_times, times, side=side)
        ranks: Ints = np.clip(times - self.time.min() + (side == "right"), 0, self._span - 1)
        return ranks

    @cached_property
    def _span(self) -> int:
        """How many different numbers `_ranks` can give."""
        distinct = self._distinct_times
        return int(self.time.max() - self.time.min()) + 2 if distinct is None else len(distinct) + 1

    @cached_property
    def _ranked(self) -> Ints:
        """int64[n], one number for each row that sorts as (segment, time) does."""
        return self.segment * self._span + self._ranks(self.time, "left")

    def place(self, rows: Ints, times: Ints, side: Literal["left", "right"]) -> Ints:
        """For each row and its time in `times`, the row of its segment where an event of that time belongs.

        That is before ("left") or behind ("right") all events of the same time.
        """
        if len(self.starts) == 1:
            return np.searchsorted(self.time, times, side=side)
        if not len(rows):
            return np.zeros(0, np.int64)
        return np.searchsorted(self._ranked, self.segment[rows] * self._span + self._ranks(times, side))

    def before_time(self, rows: Ints, times: Ints) -> Ints:
        """For each row and its time in `times`, the first row of its segment that is not before that time."""
        return self.place(rows, times, "left")

    def before(self, time_us: int) -> Stream:
        """The stream of the rows before that time, without the segments that have none."""
        early = self.time < time_us
        rows = np.flatnonzero(early)
        return Stream(self.events.filter(pa.array(early)), segments_of(self.segment[rows]))

    def take(self, rows: Ints, starts: Ints) -> Stream:
        """The stream of these rows, which may repeat; its segments begin at `starts` of the new rows."""
        return Stream(self.events.take(pa.array(rows)), starts)

    def codes(self, left: str, right: str) -> tuple[Ints, Ints]:
        """Two attributes as int64[n] each: numbers that are equal where the values are; -1 for null."""
        if left == right:
            return (one := value_codes(self.attribute(left))), one
        both = value_codes(pa.concat_arrays([self.attribute(left), self.attribute(right)]))
        return both[: self.rows], both[self.rows :]


def starts_of_streams(keys: Ints, seq: Ints) -> Ints:
    """int64[s], the first row of each stream: where another key begins, or the `seq` of a key begins anew.

    Args:
        keys: int64[n], the number of each row's key; those of one key stand together, in stream order.
        seq: int64[n], each row's `seq`.
    """
    if not len(keys):
        return np.zeros(0, np.int64)
    return np.flatnonzero(np.append(True, np.diff(keys) != 0) | (seq == 0))


@dataclass(frozen=True)
class Positions:
    """Places in the stream order of their segments: int64[m] codes and int64[m] times.

    The code of row r is 2r, that of the end of a window that lies directly behind row r is 2r + 1. A position
    is known once the frontier has passed its time.
    Sources: semantics, section 5.
    """

    code: Ints
    time: Ints

    def later(self, other: Positions) -> Positions:
        """Element by element the later of two positions of the same segments."""
        behind = other.behind(self)
        return Positions(np.where(behind, other.code, self.code), np.where(behind, other.time, self.time))

    def earlier(self, other: Positions) -> Positions:
        """Element by element the earlier of two positions of the same segments."""
        before = self.behind(other)
        return Positions(np.where(before, other.code, self.code), np.where(before, other.time, self.time))

    def behind(self, other: Positions) -> Bools:
        """bool[m], which of these positions stand behind the other ones, which are of the same segments."""
        same = self.code == other.code
        behind: Bools = (self.code > other.code) | (same & (self.time > other.time))
        return behind

    def take(self, index: Ints) -> Positions:
        """The positions at these indices."""
        return Positions(self.code[index], self.time[index])


def counted_before(rows: Ints, count: int) -> npt.NDArray[np.int32]:
    """int32[count + 1], how many of the ascending `rows` stand before each row."""
    present = np.zeros(count + 1, np.int8)
    present[rows + 1] = 1
    return np.cumsum(present, dtype=np.int32)


def rows_before(rows: Ints, places: Ints, count: int) -> Ints:
    """How many of `rows` stand before each row in `places`; `rows` ascend, and no row is there twice.

    The stream has `count` rows. For many places, counting once for all of them takes less time than a search
    for each place.
    """
    if not ways.is_counted(len(places), count):
        return np.searchsorted(rows, places)
    before: Ints = counted_before(rows, count)[places].astype(np.int64)
    return before


@dataclass(frozen=True)
class Found:
    """Selections and matches, by rows of a stream.

    Attributes:
        openings: int64[s], the opening row of each selection, ascending.
        closes: int64[s], the row that closed it; -1 where none did.
        selection: int64[m], for each match the index of its selection.
        offsets: int64[m + 1]: ``members[offsets[i]:offsets[i + 1]]`` is match i's production set.
        members: int64[], rows, ascending within a match.
        roles: int8[], the index of the component that each member stands for.
        deciding: int64[m], the row whose window's end decides each match; -1, or None for all: the match's
            last event does.
        settling: int64[m], the row whose window's end tells all matches that stand before each one, if it is
            not where those before it are decided; None otherwise.
    """

    openings: Ints
    closes: Ints
    selection: Ints
    offsets: Ints
    members: Ints
    roles: npt.NDArray[np.int8]
    deciding: Ints | None = None
    settling: Ints | None = None

    @property
    def matches(self) -> int:
        """How many matches there are."""
        return len(self.selection)

    @property
    def first(self) -> Ints:
        """int64[m], the first row of each match."""
        return self.members[self.offsets[:-1]]

    @property
    def last(self) -> Ints:
        """int64[m], the last row of each match."""
        return self.members[self.offsets[1:] - 1]

    def keep(self, kept: Ints) -> Found:
        """Keep of these selections the matches at the indices `kept` (int64[k]), in that order."""
        lengths = np.diff(self.offsets)[kept]
        offsets = np.append(0, np.cumsum(lengths))
        index = np.arange(offsets[-1]) + np.repeat(self.offsets[:-1][kept] - offsets[:-1], lengths)
        deciding, settling = (None if rows is None else rows[kept] for rows in (self.deciding, self.settling))
        selection, members, roles = self.selection[kept], self.members[index], self.roles[index]
        return Found(self.openings, self.closes, selection, offsets, members, roles, deciding, settling)


@dataclass(frozen=True)
class Decided:
    """What is decided terminator by terminator.

    Attributes:
        offsets, members, roles: the production sets of the matches, by rows of the stream.
        latest: int64[t], the rows that may end a match, ascending; and int64[t], the first row of the
            candidate that starts last up to each of them, -1 where there is none. None where nothing behind
            a match may forbid it.
    """

    offsets: Ints
    members: Ints
    roles: npt.NDArray[np.int8]
    latest: tuple[Ints, Ints] | None


def found_of(openings: Ints, closes: Ints, selection: Ints, matrix: Ints) -> Found:
    """The matches of a matrix int64[m, n] that has one row of the stream for each component."""
    m, n = matrix.shape
    roles = np.tile(np.arange(n, dtype=np.int8), m)
    return Found(openings, closes, selection, np.arange(m + 1) * n, matrix.ravel(), roles)


def stacked(pieces: Iterable[Ints], steps: int) -> Ints:
    """Pieces of candidates as one matrix int64[m, n]."""
    kept = [piece for piece in pieces if len(piece)]
    return np.concatenate(kept) if kept else np.zeros((0, steps), np.int64)


def within_rows(rows: Ints, owned: tuple[int, int]) -> Ints:
    """The part of the ascending `rows` that lies in the range `owned`."""
    lo, hi = np.searchsorted(rows, owned)
    return rows[lo:hi]


def whole(stream: Stream) -> tuple[int, int]:
    """The range of all rows of a stream."""
    return 0, stream.rows


@dataclass(frozen=True)
class Horizon:
    """What is known of the future.

    Attributes:
        frontier_us: all events with a smaller event time are there.
        complete: bool[s], True for a segment of which no more events can come; None: more events can come of
            every segment.
        seen_us: at the end of the input, the greatest event time there was; None before.
        ends_us: int64[s], the last event time at which an event would still go on with each segment
            (``forget_key_after`` behind its last event; if none comes until then, the segment ends); None:
            every segment goes on to the end of the input.
    """

    frontier_us: int
    complete: Bools | None = None
    seen_us: int | None = None
    ends_us: Ints | None = None

    def of_segments(self, chosen: Bools) -> Horizon:
        """What is known of the future of the chosen segments (bool[s])."""
        complete = None if self.complete is None else self.complete[chosen]
        ends_us = None if self.ends_us is None else self.ends_us[chosen]
        return replace(self, complete=complete, ends_us=ends_us)

    def over(self, stream: Stream, rows: Ints, within: Within | None) -> Bools:
        """Tell whether the window that starts at each of `rows` is known to be over."""
        over = np.zeros(len(rows), np.bool_)
        if within is not None and within.events is not None:
            over |= rows + within.events <= stream.segment_end[rows]
        if within is not None and within.time_us is not None:
            over |= stream.time[rows] + within.time_us < self.frontier_us
        if self.complete is not None:
            over = over | self.complete[stream.segment[rows]]
        return over

    def segment_ends(self, stream: Stream, rows: Ints) -> Ints:
        """The time at which the segment of each of `rows` ends."""
        if self.ends_us is None:
            return np.full(len(rows), END_OF_INPUT)
        return self.ends_us[stream.segment[rows]]

    def over_by_itself(self, stream: Stream, rows: Ints, within: Within | None) -> Bools:
        """Do what `over` does, but for windows that are over only because the input has ended."""
        if self.seen_us is None:
            return self.over(stream, rows, within)
        return Horizon(self.seen_us + 1).over(stream, rows, within)


def is_of_time(within: Within | None) -> bool:
    """True if a time alone ends windows, whatever events there are."""
    return within is not None and within.events is None


def window_end(stream: Stream, rows: Ints, within: Within | None) -> Ints:
    """The row after the last one of the window that starts at each of `rows`, as far as is known."""
    end: Ints = stream.segment_end[rows]
    if within is not None and within.events is not None:
        end = np.minimum(rows + within.events, end)
    if within is not None and within.time_us is not None:
        end = np.minimum(stream.place(rows, stream.time[rows] + within.time_us, "right"), end)
    return end


def window_start(stream: Stream, rows: Ints, within: Within | None) -> Ints:
    """The first row from which a window still reaches each of `rows`."""
    start: Ints = stream.segment_start[rows]
    if within is not None and within.events is not None:
        start = np.maximum(rows - within.events + 1, start)
    if within is not None and within.time_us is not None:
        start = np.maximum(stream.place(rows, stream.time[rows] - within.time_us, "left"), start)
    return start


def end_times(stream: Stream, rows: Ints, end: Ints, within: Within | None, otherwise: Ints) -> Ints:
    """When the windows that start at `rows` are over, whose last events stand before the rows `end`.

    That is at the event that fills them, else behind their time; where neither ends them, at `otherwise`.
    """
    times = otherwise
    if within is not None and within.time_us is not None:
        times = stream.time[rows] + within.time_us
    if within is not None and within.events is not None:
        times = np.where(end - rows == within.events, stream.time[end - 1], times)
    return times


def window_ends(stream: Stream, rows: Ints, within: Within | None, horizon: Horizon) -> Positions:
    """The positions at which the windows that start at `rows` end; unknown where they are not over."""
    end = window_end(stream, rows, within)
    times = end_times(stream, rows, end, within, horizon.segment_ends(stream, rows))
    code = 2 * end - 1
    if within is not None and within.events is not None:  # at the event that fills it, not behind its time
        code -= end - rows == within.events
    over = horizon.over(stream, rows, within)
    return Positions(np.where(over, code, UNKNOWN_CODE), np.where(over, times, UNKNOWN_TIME))
