"""Decides how many lanes a unit's work of a batch is cut into, and where; cuts the lanes of found matches.

Without a bound, the lanes are about equal. With a bound, once the rule has a price, there are as few lanes as
keep the bound. No result depends on the cut.

Sources: Mayer, Tariq, Rothermel 2017, section 4. Here all events of a lane are there when it starts, so no
time between their arrivals is subtracted from the predicted work.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

import numpy as np
import pyarrow as pa

from spark_pace.core.match.stream import Found, Positions, Stream, rows_before
from spark_pace.core.plan.price import Floats
from spark_pace.core.ranks import even_ranges
from spark_pace.core.split.task import Lane, Piece, SplitTask
from spark_pace.core.tables import Ints

_HALVINGS = 20  # halvings of the interval that has the weight to find
_ROUNDING = 1 + 1e-9


def lanes_by_rows(task: SplitTask, rows: Ints, *, by_calls: bool = False) -> list[Piece]:
    """Cut work into lanes whose costs are those of their rows; return the lanes, in order.

    Args:
        task: its plan's `lanes` is the greatest number of lanes, `least_lane_rows` the fewest rows of one if
            there is no prediction.
        rows: int64[n], the rows of each thing that must not be cut: a row, a key's stream, a selection.
        by_calls: True for selections of a Python operator: one may be a lane, because calls are expensive.
    """
    bound_us, price = task.plan.latency_bound_us, task.price
    if bound_us is None or price is None:
        weights, least = (np.ones(len(rows), np.int64), 1) if by_calls else (rows, task.plan.least_lane_rows)
        ranges = even_ranges(weights, task.plan.lanes, least)
        return [Piece(first, last, int(rows[first:last].sum()), None) for first, last in ranges]
    seconds = price.seconds(rows)
    return [
        Piece(first, last, int(rows[first:last].sum()), float(seconds[first:last].sum()))
        for first, last in fewest_ranges(seconds, task.plan.lanes, bound_us / 1_000_000)
    ]


def fewest_ranges(weights: Floats, most: int, bound: float) -> list[tuple[int, int]]:
    """Cut n things into the fewest neighbouring ranges that keep a bound, as far as that is possible.

    Args:
        weights: float64[n], the weight of each thing.
        most: the greatest number of ranges.
        bound: the greatest weight of a range.

    Returns:
        The ranges (first, last + 1), in order. No cut into as many ranges has a heaviest range that is much
        lighter.
    """
    ends = np.cumsum(weights)
    count = len(_filled(ends, bound, most)) - 1
    if count < 2:
        return [(0, len(weights))] if count else []
    low, high = max(float(ends[-1]) / count, float(weights.max())), float(ends[-1])
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if _filled(ends, middle, count)[-1] == len(ends) else (middle, high)
    bounds = _filled(ends, high, count)
    bounds[-1] = len(ends)  # also for weights that cannot be compared, such as NaN
    return list(pairwise(bounds))


def _filled(ends: Floats, limit: float, most: int) -> list[int]:
    """The bounds of at most `most` ranges, each filled up to `limit`, with at least one thing in it."""
    bounds = [0]
    while bounds[-1] < len(ends) and len(bounds) <= most:
        done = float(ends[bounds[-1] - 1]) if bounds[-1] else 0.0
        stop = int(np.searchsorted(ends, (done + limit) * _ROUNDING, "right"))
        bounds.append(max(stop, bounds[-1] + 1))
    return bounds


def matched_lanes(
    task: SplitTask,
    found: Found,
    ids: Ints,
    release: Positions,
    matched_us: Ints,
    *,
    ends: tuple[Ints, Ints] | None = None,
    fields: Mapping[str, pa.Array] | None = None,
) -> list[Lane]:
    """Cut lanes of found matches, with the rows and roles of their events.

    The lanes hold the events of the matches, and the events at whose positions matches are released.

    Args:
        task: the task.
        found: the matches.
        ids: int64[m], the `selection_id` of each match.
        release: the position at which each match is released.
        matched_us: int64[m], when each match is complete, as people are told.
        ends: the first and the last row of each match; None: those of its events, of which it has some.
        fields: more columns of the matches.
    """
    if not len(ids):
        return []
    first, last = ends or (found.first, found.last)
    lanes: list[Lane] = []
    for piece in lanes_by_rows(task, np.maximum(np.diff(found.offsets), 1)):
        i, j = piece.first, piece.last
        inside = slice(found.offsets[i], found.offsets[j])
        needed = [found.members[inside], first[i:j], last[i:j], release.code[i:j] // 2]
        rows, (members, begins, stops, at) = _held(task.stream, needed)
        lists = pa.array(found.offsets[i : j + 1] - found.offsets[i], pa.int32())
        own = {
            "@selection_id": pa.array(ids[i:j]),
            "@first": pa.array(begins),
            "@last": pa.array(stops),
            "@members": pa.ListArray.from_arrays(lists, pa.array(members)),
            "@roles": pa.ListArray.from_arrays(lists, pa.array(found.roles[inside])),
            "@matched_us": pa.array(matched_us[i:j]),
            "@release_code": pa.array(2 * at + (release.code[i:j] & 1)),
            "@release_us": pa.array(release.time[i:j]),
        }
        own |= {name: column.slice(i, j - i) for name, column in (fields or {}).items()}
        header = task.header("matched", (0, len(rows)), piece)
        events = task.stream.events.take(pa.array(rows)).combine_chunks()
        lanes.append(Lane(header, events, pa.table(own), rows))
    return lanes


def _held(stream: Stream, needed: list[Ints]) -> tuple[Ints, list[Ints]]:
    """The rows that a lane holds, and the places of some rows among them."""
    there = np.zeros(stream.rows, np.bool_)
    for rows in needed:
        there[rows] = True
    held = np.flatnonzero(there)
    return held, [rows_before(held, rows, stream.rows) for rows in needed]
