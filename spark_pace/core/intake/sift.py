"""Put heartbeats and late events aside, and find out how far the sources have come.

This happens before events are given to slots. So an event that no rule wants can be late too, and a late
event is kept with all its attributes.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from spark_pace.core.columns import SOURCE, TIME, array, chosen, numbers
from spark_pace.core.expr import EventColumns, evaluate_mask
from spark_pace.core.intake.late import LATE_SCHEMA, late_table
from spark_pace.core.order.order import Progress
from spark_pace.core.plan.plan import Plan


@dataclass(frozen=True)
class Sifted:
    """What a table of records holds: each record is an event, a late event or a heartbeat.

    Attributes:
        events: the events that are on time.
        late: the late events, as a table of `LATE_SCHEMA`.
        heartbeats: how many records only say how far their source has come.
        progress: how far the sources have come, by all records.
    """

    events: pa.Table
    late: pa.Table
    heartbeats: int
    progress: Progress


def sift(plan: Plan, records: pa.Table, frontier_us: int) -> Sifted:
    """Take a table of valid records apart.

    Args:
        plan: the plan.
        records: ``@time, @source, @offset`` and the schema's attributes, in any order.
        frontier_us: the frontier when the batch began.
    """
    progress = _progress(plan, records)
    events, rows = records, LATE_SCHEMA.empty_table()
    if plan.heartbeat is not None:
        events = chosen(records, ~evaluate_mask(plan.heartbeat, EventColumns(records)))
    beats = records.num_rows - events.num_rows
    if progress.least_us is not None and progress.least_us < frontier_us:
        late = numbers(events, TIME) < frontier_us
        if late.any():
            rows = late_table(chosen(events, late), frontier_us, plan.schema)
            events = chosen(events, ~late)
    return Sifted(events, rows, beats, progress)


def _progress(plan: Plan, records: pa.Table) -> Progress:
    if not records.num_rows:
        return Progress()
    time = array(records, TIME)
    extremes = pc.min_max(time)
    sources = _sources(plan, records, time) if plan.order.by_source else {}
    return Progress(extremes["max"].as_py(), False, sources, extremes["min"].as_py())


def _sources(plan: Plan, records: pa.Table, time: pa.Array) -> dict[str, int]:
    """The greatest time of each source; a record whose source column is null counts for no source."""
    names = array(records, plan.source_column or SOURCE)
    if not pa.types.is_dictionary(names.type):
        names = names.dictionary_encode()
    latest = pa.table({"source": names.indices, "time": time}).group_by("source").aggregate([("time", "max")])
    known = latest.filter(pc.is_valid(latest["source"]))
    texts = names.dictionary.take(known["source"].combine_chunks()).cast(pa.string())
    return dict(zip(texts.to_pylist(), known["time_max"].to_pylist(), strict=True))
