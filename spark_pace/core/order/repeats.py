"""Repeats: events that are equal, in some columns, to one that was kept shortly before.

Decided when events are released, in stream order: so neither arrival nor batches nor slots have a say in it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from spark_pace.core.columns import TIME, Bools, Ints, array, chosen, concat, distinct, numbers, segments_of


@dataclass(frozen=True)
class Kept:
    """What is left of released events.

    Attributes:
        events: those that are no repeats.
        recent: of all that were kept, what later ones can still repeat: the columns and the time.
        repeats: how many events were dropped.
    """

    events: pa.Table
    recent: pa.Table | None
    repeats: int


def drop_repeats(
    events: pa.Table, recent: pa.Table | None, columns: tuple[str, ...], delay_us: int, frontier_us: int
) -> Kept:
    """Keep an event unless one that is equal in `columns` (null equals null) and was kept lies at most `delay_us` before it.

    Args:
        events: newly released ones, in stream order.
        recent: of the release before.
        columns: names of attributes.
        delay_us: in event time.
        frontier_us: no later event lies before it.
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
    """Of rows in the order of `time`, those that come more than `delay_us` after the last one kept of their `code`.

    Each row leads to the first one of its code that it does not cover. What is kept is what can be reached from the first
    row of each code; doubling the steps finds all in log2(rows) rounds.
    """
    rows = len(code)
    order = np.argsort(code, kind="stable")
    ordered, at = code[order], time[order]
    times = np.unique(at)
    width = len(times) + 1
    place = ordered * width + np.searchsorted(times, at)
    beyond = np.searchsorted(place, ordered * width + np.searchsorted(times, at + delay_us, side="right"))
    leads_on = (
        (beyond < rows) & (ordered[np.minimum(beyond, rows - 1)] == ordered)
        if rows
        else np.zeros(0, np.bool_)
    )
    step = np.append(np.where(leads_on, beyond, rows), rows)  # the row behind the last stands for none
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
