"""Contexts whose selections operators match in parallel.

The splitter cuts the stream into stretches of initiators (`Forwards`) or terminators (`Backwards`). A lane
holds all events that the matches of its stretch can include.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from spark_pace.core.columns import OPENING, Bools, Ints
from spark_pace.core.match.contexts.context import Backwards, Forwards
from spark_pace.core.match.delay import is_awaited
from spark_pace.core.match.release import Resolution
from spark_pace.core.match.search.alternatives import Alternatives
from spark_pace.core.match.search.any_order import search_of
from spark_pace.core.match.search.search import Search
from spark_pace.core.match.stream import Stream
from spark_pace.core.match.window import window_end, window_start
from spark_pace.core.plan.rule import Pattern
from spark_pace.core.plan.shape import terminator_bits, without_members
from spark_pace.core.split.lane_sizes import lanes_by_rows
from spark_pace.core.split.lanes import Lane, Piece, numbered
from spark_pace.core.split.task import Split, SplitTask, count_in_segments, from_first
from spark_pace.core.tables import numbers


def split_parallel(task: SplitTask, way: Forwards | Backwards) -> Split:
    """Cut lanes, and decide which events open selections still need."""
    pattern = task.pattern
    assert pattern is not None
    search = search_of(task.stream, pattern)
    initiators = search.initiators
    closes, ends = _closings(task, pattern, search, way)
    closed = closes >= 0
    if task.resolution is not None:
        task = replace(task, resolution=_resolution(task, task.resolution, initiators, closes))
        closed[:] = False  # their initiators are kept, because matches may wait
    over = task.horizon.over(task.stream, initiators, pattern.within)
    first_open = initiators[~over & ~closed]
    if isinstance(way, Forwards):
        lanes = _forward_lanes(*_fruitful(task, search, initiators, closes, ends))
        keep = from_first(task.stream, first_open)
    else:
        lanes = _backward_lanes(task, pattern, search, way)
        keep = backward_keep(task, pattern, search, way, first_open)
    over = task.horizon.over_by_itself(task.stream, initiators, pattern.within)
    open_ = initiators[~over & ~closed]
    if isinstance(way, Backwards) and pattern.within is None:  # no window ends these; some are out of reach
        assert way.tail is not None
        open_ = np.intersect1d(open_, way.tail(task.stream, search, task.stream.rows))
    keep = without_enders(task, keep)
    return Split(lanes, keep, count_in_segments(task.stream, open_), resolution=task.resolution)


def without_enders(task: SplitTask, keep: Bools) -> Bools:
    """Drop new events that can only end a match from `keep`, if the method allows it (`Method.ends_go`).

    Carried ones stay: to drop them, the other carried events would have to be stored anew.
    """
    pattern = task.pattern
    if pattern is None or not task.method.ends_go:
        return keep
    other = np.uint16(without_members(pattern) & ~terminator_bits(pattern))
    new = task.stream.time >= task.passed_us
    kept: Bools = keep & ~(new & (task.stream.mask & other == 0))
    return kept


def _closings(
    task: SplitTask, pattern: Pattern, search: Search, way: Forwards | Backwards
) -> tuple[Ints, Ints]:
    """For each initiator the row that closes its selection, and the row behind all its matches.

    The closing row is -1 if nothing closes the selection, or if only operators can find it.
    """
    stream, initiators = task.stream, search.initiators
    ends = window_end(stream, initiators, pattern.within)
    rule = task.planned.rule.pattern
    known = task.resolution is not None or (rule is not None and not rule.where and not search.trailing)
    if known and isinstance(way, Forwards) and pattern.close == "completion":
        last = way.closings(search, initiators, ends)
        return last, np.where(last < 0, ends, last + 1)
    return np.full(len(initiators), -1, np.int64), ends


def _numbers(task: SplitTask, initiators: Ints) -> Ints:
    """The numbers of the initiators' selections."""
    return numbers(task.stream.events, OPENING)[initiators]


def _resolution(task: SplitTask, resolution: Resolution, initiators: Ints, closes: Ints) -> Resolution:
    """The resolution of the rule's whole stream after this batch."""
    assert task.pattern is not None
    stream, within = task.stream, task.pattern.within
    ids, closed = _numbers(task, initiators), closes >= 0
    return resolution.after(ids[task.horizon.over(stream, initiators, within)], ids[closed])


def _fruitful(
    task: SplitTask, search: Search, initiators: Ints, closes: Ints, ends: Ints
) -> tuple[SplitTask, Ints, Ints, Ints]:
    """The task and the arrays without partition keys that lack a component, and so have no match."""
    stream = task.stream
    parts = search.parts if isinstance(search, Alternatives) else [search]
    counts = [[count_in_segments(stream, members) for members in part.members] for part in parts]
    fruitful = np.any([np.min(own, axis=0) > 0 for own in counts], axis=0)
    if task.planned.key_column is None or fruitful.all():
        return task, initiators, closes, ends
    kept = fruitful[stream.segment]
    row = np.cumsum(kept) - 1
    starts = row[stream.starts[fruitful]]
    here = kept[initiators]
    initiators, closes, ends = initiators[here], closes[here], ends[here]
    horizon = task.horizon.of_segments(fruitful)
    task = replace(task, stream=Stream(stream.events.filter(pa.array(kept)), starts), horizon=horizon)
    return task, row[initiators], np.where(closes < 0, closes, row[closes]), row[ends - 1] + 1


