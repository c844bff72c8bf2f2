"""What ``within`` means: where the window of an event ends, and whether it is over.

A window of a time T that starts at an event of time t holds the events up to t + T, that time included. A
window of N events holds N events of the segment, the first included. A window of both holds what both hold.
Without ``within`` a window ends with its segment, and so does one of N events that the segment does not fill.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from spark_pace.core.match.stream import Positions, Stream
from spark_pace.core.plan.rule import Within
from spark_pace.core.tables import END_OF_INPUT, UNKNOWN_CODE, UNKNOWN_TIME, Bools, Ints


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
