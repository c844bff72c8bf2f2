"""Windows of time that aggregate: what each one holds that ends, and what is carried for those that are open.

A lane has a row for each window. Of what is carried only the last row of each key is looked at, and the rows
that windows which end begin with: nothing here takes longer where windows are longer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa

from spark_pace.core.columns import UNKNOWN_TIME
from spark_pace.core.contents import ContentsOfPanes
from spark_pace.core.match.spans import SpanRows, last_ended
from spark_pace.core.plan.panes import Panes
from spark_pace.core.plan.rule import GridSpan
from spark_pace.core.ranges import pieces
from spark_pace.core.split.carry.carried_panes import CarriedPanes
from spark_pace.core.split.carry.key_streams import Left, Segments
from spark_pace.core.split.lanes import with_new_rows
from spark_pace.core.split.pane_rows import as_one, begins_pane, rows_from, rows_of_ranges
from spark_pace.core.split.span_selections import ended_windows, lanes_of_windows
from spark_pace.core.split.task import Split, SplitTask, without_ended
from spark_pace.core.tables import array, concat


def split_panes(task: SplitTask, panes: Panes, segments: Segments, carried: CarriedPanes) -> Split:
    """Decide which windows end now, and put together what they hold.

    Args:
        task: its stream has the last carried row of each key, and the rows of the batch.
        panes: what is kept of panes.
        segments: the same stream.
        carried: what is carried of the keys.
    """
    due, numbers, split = ended_windows(task, task.share.grids)
    if not len(due.start):
        return without_ended(split, task)
    parts = [due.take(np.arange(piece.start, piece.stop)) for piece in _pieces(due, segments, carried)]
    rows = concat([_held(panes, part, segments, carried) for part in parts])
    if (name := task.planned.key_column) is not None:
        rows = rows.append_column(name, array(task.stream.events, name).take(pa.array(due.start)))
    lanes = lanes_of_windows(task, rows, due, numbers)
    return without_ended(replace(split, lanes=with_new_rows(lanes, rows.num_rows)), task)


def _pieces(due: SpanRows, segments: Segments, carried: CarriedPanes) -> Iterator[slice]:
    """Windows that are worked on together; each may have a row of every chunk, and one of the batch."""
    return pieces(1 + segments.carried[due.start] * len(carried.carry.chunks))


def _held(panes: Panes, windows: SpanRows, segments: Segments, carried: CarriedPanes) -> pa.Table:
    """A row for each window, with what it holds."""
    stream, older = segments.stream, segments.carried[windows.start]
    first = windows.start + older
    newer = np.flatnonzero(first < windows.end)
    rows = rows_of_ranges(panes, ContentsOfPanes(stream, panes), first[newer], windows.end[newer])
    which = np.flatnonzero(older)
    if not len(which):
        return rows
    keys = segments.key[stream.segment[windows.start[which]]]
    before, owner = carried.onward(keys, windows.opened_us[which])
    owners = np.append(which[owner], newer)
    order = np.argsort(owners, kind="stable")
    parts = concat([before.select(rows.column_names), rows]).take(pa.array(order))
    start = np.searchsorted(owners[order], np.arange(len(older)))
    end = np.append(start[1:], len(order))
    return rows_of_ranges(panes, ContentsOfPanes(as_one(parts), panes), start, end)


def keep_panes(
    task: SplitTask, panes: Panes, segments: Segments, split: Split, carried: CarriedPanes
) -> Left:
    """What is left to the carry of the keys that were looked at, which are all; their counts move on."""
    touched, stream, key = carried.touched, segments.stream, segments.key
    count, since = carried.left(_first_open_us(task))
    fresh = split.keep & ~segments.carried
    first = begins_pane(panes, stream.time)
    first[stream.starts] = True
    owner = key[stream.segment]
    touched.rows[:] = count + np.bincount(owner[fresh & first], minlength=len(count))
    touched.open[:] = 0
    touched.open[key] = split.open
    return Left(since, [rows_from(panes, stream.events, owner, fresh)], [owner[fresh]])


def _first_open_us(task: SplitTask) -> int:
    """The start of the first window that has not ended."""
    frontier_us = task.horizon.frontier_us
    if frontier_us == UNKNOWN_TIME:
        return UNKNOWN_TIME
    spans = [planned.rule.span for planned in task.share.rules]
    grids = {span for span in spans if isinstance(span, GridSpan)}
    return min((last_ended(grid, frontier_us) + 1) * grid.every_us for grid in grids)
