"""Row patterns over streams: the matches that no further row can change, and when each was decided.

A search from a row asks one row after the other. It is decided once all that it has asked are known: rows
that are there, a window (``WITHIN``) that is over, or a partition of which no more rows come. What it has
asked does not depend on the rows behind, so neither the matches nor the positions where they are decided
depend on how the input was cut.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spark_pace.core.match.row_patterns.compiled import BY_END, FAR
from spark_pace.core.match.row_patterns.result import search
from spark_pace.core.match.row_patterns.rows import Extent, Rows, holding
from spark_pace.core.match.row_patterns.search import Found
from spark_pace.core.match.stream import Horizon, Positions, Stream
from spark_pace.core.plan.row_pattern import RowPattern
from spark_pace.core.tables import Ints


@dataclass(frozen=True)
class Decided:
    """The matches that are decided.

    Attributes:
        rows: the rows that were searched.
        found: the matches.
        at: the positions where they are decided, which ascend in each segment.
        matched_us: int64[m], the times of these positions as people are told: the end of a window is the
            first time that is not in it, the end of the input the greatest event time.
    """

    rows: Rows
    found: Found
    at: Positions
    matched_us: Ints


def decided(plan: RowPattern, stream: Stream, start: Ints, matches: Ints, horizon: Horizon) -> Decided:
    """Search all segments of a stream.

    Args:
        plan: the pattern.
        stream: the rows; of each segment those that came last.
        start: int64[s], the row from which matches of each segment are sought.
        matches: int64[s], how many matches of it were found before.
        horizon: what is known of the future.
    """
    segments = np.arange(len(stream.starts))
    complete = np.zeros(len(segments), np.bool_) if horizon.complete is None else horizon.complete
    first = np.where(stream.seq[stream.starts] == 0, stream.starts, -1)
    extent = Extent(first, start, (~complete).astype(np.int64), matches)
    rows = Rows(stream.events, np.append(stream.starts, stream.rows), extent)
    found = search(plan, rows, holding(plan, rows), _reach(plan, stream, horizon))
    return Decided(rows, found, *_positions(plan, stream, found, horizon))


def _reach(plan: RowPattern, stream: Stream, horizon: Horizon) -> Ints:
    """See `spark_pace.core.match.row_patterns.compiled.Input`."""
    if plan.within_us is None:
        return np.zeros(0, np.int64)
    all_, ends_us = np.arange(stream.rows), stream.time + plan.within_us
    over = ends_us <= horizon.frontier_us
    if horizon.complete is not None:
        over |= horizon.complete[stream.segment]
    return np.where(over, stream.place(all_, ends_us, "left"), FAR)


def _positions(plan: RowPattern, stream: Stream, found: Found, horizon: Horizon) -> tuple[Positions, Ints]:
    by_window, by_end = found.by >= 0, found.by == BY_END
    time = stream.time[found.code // 2]  # of an event; or of the last one before a window or the stream ends
    matched_us = time.copy()
    if plan.within_us is not None:
        ends_us = stream.time[np.where(by_window, found.by, 0)] + plan.within_us
        time, matched_us = np.where(by_window, ends_us - 1, time), np.where(by_window, ends_us, matched_us)
    ends_us = horizon.segment_ends(stream, found.first)
    if horizon.ends_us is not None:
        matched_us = np.where(by_end, ends_us, matched_us)
    elif horizon.seen_us is not None:  # no rule over this one is beyond that
        matched_us = np.where(by_end, horizon.seen_us, matched_us)
    return Positions(found.code, np.where(by_end, ends_us, time)), matched_us
