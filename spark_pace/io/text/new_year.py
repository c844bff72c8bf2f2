"""Says of a file that goes over New Year where its times are written without a year."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from spark_pace.core.expr.time_functions import time_of
from spark_pace.core.plan.rule import EventSchema
from spark_pace.io.text.name_endings import position

NEW_YEAR_US = 180 * 24 * 3_600_000_000  # times that fall back by more go over New Year


def told_of_new_year(events: pa.Table, schema: EventSchema, source: str) -> dict[str, str]:
    """The message that a file goes over New Year if its times have no year, by the event time; else empty.

    Args:
        events: the events of the file, in the order of its lines, with the columns of `with_places`.
        schema: the attributes.
        source: the name of the file.
    """
    if not schema.form.omits_year:
        return {}
    times = events["@time"].to_numpy()
    back = np.flatnonzero(times[:-1] - times[1:] > NEW_YEAR_US)
    if not len(back):
        return {}
    before, after = (f"{time_of(us):%Y-%m-%d %H:%M:%S}" for us in times[back[0] : back[0] + 2].tolist())
    at = position(source, events["@offset"][back[0] + 1].as_py())
    fell = f"falls back from {before} to {after}"
    do = "A file must lie in the year before its last change: split it, or set that by `touch -d DATE FILE`."
    if schema.form.year is not None:
        do = "Leave `year` out: then a time is in the last year that puts it at most a day after the file "
        do += "was changed last, which `touch -d DATE FILE` sets."
    told = f"{at} — {schema.event_time} {fell}. If these times are written without a year, the log goes over "
    return {schema.event_time: f"{told}New Year, and matches over it are lost. {do}"}
