"""The range of TIMESTAMP and DATE, and functions on them.

Every time is UTC, and the calendar is Gregorian before 1582 too. A value lies in the years 1 to 9999: these
are the years that Python, SQL engines and readers of Delta tables know.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

FIRST_DAY, LAST_DAY = -719_162, 2_932_896  # since 1970: 0001-01-01 and 9999-12-31
_MICROS = 1_000_000
_DAY_US = 86_400 * _MICROS
FIRST_US, LAST_US = FIRST_DAY * _DAY_US, (LAST_DAY + 1) * _DAY_US - 1
RANGES = {
    "TIMESTAMP": "from 0001-01-01 to 9999-12-31T23:59:59.999999, in UTC",
    "DATE": "from 0001-01-01 to 9999-12-31",
}


def out_of_range(values: pa.Array | pa.ChunkedArray) -> npt.NDArray[np.bool_] | None:
    """bool[n], which of n TIMESTAMPs, DATEs, or ARRAYs of these are out of range; None if none is.

    Args:
        values: n values of one type. Values of any other type have no range, so none of them is out of it.
    """
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if pa.types.is_list(values.type):
        there = values.drop_null()  # below a null there may be elements that do not count
        outside = out_of_range(there.flatten())
        if outside is None:
            return None
        lists = np.zeros(len(values), np.bool_)
        rows = np.flatnonzero(values.is_valid().to_numpy(zero_copy_only=False))
        lists[rows[pc.list_parent_indices(there).to_numpy()[outside]]] = True
        return lists
    if pa.types.is_date32(values.type):
        least, most, counts = FIRST_DAY, LAST_DAY, values.cast(pa.int32())
    elif pa.types.is_timestamp(values.type):
        least, most, counts = FIRST_US, LAST_US, values.cast(pa.int64())
    else:
        return None
    ends = pc.min_max(counts)
    if not ends["min"].is_valid or least <= ends["min"].as_py() <= ends["max"].as_py() <= most:
        return None
    outside = pc.or_(pc.less(counts, least), pc.greater(counts, most))
    return pc.fill_null(outside, False).to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]


def _part(kernel: Callable[[Any], Any]) -> Callable[[list[Any]], Any]:
    return lambda values: pc.cast(kernel(values[0]), pa.int64())


def _dayofweek(value: Any) -> Any:
    """The day of the week: Sunday is 1, Saturday is 7."""
    return pc.day_of_week(value, count_from_zero=False, week_start=7)


def _unix_micros(values: list[Any]) -> Any:
    return pc.cast(values[0], pa.int64())


def _unix_seconds(values: list[Any]) -> Any:
    """Whole seconds since 1970, rounded down (before 1970 too)."""
    micros = _unix_micros(values)
    seconds = pc.divide(micros, _MICROS)
    return pc.subtract(seconds, pc.cast(pc.less(micros, pc.multiply(seconds, _MICROS)), pa.int64()))


def _timestamp_micros(values: list[Any]) -> Any:
    """The TIMESTAMP so many microseconds after 1970; null out of its range."""
    micros = pc.cast(values[0], pa.int64())
    inside = pc.and_(pc.greater_equal(micros, FIRST_US), pc.less_equal(micros, LAST_US))
    return pc.cast(pc.if_else(inside, micros, None), pa.timestamp("us"))


def _date_trunc(values: list[Any]) -> Any:
    """The beginning of the unit that a time is in; a week begins on Monday."""
    return pc.floor_temporal(values[1], unit=values[0].as_py(), week_starts_monday=True)


def _datediff(values: list[Any]) -> Any:
    """The number of days from the second date to the first."""
    days = (pc.cast(pc.cast(value, pa.int32()), pa.int64()) for value in values)
    return pc.subtract(*days)


KERNELS: dict[str, Callable[[list[Any]], Any]] = {
    "year": _part(pc.year),
    "month": _part(pc.month),
    "day": _part(pc.day),
    "dayofweek": _part(_dayofweek),
    "hour": _part(pc.hour),
    "minute": _part(pc.minute),
    "second": _part(pc.second),
    "quarter": _part(pc.quarter),
    "dayofyear": _part(pc.day_of_year),
    "date_trunc": _date_trunc,
    "datediff": _datediff,
    "timestamp_micros": _timestamp_micros,
    "unix_micros": _unix_micros,
    "unix_seconds": _unix_seconds,
}
