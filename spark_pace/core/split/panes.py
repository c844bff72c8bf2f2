"""Windows of time that aggregate: rows of panes, what ranges of them hold, and the windows that end.

Numbers and sums of ranges are differences of running sums, which are exact; the least and the greatest value
are taken from ranks. So ranges may overlap, and nothing is copied for each. Ranges of events hold the same.

The carry has the rows of panes of the windows that are open.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_pace.core.match.spans import SpanRows, last_ended
from spark_pace.core.match.stream import Stream
from spark_pace.core.plan.plan import EVENTS, LAST, Panes, held_column
from spark_pace.core.plan.rule import GridSpan
from spark_pace.core.ranks import folded, pieces, range_sums
from spark_pace.core.split.carry.carry import Carry, Touched
from spark_pace.core.split.carry.chunk import Chunk, Owned
from spark_pace.core.split.carry.key_streams import Fresh, Left, Segments
from spark_pace.core.split.selections import ended_windows, lanes_of_windows
from spark_pace.core.split.task import Split, SplitTask, with_new_rows, without_ended
from spark_pace.core.summaries.distribution import Registers, extremes, of_stored, registers_of, stored
from spark_pace.core.summaries.sums import Sums, squares_of, sums_of, sums_of_stored
from spark_pace.core.tables import (
    NO_ROW,
    SEQ,
    TIME,
    UNKNOWN_TIME,
    Bools,
    Ints,
    array,
    bools,
    concat,
    numbers,
    with_column,
)


@dataclass(frozen=True)
class ContentsOfEvents:
    """Rows that are events."""

    stream: Stream

    def events(self, start: Ints, end: Ints) -> Ints:
        """int64[s], how many events each range of rows stands for, from `start` to the row before `end`."""
        return end - start

    def known(self, attribute: str, start: Ints, end: Ints) -> Ints:
        """int64[s], how many of them have a value of the attribute."""
        values = self.stream.attribute(attribute)
        return range_sums(bools(pc.is_valid(values)), start, end) if values.null_count else end - start

    def sums(self, attribute: str, start: Ints, end: Ints, *, squared: bool = False) -> Sums:
        """The sums of their values, or of the squares of these."""
        values = self.stream.attribute(attribute)
        return (squares_of if squared else sums_of)(values).over(start, end)

    def registers(self, attribute: str, start: Ints, end: Ints) -> Registers:
        """The sketches of their values."""
        return registers_of(self.stream.attribute(attribute), start, end)

    def values(self, part: str, attribute: str) -> pa.Array:
        """The "min", "max", "first" or "last" of each row's values; of events "each", which is the value."""
        return self.stream.attribute(attribute)

    def type_of(self, attribute: str) -> pa.DataType:
        """The attribute's type."""
        return self.stream.events.schema.field(attribute).type


@dataclass(frozen=True)
class ContentsOfPanes:
    """Rows that are panes, or parts of them, each of which stands for events that follow each other."""

    stream: Stream
    panes: Panes

    def events(self, start: Ints, end: Ints) -> Ints:
        """See `ContentsOfEvents`."""
        return range_sums(numbers(self.stream.events, EVENTS), start, end)

    def known(self, attribute: str, start: Ints, end: Ints) -> Ints:
        """See `ContentsOfEvents`."""
        return range_sums(numbers(self.stream.events, held_column("known", attribute)), start, end)

    def sums(self, attribute: str, start: Ints, end: Ints, *, squared: bool = False) -> Sums:
        """See `ContentsOfEvents`."""
        stored = self.stream.attribute(held_column("squares" if squared else "sum", attribute))
        return sums_of_stored(stored, start, end)

    def registers(self, attribute: str, start: Ints, end: Ints) -> Registers:
        """See `ContentsOfEvents`."""
        sketches = of_stored(self.stream.attribute(held_column("sketch", attribute)))
        return folded(np.maximum, sketches, start, end)

    def values(self, part: str, attribute: str) -> pa.Array:
        """See `ContentsOfEvents`."""
        return self.stream.attribute(held_column(part, attribute))

    def type_of(self, attribute: str) -> pa.DataType:
        """See `ContentsOfEvents`."""
        return self.panes.types[attribute]


Contents: TypeAlias = ContentsOfEvents | ContentsOfPanes


def contents_of(stream: Stream, panes: Panes | None) -> Contents:
    """The contents of the rows of a rule's stream."""
    return ContentsOfEvents(stream) if panes is None else ContentsOfPanes(stream, panes)


