"""Puts heartbeats and late events aside, finds out how far the sources have come, and joins side tables.

This happens before events are divided among slots. So an event that no rule uses can be late too, and a late
event keeps all its attributes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_pace.core.expr import EventColumns, evaluate_mask
from spark_pace.core.order import IN, FileProgress, Progress
from spark_pace.core.plan.plan import Plan
from spark_pace.core.plan.rule import EventSchema
from spark_pace.core.plan.structs import json_rows, nested
from spark_pace.core.tables import (
    NO_FRONTIER,
    OFFSET,
    SOURCE,
    TIME,
    UNKNOWN_TIME,
    UTC_TIME,
    Bools,
    Ints,
    array,
    chosen,
    numbers,
    paired,
)

LATE_SCHEMA = pa.schema([
    ("event_time", UTC_TIME), ("lateness_us", pa.int64()), ("source", pa.string()), ("offset", pa.int64()),
    ("reason", pa.string()), ("event", pa.string()),
])  # fmt: skip


def late_table(
    events: pa.Table, limits: Ints | int, by_source: Bools | bool, schema: EventSchema
) -> pa.Table:
    """Make the table of late events, with position, reason, and attributes as JSON.

    Args:
        events: n late events: ``@time, @source, @offset`` and attributes.
        limits: int64[n], the time before which each was late; or one for all.
        by_source: bool[n], True if the event's source has set its limit, False if the frontier has; or one
            for all.
        schema: the attributes.

    Returns:
        A table of `LATE_SCHEMA`. `lateness_us` is null for events that came after the end of the input.
    """
    time = numbers(events, TIME)
    rows = json_rows(nested(events, schema))
    limits = np.broadcast_to(limits, len(time))
    ended = limits == UNKNOWN_TIME
    lateness = pa.array(np.where(ended, 0, limits) - time, mask=ended)
    sources = array(events, SOURCE).cast(pa.string())
    columns = [pa.array(time).view(UTC_TIME), lateness, sources, array(events, OFFSET)]
    reasons = _reasons(limits, np.broadcast_to(by_source, len(time)))
    return pa.table([*columns, reasons, pa.array(rows, pa.string())], schema=LATE_SCHEMA)


def _reasons(limits: Ints, by_source: Bools) -> pa.Array:
    """string[n]: the reason why each event is late, with its limit."""
    times = pc.replace_substring_regex(
        pc.strftime(pa.array(limits).view(pa.timestamp("us")), "%Y-%m-%dT%H:%M:%SZ"), r"\.000000Z$", "Z"
    )
    who = pc.if_else(pa.array(by_source), "its source", "the frontier")
    told = pc.binary_join_element_wise(who, times, " had passed ")
    return pc.if_else(pa.array(limits == UNKNOWN_TIME), "the input had ended", told)


def without_late(events: pa.Table, late: pa.Table) -> pa.Table:
    """The events without those at a position (`source`, `offset`) of `late`."""
    aside = pa.table({SOURCE: late["source"].cast(pa.string()), OFFSET: late["offset"].cast(pa.int64())})
    position = pa.table({SOURCE: events[SOURCE].cast(pa.string()), OFFSET: events[OFFSET]})
    return events.filter(pc.is_null(key_rows(aside, [SOURCE, OFFSET], position)))


def reached_before(time: Ints, names: pa.DictionaryArray, before: Callable[[str], int]) -> Ints:
    """For each record, the greatest event time of earlier records of its source.

    Args:
        time: int64[n], event times in the order of the records.
        names: the n sources; null for a record without source.
        before: gives the greatest time of a source before the first record.

    Returns:
        int64[n]; `NO_FRONTIER` where there is no earlier record. O(n log n) with several sources.
    """
    texts = names.dictionary.cast(pa.string()).to_pylist()
    known = np.array([*map(before, texts), NO_FRONTIER], np.int64)
    source = names.indices.cast(pa.int64()).fill_null(len(texts)).to_numpy()
    if len(source) and (source == source[0]).all():
        found = _earlier_greatest(time, known[source[0]])
    else:
        found = _of_each(time, source, known)
    found[source == len(texts)] = NO_FRONTIER
    return found


def _of_each(time: Ints, source: Ints, known: Ints) -> Ints:
    """The reached times of several sources, by one running maximum of ranks, source by source."""
    rows = np.argsort(source, kind="stable")
    values, ranks = np.unique(np.append(time, known), return_inverse=True)
    size, of_row = len(values), source[rows]
    is_first = np.append(True, of_row[1:] != of_row[:-1])
    own, beginning = ranks[: len(time)][rows], ranks[len(time) :][of_row]
    # before each record: the record before it, or the time that its source had reached
    code = np.where(is_first, beginning, np.maximum(np.roll(own, 1), beginning)) + of_row * size
    found = np.empty(len(time), np.int64)
    found[rows] = values[np.maximum.accumulate(code) - of_row * size]
    return found


def _earlier_greatest(time: Ints, known_us: int) -> Ints:
    """int64[n]: the greatest of `known_us` and the times before each."""
    return np.maximum.accumulate(np.append(known_us, time[:-1]))


def joined(events: pa.Table, schema: EventSchema, tables: Mapping[str, pa.Table]) -> pa.Table:
    """Add the attributes of the schema's side tables; null where a table has no row for an event.

    The time is linear in events and tables.

    Args:
        events: a table with the columns of `schema.own`, and others.
        schema: the attributes.
        tables: the side tables by name. Each has a column for each attribute of its key, which is unique, and
            one for each attribute that it gives.
    """
    for side in schema.side_tables:
        table = tables[side.name]
        keys = [attribute for attribute, _ in side.on]
        rows = key_rows(table, keys, events)
        there, *fields = side.fields
        events = events.append_column(there.name, pc.if_else(pc.is_valid(rows), True, None))
        for each in fields:
            events = events.append_column(each.name, array(table, each.name).take(rows))
    return events


def key_rows(table: pa.Table, keys: Sequence[str], events: pa.Table) -> pa.Array:
    """int64[n]: for each event the first row of a table with the same key; null if there is none."""
    first, *others = keys
    known, asked = array(table, first), array(events, first)
    for key in others:
        values, more = pc.unique(known), pc.unique(table[key])
        known, asked = (
            pc.add(pc.multiply(_places(before, values), len(more)), _places(array(rows, key), more))
            for before, rows in ((known, table), (asked, events))
        )
    return _places(asked, known)


def _places(values: pa.Array, among: pa.Array) -> pa.Array:
    """int64[n]: the index of each value in `among`; null for null and for values that are not in it."""
    return pc.index_in(values, value_set=among, skip_nulls=True).cast(pa.int64())


@dataclass(frozen=True)
class Past:
    """The facts about earlier records that sifting needs.

    Attributes:
        frontier_us: the frontier when the batch began: events below it are late. `NO_FRONTIER` if earlier
            files decide which events are late, because then only the splitter knows the frontier.
        reached: the greatest event time of each source before the batch; empty unless earlier records of its
            source decide if an event is late.
        moved: the greatest event time of each source with records in the batch; it replaces the time in
            `reached`. These sources are usually few, so copying them is cheap.
    """

    frontier_us: int = NO_FRONTIER
    reached: Mapping[str, int] = field(default_factory=dict)
    moved: Mapping[str, int] = field(default_factory=dict)

    def after(self, progress: Progress) -> Past:
        """The past after more records with this progress."""
        moved = {source: max(time, self.reached_by(source)) for source, time in progress.sources.items()}
        return replace(self, moved={**self.moved, **moved})

    def reached_by(self, source: str) -> int:
        """The greatest event time of a source so far; `NO_FRONTIER` if it had no record."""
        return self.moved.get(source, self.reached.get(source, NO_FRONTIER))


@dataclass(frozen=True)
class Sifted:
    """The records of a table, sorted into events, late events and heartbeats.

    Attributes:
        events: the events that are not known to be late.
        late: the late events, as a table of `LATE_SCHEMA`.
        heartbeats: the number of heartbeats, which only say how far their source has come.
        progress: how far the sources have come, by all records.
    """

    events: pa.Table
    late: pa.Table
    heartbeats: int
    progress: Progress


def sift(plan: Plan, records: pa.Table, past: Past) -> Sifted:
    """Sort the records of a table into events, late events and heartbeats.

    Args:
        plan: the plan.
        records: ``@time, @source, @offset`` and the schema's attributes; in the order of offsets if earlier
            records of its source decide if an event is late, else in any order.
        past: what came before these records.
    """
    names = _source_names(plan, records) if plan.order.by_source and records.num_rows else None
    progress = _progress(records, names)
    limits = _limits(plan, records, names, past)
    if limits is None and plan.heartbeat is None:
        return Sifted(records, LATE_SCHEMA.empty_table(), 0, progress)
    is_event = np.ones(records.num_rows, np.bool_)
    if plan.heartbeat is not None:
        is_event = ~evaluate_mask(plan.heartbeat, EventColumns(records))
    rows, late = LATE_SCHEMA.empty_table(), np.zeros(records.num_rows, np.bool_)
    if limits is not None:
        late = is_event & (numbers(records, TIME) < limits.times)
    if limits is not None and late.any():
        own = plan.schema.own
        rows = late_table(chosen(records, late), limits.times[late], limits.by_source[late], own)
    events = chosen(records, is_event & ~late)
    return Sifted(events, rows, records.num_rows - int(is_event.sum()), progress)


def sift_next(
    plan: Plan, records: pa.Table, past: Past, entry: int = 0, listed: str = ""
) -> tuple[Sifted, Past]:
    """Sift the next records of one reader (a task, or a run in one process).

    Args:
        plan: as in `sift`.
        records: as in `sift`; of one file only, if earlier files decide which events are late.
        past: what came before these records.
        entry: the index of this file in the order of files.
        listed: what a task must know to read this file.

    Returns:
        The sifted records, with the progress of their file if files decide; and the past of the next records.
    """
    sifted = sift(plan, records, past)
    if plan.order.before == "records":
        return sifted, past.after(sifted.progress)
    if plan.order.before == "files" and records.num_rows:
        file = FileProgress(entry, records[SOURCE][0].as_py(), listed, sifted.progress)
        sifted = replace(sifted, progress=replace(sifted.progress, files=(file,)))
    return sifted, past


class _Limits(NamedTuple):
    """For each record the time before which it is late, and True if its own source has set that time."""

    times: Ints
    by_source: Bools


def _limits(plan: Plan, records: pa.Table, names: pa.DictionaryArray | None, past: Past) -> _Limits | None:
    """The limit of each record; None if no record can be late."""
    if plan.order.before == "records" and names is not None:
        reached = reached_before(numbers(records, TIME), names, past.reached_by)
        own = np.where(reached == NO_FRONTIER, NO_FRONTIER, reached - plan.order.delay_us)
        return _Limits(np.maximum(own, past.frontier_us), own >= past.frontier_us)
    if past.frontier_us == NO_FRONTIER:
        return None
    return _Limits(np.full(records.num_rows, past.frontier_us), np.zeros(records.num_rows, np.bool_))


def _progress(records: pa.Table, names: pa.DictionaryArray | None) -> Progress:
    if not records.num_rows:
        return Progress()
    time = array(records, TIME)
    extremes = pc.min_max(time)
    sources = {} if names is None else _greatest(names, time)
    return Progress(extremes["max"].as_py(), False, sources, extremes["min"].as_py())


def _source_names(plan: Plan, records: pa.Table) -> pa.DictionaryArray:
    """The name of each record's source; null where the source column is null.

    If earlier records of a source decide, it has a different name in each partition (see `IN`).
    """
    names = _encoded(array(records, plan.source_column or SOURCE))
    if plan.source_column is None or plan.order.before != "records":
        return names
    return paired(names, _encoded(array(records, SOURCE)), IN)


def _encoded(values: pa.Array) -> pa.DictionaryArray:
    return values if pa.types.is_dictionary(values.type) else values.dictionary_encode()


def _greatest(names: pa.DictionaryArray, time: pa.Array) -> dict[str, int]:
    """The greatest time of each source; records without source do not count."""
    latest = pa.table({"source": names.indices, "time": time}).group_by("source").aggregate([("time", "max")])
    known = latest.filter(pc.is_valid(latest["source"]))
    texts = names.dictionary.take(known["source"].combine_chunks()).cast(pa.string())
    return dict(zip(texts.to_pylist(), known["time_max"].to_pylist(), strict=True))
