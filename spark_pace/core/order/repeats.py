"""Drops repeats: events that equal, in some columns, an event that was kept shortly before.

They are found when events are released, in stream order. So the order of arrival, batches and slots make no
difference.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from spark_pace.core.columns import TIME, Bools, Ints
from spark_pace.core.ranks import distinct, segments_of
from spark_pace.core.tables import array, chosen, concat, numbers


@dataclass(frozen=True)
class Kept:
    """Released events after repeats were dropped.

    Attributes:
        events: the events that are no repeats.
        recent: the compared columns and times of kept events that later events can still repeat; None if
            there are none.
        repeats: the number of events that were dropped.
    """

    events: pa.Table
    recent: pa.Table | None
    repeats: int


def drop_repeats(
    events: pa.Table, recent: pa.Table | None, columns: tuple[str, ...], delay_us: int, frontier_us: int
) -> Kept:
    """Drop each event for which an equal one was kept at most `delay_us` before it.

    Args:
        events: the newly released events, in stream order.
        recent: `Kept.recent` of the release before; None at first.
        columns: the names of the attributes that are compared; null equals null.
        delay_us: a length of event time.
        frontier_us: no later event is before it.
    """
    keys = events.select([*columns, TIME])
    before = 0 if recent is None else recent.num_rows
    known = keys if recent is None else concat([recent, keys])
    _, code = distinct([array(known, name) for name in columns])
    time = numbers(known, TIME)
    kept = first_ones(code, time, delay_us)
    still = chosen(known, kept & (time >= frontier_us - delay_us))
    return Kept(chosen(events, kept[before:]), still if still.num_rows else None, int((~kept).sum()))


def first_ones(code: Ints, time: Ints, delay_us: int) -> Bools:
    """The rows to keep: the first of each code, and each that is more than `delay_us` after the last kept.

    Each row leads to the first later row of its code that is more than `delay_us` after it. The first row of
    each code is kept, and every row that it leads to, directly or not. Doubling the steps finds all of them
    in log2(rows) rounds.

    Args:
        code: int64[n], equal for rows that may repeat each other.
        time: int64[n], ascending.
        delay_us: a distance in event time.

    Returns:
        bool[n].
    """
    rows = len(code)
    order = np.argsort(code, kind="stable")
    ordered, at = code[order], time[order]
    times = np.unique(at)
    width = len(times) + 1
    place = ordered * width + np.searchsorted(times, at)
    beyond = np.searchsorted(place, ordered * width + np.searchsorted(times, at + delay_us, side="right"))
    code_there = np.append(ordered, -1)[beyond]
    # the index after the last row stands for no row
    step = np.append(np.where(code_there == ordered, beyond, rows), rows)
    reached = np.zeros(rows + 1, np.bool_)
    reached[segments_of(ordered)] = True
    fresh = step[np.flatnonzero(reached)]
    while (fresh < rows).any():
        reached[fresh] = True
        step = step[step]
        fresh = step[np.flatnonzero(reached)]
    kept = np.zeros(rows, np.bool_)
    kept[order] = reached[:rows]
    return kept