def held_in(contents: Contents, part: str, attribute: str, start: Ints, end: Ints) -> pa.Array:
    """What each range holds of an attribute, as `Panes.held` has it; no range is empty."""
    if part == "known":
        return pa.array(contents.known(attribute, start, end))
    if part in ("sum", "squares"):
        return contents.sums(attribute, start, end, squared=part == "squares").stored()
    if part == "sketch":
        return stored(contents.registers(attribute, start, end))
    values = contents.values(part, attribute)
    if part in ("first", "last"):
        return values.take(pa.array(start if part == "first" else end - 1))
    assert part in ("min", "max"), part
    return extremes(values, start, end, least=part == "min")


@dataclass(frozen=True)
class CarriedPanes:
    """The rows of panes that a carry has of some keys; see `spark_pace.core.split.panes`.

    Of a key, no window that has not ended has begun before its first living row: so times tell which rows
    live, and whoever asks for a time of such a window need not know what newer chunks overrule.

    Attributes:
        carry: the carry.
        touched: the keys.
        width_us: the length of a pane.
    """

    carry: Carry
    touched: Touched
    width_us: int

    def newest(self) -> tuple[pa.Table | None, Ints]:
        """The last row of each key of which rows are carried, and the index of its key in `touched`."""
        tables, owners = list[pa.Table](), [np.zeros(0, np.int64)]
        wanted = self.touched.rows > 0
        for chunk, places in zip(reversed(self.carry.chunks), reversed(self.touched.places), strict=True):
            if not wanted.any():
                break
            if chunk.events is None:
                continue
            here = np.flatnonzero(wanted & (places >= 0))
            some, rows = chunk.newest(places[here])
            if len(some):
                tables.append(chunk.events.take(pa.array(rows)))
                owners.append(here[some])
                wanted[here[some]] = False
        if not tables:
            return None, owners[0]
        rows = concat(tables)  # with the columns of a batch's rows
        rows = with_column(rows, LAST, array(rows, TIME)).select([*rows.column_names[:-1], LAST, SEQ])
        return rows, np.concatenate(owners)

    def onward(self, keys: Ints, times: Ints) -> tuple[pa.Table, Ints]:
        """The rows that together hold all that is carried of some keys from some times on, one of each chunk.

        Args:
            keys: int64[w], indices in `touched`, of keys of which rows are carried.
            times: int64[w], of each a time at or before that of its key's last row.

        Returns:
            the rows; and int64[n], for which of the w each is: ascending, and then in stream order.
        """
        tables, owners = list[pa.Table](), list[Ints]()
        for chunk, here, first, _ in self._from(keys, times):
            assert chunk.events is not None
            tables.append(chunk.events.take(pa.array(first)))
            owners.append(here)
        owner = np.concatenate(owners)
        order = np.argsort(owner, kind="stable")
        return concat(tables).take(pa.array(order)), owner[order]

    def left(self, from_us: int) -> tuple[Ints, Ints]:
        """Of each key, how many panes are carried from a time on, and the `seq` of the first one's row.

        The latter is `NO_ROW` where none is. Rows of two chunks may be of one pane.
        """
        count = len(self.touched.texts)
        panes, since = np.zeros(count, np.int64), np.full(count, NO_ROW)
        newest = np.full(count, from_us // self.width_us - 1)
        keys = np.flatnonzero(self.touched.rows > 0)
        for chunk, here, first, end in self._from(keys, np.full(len(keys), from_us)):
            assert chunk.events is not None
            pane, of = numbers(chunk.events, TIME), keys[here]
            panes[of] += end - first - (pane[first] // self.width_us == newest[of])
            newest[of] = pane[end - 1] // self.width_us
            since[of] = np.minimum(since[of], numbers(chunk.events, SEQ)[first])
        return panes, since

    def _from(self, keys: Ints, times: Ints) -> Iterator[tuple[Chunk, Ints, Ints, Ints]]:
        """For each chunk, the oldest first, what it has of keys from times on, where it has some.

        Yields:
            the chunk; and int64[m] each: for which of the keys, the first row, the row behind the last one.
        """
        least = int(times.min(initial=NO_ROW))
        for chunk, places in zip(self.carry.chunks, self.touched.places, strict=True):
            if chunk.events is None or chunk.ranges[TIME][1] < least:
                continue
            here = np.flatnonzero(places[keys] >= 0)
            first, end = chunk.first_from(TIME, places[keys[here]], times[here])
            some = np.flatnonzero(first < end)
            if len(some):
                yield chunk, here[some], first[some], end[some]


def in_panes(panes: Panes, fresh: Fresh) -> Fresh:
    """Rows for the panes of a batch's events, those of each key together; with the time of the last event."""
    if fresh.events is None:
        return fresh
    events, owner = fresh.events, fresh.owner
    if len(fresh.texts) > 1:
        order = np.argsort(owner, kind="stable")
        events, owner = events.take(pa.array(order)), owner[order]
    first = np.append(True, owner[1:] != owner[:-1]) | begins_pane(panes, numbers(events, TIME))
    start = np.flatnonzero(first)
    end = np.append(start[1:], len(first))
    rows = rows_of_ranges(panes, ContentsOfEvents(as_one(events)), start, end)
    rows = with_column(rows, LAST, array(events, TIME).take(pa.array(end - 1)))
    return Fresh(rows, fresh.texts, owner[start])


def rows_from(panes: Panes, rows: pa.Table, owner: Ints, kept: Bools) -> pa.Table:
    """What is carried of a batch's rows: for each that is kept, all of its owner's from there on.

    Args:
        panes: what is kept of panes.
        rows: rows, each of the events of a pane.
        owner: int64[n], whose each is; equal ones stand together.
        kept: bool[n]; behind a row that is kept, those of its owner are too.
    """
    start = np.flatnonzero(kept)
    return rows_of_ranges(panes, ContentsOfPanes(as_one(rows), panes), start, _ends(owner, start))


def put_together(panes: Panes, old: Owned, new: Owned) -> Owned:
    """What two chunks carry: the older rows stand for those of the newer chunk too from now on.

    The first newer row of a key is left out if its pane is that of an older row, which has its events too.
    """
    (older, owner), (newer, of_newer) = old, new
    owners, rows = np.append(owner, of_newer), concat([older, newer.select(older.column_names)])
    first, last = _firsts(of_newer), _lasts(owner)
    place = np.full(int(owners.max()) + 1, -1)
    place[of_newer[first]] = len(owner) + first
    again = np.flatnonzero(place[owner] >= 0)
    pairs = np.column_stack([again, place[owner[again]]]).ravel()
    begin = np.arange(0, len(pairs), 2)
    contents = ContentsOfPanes(as_one(rows.take(pa.array(pairs))), panes)
    united = rows_of_ranges(panes, contents, begin, begin + 2).select(rows.column_names)
    pane = numbers(rows, TIME) // panes.width_us
    newest = np.full(len(place), pane.min() - 1)
    newest[owner[last]] = pane[last]
    kept = np.ones(len(owners), np.bool_)
    kept[len(owner) + first] = pane[len(owner) + first] != newest[of_newer[first]]
    index = np.arange(len(owners))
    index[again] = len(index) + np.arange(len(again))
    return concat([rows, united]).take(pa.array(index[kept])), owners[kept]


def with_needed_columns(panes: Panes, chunk: Chunk) -> Chunk:
    """The chunk without what only rules have needed that are gone."""
    names = [TIME, EVENTS, *(held_column(*part) for part in panes.held), *panes.shared, SEQ]
    if chunk.events is None or chunk.events.column_names == names:
        return chunk
    return replace(chunk, events=chunk.events.select(names), frames=(), name=None)


def begins_pane(panes: Panes, time: Ints) -> Bools:
    """bool[n], which rows are in another pane than the row before."""
    pane = time // panes.width_us
    return np.append(True, pane[1:] != pane[:-1])


def rows_of_ranges(panes: Panes, contents: Contents, start: Ints, end: Ints) -> pa.Table:
    """A row for each range of rows, as `Panes` says; with ``@seq`` where the rows have it."""
    events = contents.stream.events
    first = pa.array(start)
    columns = {TIME: array(events, TIME).take(first)}
    columns[EVENTS] = pa.array(contents.events(start, end))
    for part, attribute in panes.held:
        columns[held_column(part, attribute)] = held_in(contents, part, attribute, start, end)
    columns |= {name: contents.stream.attribute(name).take(first) for name in panes.shared}
    if SEQ in events.column_names:
        columns[SEQ] = array(events, SEQ).take(first)
    return pa.table(columns)


def as_one(rows: pa.Table) -> Stream:
    """The rows as a stream of one segment."""
    return Stream(rows, np.zeros(1, np.int64))


def _firsts(owner: Ints) -> Ints:
    """The first row of each owner, where equal ones stand together."""
    return np.flatnonzero(np.append(True, owner[1:] != owner[:-1]))


def _lasts(owner: Ints) -> Ints:
    """The last row of each owner."""
    return np.flatnonzero(np.append(owner[1:] != owner[:-1], True))


def _ends(owner: Ints, rows: Ints) -> Ints:
    """Of some rows, the row behind the last one of their owner."""
    ends = _lasts(owner) + 1
    return ends[np.searchsorted(ends, rows, "right")]


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
