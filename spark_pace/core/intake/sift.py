"""Put heartbeats and late events aside, and find out how far the sources have come.

This happens before events are given to slots. So an event that no rule wants can be late too, and a late
event is kept with all its attributes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
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
    beats = np.zeros(records.num_rows, np.bool_)
    if plan.heartbeat is not None:
        beats = evaluate_mask(plan.heartbeat, EventColumns(records))
    events = chosen(records, ~beats)
    late = numbers(events, TIME) < frontier_us
    rows = (
        late_table(chosen(events, late), frontier_us, plan.schema)
        if late.any()
        else LATE_SCHEMA.empty_table()
    )
    return Sifted(chosen(events, ~late), rows, int(beats.sum()), progress)


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
