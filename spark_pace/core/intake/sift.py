"""Puts heartbeats and late events aside, and finds out how far the sources have come.

This happens before events are divided among slots. So an event that no rule uses can be late too, and a late
event keeps all its attributes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_pace.core.columns import NO_FRONTIER, SOURCE, TIME, Bools, Ints
from spark_pace.core.expr import EventColumns, evaluate_mask
from spark_pace.core.intake.late_table import LATE_SCHEMA, late_table
from spark_pace.core.intake.reached_times import reached_before
from spark_pace.core.order.order import IN
from spark_pace.core.order.progress import Progress, file_progress
from spark_pace.core.plan.plan import Plan
from spark_pace.core.tables import array, chosen, numbers, paired


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
        by_source = limits.by_source if isinstance(limits.by_source, bool) else limits.by_source[late]
        rows = late_table(chosen(records, late), limits.times[late], by_source, plan.schema.own)
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
        files = file_progress(entry, records[SOURCE][0].as_py(), listed, sifted.progress)
        sifted = replace(sifted, progress=replace(sifted.progress, files=files))
    return sifted, past


class _Limits(NamedTuple):
    """For each record the time before which it is late, and True if its own source has set that time."""

    times: Ints
    by_source: Bools | bool


def _limits(plan: Plan, records: pa.Table, names: pa.DictionaryArray | None, past: Past) -> _Limits | None:
    """The limit of each record; None if no record can be late."""
    if plan.order.before == "records" and names is not None:
        reached = reached_before(numbers(records, TIME), names, past.reached_by)
        own = np.where(reached == NO_FRONTIER, NO_FRONTIER, reached - plan.order.delay_us)
        return _Limits(np.maximum(own, past.frontier_us), own >= past.frontier_us)
    if past.frontier_us == NO_FRONTIER:
        return None
    return _Limits(np.full(records.num_rows, past.frontier_us), False)


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
