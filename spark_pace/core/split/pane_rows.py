"""Rows of panes instead of events: made of a batch's events, put together with those that are carried.

A pane may have several rows, one of each batch that brought events of it. Neither the splitter nor the
operators mind. They are put together where all that is looked at is stored anyway, or where that halves it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from spark_pace import ways
from spark_pace.core.columns import SEQ, TIME, Bools, Ints
from spark_pace.core.contents import Contents, ContentsOfEvents, ContentsOfPanes, held_in
from spark_pace.core.match.stream import Stream, starts_of_streams
from spark_pace.core.plan.panes import EVENTS, LAST, Panes, held_column
from spark_pace.core.split.carry.chunk import Chunk, ranges_of
from spark_pace.core.split.carry.key_streams import Fresh, Segments
from spark_pace.core.tables import array, concat, numbers, with_column


def in_panes(panes: Panes, fresh: Fresh) -> Fresh:
    """Rows for the panes of a batch's events, those of each key together."""
    if fresh.events is None:
        return fresh
    events, owner = fresh.events, fresh.owner
    if len(fresh.texts) > 1:
        order = np.argsort(owner, kind="stable")
        events, owner = events.take(pa.array(order)), owner[order]
    first = np.append(True, owner[1:] != owner[:-1]) | _begins(panes, numbers(events, TIME))
    start = np.flatnonzero(first)
    contents = ContentsOfEvents(Stream(events, np.zeros(1, np.int64)))
    rows = _rows(panes, contents, start, np.append(start[1:], len(first)))
    return Fresh(rows, fresh.texts, owner[start])


def with_whole_panes(panes: Panes, segments: Segments) -> Segments:
    """The streams, of which some have one row for each pane now; these are to be stored anew."""
    stream = segments.stream
    first = _begins(panes, stream.time)
    first[stream.starts] = True
    rows = np.diff(np.append(stream.starts, stream.rows))
    whole = np.add.reduceat(first.astype(np.int64), stream.starts)
    united = rows > whole
    stays = ways.is_kept_in_part(stream.rows) and not ways.is_united_by_pane(stream.rows, int(whole.sum()))
    if stays or not united.any():
        return segments
    first |= ~united[stream.segment]
    start = np.flatnonzero(first)
    end = np.append(start[1:], stream.rows)
    again = united[stream.segment[start]]
    kept, made = np.flatnonzero(~again), np.flatnonzero(again)
    new = _rows(panes, ContentsOfPanes(stream, panes), start[made], end[made])
    for name in stream.events.column_names[new.num_columns :]:  # of the key
        new = new.append_column(name, array(stream.events, name).take(pa.array(start[made])))
    order = np.argsort(np.append(kept, made), kind="stable")
    events = concat([stream.events.take(pa.array(start[kept])), new]).take(pa.array(order))
    starts = np.searchsorted(start, stream.starts)
    return replace(segments, stream=Stream(events, starts), carried=segments.carried[start] & ~again)


def chunk_of_panes(panes: Panes, chunk: Chunk) -> Chunk:
    """The chunk with rows of panes where it has events: releases before this one carried them."""
    if chunk.events is None or EVENTS in chunk.events.column_names:
        return chunk
    owner, time = chunk.owners(), numbers(chunk.events, TIME)
    first = _begins(panes, time)
    first[starts_of_streams(owner, numbers(chunk.events, SEQ))] = True
    start = np.flatnonzero(first)
    stream = Stream(chunk.events, np.zeros(1, np.int64))
    rows = _rows(panes, ContentsOfEvents(stream), start, np.append(start[1:], len(first)))
    end = np.searchsorted(owner[start], np.arange(chunk.keys.num_rows), "right")
    return Chunk(with_column(chunk.keys, "end", end), rows, ranges_of(chunk.keys, rows), dead=chunk.dead)


def _begins(panes: Panes, time: Ints) -> Bools:
    """bool[n], which rows are in another pane than the row before."""
    pane = time // panes.width_us
    return np.append(True, pane[1:] != pane[:-1])


def _rows(panes: Panes, contents: Contents, start: Ints, end: Ints) -> pa.Table:
    """A row for each range of rows, as `Panes` says; with ``@seq`` where the rows have it."""
    events = contents.stream.events
    last = LAST if LAST in events.column_names else TIME
    first = pa.array(start)
    columns = {TIME: array(events, TIME).take(first), LAST: array(events, last).take(pa.array(end - 1))}
    columns[EVENTS] = pa.array(contents.events(start, end))
    for part, attribute in panes.held:
        columns[held_column(part, attribute)] = held_in(contents, part, attribute, start, end)
    columns |= {name: contents.stream.attribute(name).take(first) for name in panes.shared}
    if SEQ in events.column_names:
        columns[SEQ] = array(events, SEQ).take(first)
    return pa.table(columns)
