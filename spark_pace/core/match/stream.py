"""A rule's stream as columns: what the matching kernels look at.

Rows are sorted by (segment, stream order). A segment is one key's stream, or one span's;
nothing matches across segments. A *row* is an index into these columns, `seq` the event's place in the
rule's stream: rows may be missing from a segment where nothing can need them any more.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from spark_pace.core.columns import MASK, SEQ, TIME, Bools, Ints, array, numbers, value_codes
from spark_pace.core.plan.rule import Within


@dataclass(frozen=True)
class Stream:
    """Events with their segments.

    Attributes:
        events: table of n rows, at least ``@time, @seq, @mask`` and the attributes the rule uses.
        starts: int64[s], first row of each segment, ascending; every segment has a row.
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
        lengths = np.diff(np.append(self.starts, self.rows))
        return np.repeat(np.arange(len(self.starts)), lengths)

    @cached_property
    def segment_start(self) -> Ints:
        """int64[n], the first row of each row's segment."""
        return self.starts[self.segment]

    @cached_property
    def segment_end(self) -> Ints:
        """int64[n], the row after the last one of each row's segment."""
        return np.append(self.starts[1:], self.rows)[self.segment]

    def matching(self, bit: int) -> Ints:
        """The rows that match component `bit`, ascending."""
        return np.flatnonzero((self.mask >> np.uint16(bit)) & np.uint16(1))

    def attribute(self, name: str) -> pa.Array:
        """An attribute of all rows."""
        return array(self.events, name)

    @cached_property
    def _ranked_time(self) -> tuple[Ints, Ints]:
        """The distinct times, and (segment, time) as one ascending number for each row."""
        times, rank = np.unique(self.time, return_inverse=True)
        return times, self.segment * (len(times) + 1) + rank

    def _place(self, rows: Ints, times: Ints, side: str) -> Ints:
        """In each row's segment, where an event of that time would be inserted."""
        if len(self.starts) == 1:
            return np.searchsorted(self.time, times, side=side)  # type: ignore[call-overload, no-any-return]
        distinct, ranked = self._ranked_time
        rank = np.searchsorted(distinct, times, side=side)  # type: ignore[call-overload]
        return np.searchsorted(ranked, self.segment[rows] * (len(distinct) + 1) + rank)  # type: ignore[no-any-return]

    def before_time(self, rows: Ints, times: Ints) -> Ints:
        """In each row's segment, the first row whose event time is not below `times`."""
        return self._place(rows, times, "left")

    def window_end(self, rows: Ints, within: Within | None) -> Ints:
        """The row after the last one of the window that starts at each of `rows`, as far as is known."""
        if within is None:
            return self.segment_end[rows]
        if within.events is not None:
            return np.minimum(rows + within.events, self.segment_end[rows])
        assert within.time_us is not None
        return self._place(rows, self.time[rows] + within.time_us, "right")

    def window_start(self, rows: Ints, within: Within | None) -> Ints:
        """The first row from which a window still reaches each of `rows`."""
        if within is None:
            return self.segment_start[rows]
        if within.events is not None:
            return np.maximum(rows - within.events + 1, self.segment_start[rows])
        assert within.time_us is not None
        return self._place(rows, self.time[rows] - within.time_us, "left")

    def take(self, rows: Ints, starts: Ints) -> Stream:
        """Some of the rows (with repetition), in segments that begin at `starts` of the new rows."""
        return Stream(self.events.take(pa.array(rows)), starts)

    def codes(self, left: str, right: str) -> tuple[Ints, Ints]:
        """Two attributes as numbers that are equal where the values are; -1 for null. int64[n] each."""
        if left == right:
            return (one := value_codes(self.attribute(left))), one
        both = value_codes(pa.concat_arrays([self.attribute(left), self.attribute(right)]))
        return both[: self.rows], both[self.rows :]


@dataclass(frozen=True)
class Horizon:
    """What is known of the future.

    Attributes:
        frontier_us: all events with a smaller event time are there.
        complete: bool[s] for each segment: no event of it can come any more; None where that is so of none.
        seen_us: at the end of the input the greatest event time there was; None before.
    """

    frontier_us: int
    complete: Bools | None = None
    seen_us: int | None = None

    def over(self, stream: Stream, rows: Ints, within: Within | None) -> Bools:
        """Whether the window that starts at each of `rows` is known to be over."""
        if within is None:
            over = np.zeros(len(rows), np.bool_)
        elif within.events is not None:
            over = rows + within.events <= stream.segment_end[rows]
        else:
            assert within.time_us is not None
            over = stream.time[rows] + within.time_us < self.frontier_us
        if self.complete is not None:
            over = over | self.complete[stream.segment[rows]]
        return over

    def over_by_itself(self, stream: Stream, rows: Ints, within: Within | None) -> Bools:
        """The same, but for windows that are over only because the input has ended."""
        if self.seen_us is None:
            return self.over(stream, rows, within)
        return Horizon(self.seen_us + 1).over(stream, rows, within)
