"""Explicit spans: each span is a selection; the lanes hold the spans that may have a match to send now."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from spark_pace.core.columns import UNKNOWN_TIME, Bools, Ints
from spark_pace.core.match.delay import is_awaited
from spark_pace.core.match.spans import SpanRows, Windows, joined, spans_of
from spark_pace.core.match.waiting import NOTHING_WAITS, Waiting
from spark_pace.core.plan.rule import GridSpan
from spark_pace.core.split.lane_sizes import lanes_by_calls, lanes_by_rows
from spark_pace.core.split.lanes import Lane, numbered, position_columns
from spark_pace.core.split.task import Split, SplitTask, count_in_segments, from_first


def split_spans(task: SplitTask) -> Split:
    """Decide where spans start and close, and which of them go to operators now."""
    rule = task.planned.rule
    if isinstance(rule.span, GridSpan) and rule.pattern is None:
        return _split_whole_windows(task, rule.span)
    spans = spans_of(task.stream, rule, task.horizon, task.passed_us, task.next_selection)
    lanes = _lanes(task, spans.take(np.flatnonzero(_due(task, spans))))
    unresolved = spans.unresolved
    keep = from_first(task.stream, spans.start[unresolved])
    next_ids: list[Ints] = []
    if isinstance(rule.span, GridSpan):
        segment = task.stream.segment[spans.start[~unresolved]]
        next_ids = [task.next_selection + np.bincount(segment, minlength=len(task.stream.starts))]
    seen_us = task.horizon.seen_us
    open_ = unresolved if seen_us is None else spans.resolved_at.time > seen_us
    counted = count_in_segments(task.stream, spans.start[open_])
    by_python = rule.operator is not None and is_awaited(task.planned)
    return Split(
        lanes, keep, counted, next_ids, waiting=_uncalled(task, spans) if by_python else NOTHING_WAITS
    )


def _uncalled(task: SplitTask, spans: SpanRows) -> Waiting:
    """How the spans have changed that are closed and wait: an operator may make a match of each."""
    closed_us, out_us = spans.resolved_at.time, np.maximum(spans.resolved_at.time, spans.base.time)
    come = (closed_us >= task.passed_us) & (closed_us < task.horizon.frontier_us)
    come &= out_us >= task.horizon.frontier_us
    gone = (closed_us < task.passed_us) & (out_us >= task.passed_us) & (out_us < task.horizon.frontier_us)
    return Waiting.change(closed_us[come], closed_us[gone])


def _split_whole_windows(task: SplitTask, grid: GridSpan) -> Split:
    """Split windows on a grid, without a pattern: a window is sent at its end, open ones are counted."""
    due, _, split = ended_windows(task, [grid])
    return replace(split, lanes=_lanes(task, due))


def ended_windows(task: SplitTask, grids: Sequence[GridSpan]) -> tuple[SpanRows, Ints, Split]:
    """Find the windows of grids that end now.

    Returns:
        The windows that may have a match to send, by grid; int64[n], the place of each one's grid; and the
            other decisions.
    """
    stream, horizon, frontier_us = task.stream, task.horizon, task.horizon.frontier_us
    # windows that only the end of the input has ended count as open
    open_until_us = frontier_us if horizon.seen_us is None else horizon.seen_us + 1
    keep, open_ = np.zeros(stream.rows, np.bool_), np.zeros(len(stream.starts), np.int64)
    due, following = [], list(task.next_selections)
    rules_of = Counter(planned.rule.span for planned in task.share.rules)
    used = [place for place, grid in enumerate(grids) if grid in rules_of]
    for place in used:
        windows = Windows.of(stream, grids[place], task.passed_us)
        spans = windows.ended(frontier_us).spans(horizon, following[place])
        due.append(spans.take(np.flatnonzero(_due(task, spans))))
        following[place] = following[place] + count_in_segments(stream, spans.start)
        open_ += windows.counted_open(open_until_us) * rules_of[grids[place]]
        keep |= windows.in_open(frontier_us)
    numbers = np.repeat(used, [len(spans.start) for spans in due])
    return joined(due), numbers, Split([], keep, open_, following)


def lanes_of_windows(task: SplitTask, rows: pa.Table, windows: SpanRows, grids: Ints) -> list[Lane]:
    """The lanes of windows that have a row each; `grids` are the places of their grids, ascending."""
    header = task.header("spans")
    if len(task.share.rules) > 1:
        indices = (planned.index for planned in task.share.rules)
        header = replace(header, sharers=tuple(zip(indices, task.share.places, strict=True)))
    lanes = list[Lane]()
    for piece in lanes_by_rows(task, np.ones(len(windows.start), np.int64)):
        own, place = slice(piece.first, piece.last), np.arange(piece.last - piece.first)
        of_rows = replace(windows.take(piece.first + place), start=place, end=place + 1)
        table = _table(of_rows, 0)
        table = table.append_column("grid", pa.array(grids[own]))
        of_lane = numbered(header, len(lanes), (0, len(place)), piece)
        lanes.append(Lane(of_lane, rows.slice(piece.first, len(place)), table, own))
    return lanes


def _due(task: SplitTask, spans: SpanRows) -> Bools:
    """bool[n], the spans that may have a match to send: released from `passed_us` on, below the frontier.

    If other rules read the matches, also the spans that may have a new match that waits.
    """
    rule, frontier_us, ends_us = task.planned.rule, task.horizon.frontier_us, spans.resolved_at.time
    waits = rule.merge == "selection"
    latest = np.maximum(ends_us, spans.base.time) if waits else ends_us
    due = latest >= task.passed_us
    new = ends_us >= task.passed_us
    if not is_awaited(task.planned) or rule.operator is not None:
        new[:] = False
    if rule.pattern is None:  # the match of a whole span is known at its end
        return due & ((latest < frontier_us) | new & (ends_us < frontier_us))
    return due & ((spans.base.time < frontier_us) | new) if waits else due


def _lanes(task: SplitTask, spans: SpanRows) -> list[Lane]:
    """Cut lanes of spans."""
    if not len(spans.start):
        return []
    if task.planned.rule.operator is not None:
        pieces = lanes_by_calls(task, spans.end - spans.start)
    else:
        pieces = lanes_by_rows(task, spans.end - spans.start)
    header, lanes = task.header("spans"), list[Lane]()
    for piece in pieces:
        own = spans.take(np.arange(piece.first, piece.last))
        start = int(own.start.min())
        stop = min(task.stream.rows, max(int(own.end.max()), _last_code(own) // 2 + 1))
        table, events = _table(own, start), task.stream.events.slice(start, stop - start)
        of_lane = numbered(header, len(lanes), (0, stop - start), piece)
        lanes.append(Lane(of_lane, events, table, slice(start, stop)))
    return lanes


def _last_code(spans: SpanRows) -> int:
    """The greatest known code of the positions where matches of these spans may be released."""
    known = spans.base.time != UNKNOWN_TIME
    return int(spans.base.code[known].max(initial=0))


def _table(spans: SpanRows, start: int) -> pa.Table:
    return pa.table({
        "start": spans.start - start,
        "end": spans.end - start,
        "selection_id": spans.selection_id,
        "opened_us": spans.opened_us,
        "close": np.where(spans.close < 0, -1, spans.close - start),
        **position_columns("resolved", spans.resolved_at, start),
        **position_columns("base", spans.base, start),
    })  # fmt: skip
