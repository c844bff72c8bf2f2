"""The table of late events: the frontier had passed them before they came."""

from __future__ import annotations

from datetime import datetime, timedelta

import numpy as np
import pyarrow as pa

from spark_pace.core.columns import OFFSET, SOURCE, TIME, UNKNOWN_TIME, UTC_TIME, array, json_rows, numbers
from spark_pace.core.plan.nested import nested
from spark_pace.core.plan.rule import EventSchema

LATE_SCHEMA = pa.schema([
    ("event_time", UTC_TIME), ("lateness_us", pa.int64()), ("source", pa.string()), ("offset", pa.int64()),
    ("reason", pa.string()), ("event", pa.string()),
])  # fmt: skip
_EPOCH = datetime(1970, 1, 1)


def late_table(events: pa.Table, frontier_us: int, schema: EventSchema) -> pa.Table:
    """Late events with their position, the reason, and their attributes as JSON.

    Args:
        events: ``@time, @source, @offset`` and attributes.
        frontier_us: the frontier when their batch began.
        schema: the attributes.

    Returns:
        A table of `LATE_SCHEMA`. `lateness_us` is null for events that came after the end of the input.
    """
    time = numbers(events, TIME)
    rows = json_rows(nested(events, schema))
    ended = np.full(len(time), frontier_us == UNKNOWN_TIME)
    lateness = pa.array(np.where(ended, 0, frontier_us) - time, mask=ended)
    reason = pa.repeat(pa.scalar(_reason(frontier_us)), len(time))
    sources = array(events, SOURCE).cast(pa.string())
    columns = [pa.array(time).view(UTC_TIME), lateness, sources, array(events, OFFSET), reason]
    return pa.table([*columns, pa.array(rows, pa.string())], schema=LATE_SCHEMA)


def _reason(frontier_us: int) -> str:
    if frontier_us == UNKNOWN_TIME:
        return "the input had ended"
    return f"the frontier had passed {_EPOCH + timedelta(microseconds=frontier_us)}"
