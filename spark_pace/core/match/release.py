"""When a match may go out: positions of decisions and of the ends of selections.

A *position* is a pair (code, time). In a segment the code of row r is 2r, that of a window's end that lies
directly behind row r is 2r + 1; a position is known once the frontier has passed its time.
Sources: semantics, section 5.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spark_pace.core.columns import END_OF_INPUT, UNKNOWN_TIME, Ints
from spark_pace.core.match.contexts import context_of
from spark_pace.core.match.found import Found
from spark_pace.core.match.stream import Horizon, Stream
from spark_pace.core.plan.rule import Rule, Within

UNKNOWN_CODE = np.iinfo(np.int64).max
NOTHING_US = np.iinfo(np.int64).min  # a time before all others


@dataclass(frozen=True)
class Positions:
    """Places in the stream order of their segments: int64[m] codes and int64[m] times."""

    code: Ints
    time: Ints

    def later(self, other: Positions) -> Positions:
        """Element by element the later of two positions of the same segments."""
        behind = (other.code > self.code) | ((other.code == self.code) & (other.time > self.time))
        return Positions(np.where(behind, other.code, self.code), np.where(behind, other.time, self.time))

    def earlier(self, other: Positions) -> Positions:
        """Element by element the earlier of two positions of the same segments."""
        before = (other.code < self.code) | ((other.code == self.code) & (other.time < self.time))
        return Positions(np.where(before, other.code, self.code), np.where(before, other.time, self.time))

    def take(self, index: Ints) -> Positions:
        """Some of them."""
        return Positions(self.code[index], self.time[index])


def at_rows(stream: Stream, rows: Ints) -> Positions:
    """The positions of events."""
    return Positions(2 * rows, stream.time[rows])


def window_ends(stream: Stream, rows: Ints, within: Within | None, horizon: Horizon) -> Positions:
    """Where the windows that start at `rows` end; unknown where they are not over."""
    last = stream.window_end(rows, within) - 1
    code = 2 * last + 1
    if within is not None and within.time_us is not None:
        times = stream.time[rows] + within.time_us
    elif within is not None and within.events is not None:
        full = rows + within.events - 1 == last
        times = np.where(full, stream.time[last], END_OF_INPUT)
        code -= full  # a count window ends at the event that fills it, not behind all events of that time
    else:
        times = np.full(len(rows), END_OF_INPUT)
    over = horizon.over(stream, rows, within)
    return Positions(np.where(over, code, UNKNOWN_CODE), np.where(over, times, UNKNOWN_TIME))


def resolved(stream: Stream, found: Found, within: Within | None, horizon: Horizon) -> Positions:
    """Where each selection is resolved: where it closes, else at its window's end."""
    ends = window_ends(stream, found.openings, within, horizon)
    closed = found.closes >= 0
    rows = np.where(closed, found.closes, 0)
    return Positions(
        np.where(closed, 2 * rows, ends.code),
        np.where(closed, stream.time[rows] if stream.rows else rows, ends.time),
    )


def earlier_resolved(resolved_at: Positions, segment: Ints, first_row: Ints) -> Positions:
    """For each selection the position where the last of those before it in its segment is resolved.

    Args:
        resolved_at: of all selections, in order.
        segment: int64[s], the segment of each.
        first_row: int64[s], the first row of that segment.

    Returns:
        Position (-1, minimum) where no selection stands before.
    """
    count = len(segment)
    code = np.append(-1, resolved_at.code[:-1])[:count]
    time = np.append(np.iinfo(np.int64).min, resolved_at.time[:-1])[:count]
    first = np.append(True, np.diff(segment) != 0)[:count]
    code = np.where(first, 2 * first_row - 1, code)
    time = np.where(first, np.iinfo(np.int64).min, time)
    running = _running_last_greatest(code, first)
    return Positions(code[running], time[running])


def _running_last_greatest(code: Ints, first: Ints) -> Ints:
    """For each place the index of the greatest code so far in its run; of equal ones the last."""
    group = np.cumsum(first)
    rank = np.unique(code, return_inverse=True)[1].astype(np.int64)
    key = group * (len(code) + 1) + rank  # a later run is always greater
    greatest = np.maximum.accumulate(key)
    index = np.where(key == greatest, np.arange(len(code)), -1)
    return np.maximum.accumulate(index)


def must_wait(rule: Rule) -> bool:
    """Whether a match waits for selections with smaller ids.

    Plain sequences without window never do: both orders are the same there. Where a match is not certain before
    the selections before its own are resolved, it waits whatever the merge order is.
    """
    if rule.pattern is None or rule.span is not None:
        return rule.merge == "selection"
    pattern = rule.pattern
    if pattern.within is None and not pattern.where:
        return False
    return rule.merge == "selection" or context_of(pattern).waits_for_earlier


def releases(stream: Stream, found: Found, resolved_at: Positions, *, waits: bool) -> Positions:
    """Where each match becomes releasable: where it is decided, or where the last selection before its own is resolved."""
    decided = at_rows(stream, found.last)
    if not waits or not found.matches:
        return decided
    segment = stream.segment[found.openings]
    before = earlier_resolved(resolved_at, segment, stream.starts[segment])
    return decided.later(before.take(found.selection))
