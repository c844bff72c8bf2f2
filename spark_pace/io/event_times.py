"""Sorts out records with impossible times: no event time, or a TIMESTAMP or DATE outside its range.

All readers of files and of records use it.
"""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_pace.core.expr import array_element
from spark_pace.core.expr.time_functions import RANGES, out_of_range
from spark_pace.core.plan.rule import EventSchema
from spark_pace.core.plan.structs import shown_values
from spark_pace.core.tables import Ints
from spark_pace.io.bad_records import BadRecords, Raws

EARLIEST_US = -2_208_988_800_000_000  # 1900-01-01
END_US = 7_258_118_400_000_000  # 2200-01-01: no event has a time from here on
FAR_US = 1 << 62  # a time outside every range
UNIT_US = {None: 1, "us": 1, "ms": 1_000, "s": 1_000_000}
_MOST_CHARACTERS = 200  # the length of a value in a reason


def timely(
    table: pa.Table, schema: EventSchema, rows: Ints, first: int, raws: Raws, bad: BadRecords
) -> pa.Table:
    """Keep the rows of a parsed chunk whose times are possible; add the columns of `with_places`.

    Args:
        table: the parsed records, a column for each attribute.
        schema: the attributes.
        rows: int64[n], the number of each row's record in the chunk.
        first: the offset of the chunk's first record.
        raws: the bytes of the chunk's records.
        bad: gets the records with an impossible time.
    """
    unit = UNIT_US[schema.time_unit]
    counts = pc.cast(table.column(schema.event_time), pa.int64())
    inside = pc.and_(pc.greater_equal(counts, EARLIEST_US // unit), pc.less(counts, END_US // unit))
    wrong = {schema.event_time: ~pc.fill_null(inside, False).to_numpy()}
    for field in schema.fields:
        outside = out_of_range(table.column(field.name)) if field.name not in wrong else None
        if outside is not None:
            wrong[field.name] = outside
    refused = np.logical_or.reduce(list(wrong.values()))
    if not refused.any():
        return with_places(table, counts.to_numpy() * unit, first + rows)
    places = np.flatnonzero(refused)

    def reason(index: int) -> str:
        row = places[index]
        name = next(name for name, outside in wrong.items() if outside[row])
        return _impossible(schema, name, table.column(name).slice(row, 1))

    bad.add(first, rows[places], reason, raws)
    good = pa.array(~refused)
    return with_places(table.filter(good), counts.filter(good).to_numpy() * unit, first + rows[~refused])


def _impossible(schema: EventSchema, name: str, value: pa.ChunkedArray) -> str:
    """The reason for a record whose attribute `name` has an impossible time, the only entry of `value`."""
    (kind,) = (field.type for field in schema.fields if field.name == name)
    must = "an event time from 1900 to 2199"
    if name != schema.event_time:
        must = RANGES[array_element(kind) or kind]
    (shown,) = shown_values(value)
    text = json.dumps(shown, default=str) if isinstance(shown, list) else str(shown)
    got = "nothing" if shown is None else text.removesuffix(".000000")[:_MOST_CHARACTERS]
    return f"{name} — must be {must}; got {got}"


def with_places(table: pa.Table, times_us: Ints, offsets: Ints) -> pa.Table:
    """Add the columns `@time` (int64, microseconds since 1970) and `@offset` (int64) in front."""
    return table.add_column(0, "@time", pa.array(times_us)).add_column(1, "@offset", pa.array(offsets))
