"""Makes the table of late events, which the frontier had passed before they came, and takes them away."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_pace.core.columns import OFFSET, SOURCE, TIME, UNKNOWN_TIME, UTC_TIME, Bools, Ints
from spark_pace.core.plan.rule import EventSchema
from spark_pace.core.plan.structs import json_rows, nested
from spark_pace.core.tables import array, numbers

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
    aside = late.select(["source", "offset"]).rename_columns([SOURCE, OFFSET])
    aside = aside.cast(pa.schema([(SOURCE, pa.string()), (OFFSET, pa.int64())]))
    keys = pa.table({
        SOURCE: events[SOURCE].cast(pa.string()),
        OFFSET: events[OFFSET],
        "row": pa.array(np.arange(events.num_rows)),
    })  # fmt: skip
    kept = keys.join(aside, [SOURCE, OFFSET], join_type="left anti")["row"]
    return events.take(kept.take(pc.sort_indices(kept)))