def _forward_lanes(task: SplitTask, initiators: Ints, closes: Ints, ends: Ints) -> list[Lane]:
    """Cut a lane for each stretch of rows with an initiator whose selection may release a match now.

    A lane holds its stretch, and the rows behind it up to the last of `ends`. Without keys, if
    `task.resolution` is None, only the first lane is `exact`: matches of the others may wait for selections
    of earlier lanes, which the merger decides.

    Args:
        task: the task.
        initiators: int64[i], rows, ascending.
        closes: int64[i], the row that closes the selection of each initiator; -1 if none does.
        ends: int64[i], the row behind all events of its matches.
    """
    stream, idle = task.stream, _idle(task, initiators, closes)
    if not len(initiators):
        return []
    lanes: list[Lane] = []
    for lo, hi, piece in _stretches(task):
        i, j = np.searchsorted(initiators, (lo, hi))
        if i < j and not idle[i:j].all():
            end = max(int(ends[i:j].max()), hi)
            exact = not lanes or task.planned.key_column is not None or task.resolution is not None
            header = numbered(task.header("free", exact=exact), len(lanes), (0, hi - lo), piece)
            events = stream.events.slice(lo, end - lo)
            lanes.append(Lane(header, events, _stream_ends(task, lo, hi), slice(lo, end)))
    return lanes


def _stream_ends(task: SplitTask, lo: int, hi: int) -> pa.Table | None:
    """When the streams in the rows from `lo` to `hi` end, as a column; None if they end with the input."""
    if task.horizon.ends_us is None:
        return None
    i, j = np.searchsorted(task.stream.starts, (lo, hi))
    return pa.table({"ends_us": task.horizon.ends_us[i:j]})


def _idle(task: SplitTask, initiators: Ints, closes: Ints) -> Bools:
    """bool[i], which initiators' selections certainly release no match now.

    If other rules read the matches, a new match that waits must be found too.
    """
    resolution, pattern = task.resolution, task.pattern
    if resolution is None or pattern is None or pattern.close == "window":
        return np.zeros(len(initiators), np.bool_)
    closed = closes >= 0
    new = task.stream.time[closes] >= task.passed_us
    out = resolution.lets_out(_numbers(task, initiators), new)
    return ~(closed & (out | new) if is_awaited(task.planned) else closed & out)


def _stretches(task: SplitTask) -> list[tuple[int, int, Piece]]:
    """Cut the rows into ranges for lanes; with `partition_by` a range has whole keys."""
    rows = task.stream.rows
    if task.planned.key_column is None:
        return [(piece.first, piece.last, piece) for piece in lanes_by_rows(task, np.ones(rows, np.int64))]
    bounds = np.append(task.stream.starts, rows)
    pieces = lanes_by_rows(task, np.diff(bounds))
    return [(int(bounds[piece.first]), int(bounds[piece.last]), piece) for piece in pieces]


def _backward_lanes(task: SplitTask, pattern: Pattern, search: Search, way: Backwards) -> list[Lane]:
    """Cut lanes of terminators, with all events that their matches can reach back to."""
    stream = task.stream
    lanes: list[Lane] = []
    # where events behind decide, a match may wait for others of its key that are decided later
    whole = search.trailing and task.planned.key_column is None
    stretches = _stretches(replace(task, plan=replace(task.plan, lanes=1)) if whole else task)
    for lo, hi, piece in stretches:
        if not np.diff(np.searchsorted(search.terminators, (lo, hi)))[0]:
            continue
        if task.planned.key_column is not None:
            held: slice | Ints = slice(lo, hi)
        elif pattern.within is not None:
            before = int(window_start(stream, np.array([lo]), pattern.within)[0])
            # matches wait for the ends of earlier windows; windows of N events may end behind the stretch
            behind = (pattern.within.events or 0) if task.method.waits else 0
            held = slice(before, hi + behind)
        else:
            assert way.tail is not None
            held = np.append(way.tail(stream, search, lo), np.arange(lo, hi))
        if isinstance(held, slice):
            before, events = held.start, stream.events.slice(held.start, held.stop - held.start)
        else:
            before, events = hi - len(held), stream.events.take(pa.array(held))
        header = numbered(task.header("free"), len(lanes), (lo - before, hi - before), piece)
        lanes.append(Lane(header, events, _stream_ends(task, lo, hi), held))
    return lanes


def backward_keep(
    task: SplitTask, pattern: Pattern, search: Search, way: Backwards, first_open: Ints
) -> Bools:
    """bool[n], the events that matches of later terminators can still include."""
    stream = task.stream
    if pattern.within is None:
        keep = np.zeros(stream.rows, np.bool_)
        if task.horizon.seen_us is None:
            assert way.tail is not None
            keep[way.tail(stream, search, stream.rows)] = True
        return keep
    if not task.method.waits and not search.trailing:
        return from_first(stream, first_open)
    # a match that waits is found again from its terminator back: its whole window must be there
    kept = window_start(stream, first_open, pattern.within)
    if search.trailing and task.method.waits:  # its window may end before what it waits for is open
        kept = window_start(stream, kept, pattern.within)
    return from_first(stream, kept)
