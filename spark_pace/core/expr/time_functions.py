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
_UNITS_US = {
    "microsecond": 1, "millisecond": 1_000, "second": _MICROS, "minute": 60 * _MICROS,
    "hour": 3_600 * _MICROS, "day": _DAY_US, "week": 7 * _DAY_US,
}  # fmt: skip
_UNITS_MONTHS = {"month": 1, "quarter": 3, "year": 12}
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
    return _down(_unix_micros(values), _MICROS)


def _timestamp_micros(values: list[Any]) -> Any:
    """The TIMESTAMP so many microseconds after 1970; null out of its range."""
    micros = pc.cast(values[0], pa.int64())
    return pc.cast(_inside(micros, FIRST_US, LAST_US), pa.timestamp("us"))


def _date_trunc(values: list[Any]) -> Any:
    """The beginning of the unit that a time is in; a week begins on Monday."""
    return pc.floor_temporal(values[1], unit=values[0].as_py(), week_starts_monday=True)


def _unix_millis(values: list[Any]) -> Any:
    """Whole milliseconds since 1970, rounded down."""
    return _down(_unix_micros(values), 1_000)


def _down(micros: Any, unit: int) -> Any:
    """Microseconds in whole units, rounded down (before 1970 too)."""
    whole = pc.divide(micros, unit)
    return pc.subtract(whole, pc.cast(pc.less(micros, pc.multiply(whole, unit)), pa.int64()))


def _weekday(value: Any) -> Any:
    """The day of the week: Monday is 0, Sunday is 6."""
    return pc.day_of_week(value, count_from_zero=True, week_start=1)


def _datediff(values: list[Any]) -> Any:
    """The number of days from the second date to the first."""
    days = (pc.cast(pc.cast(value, pa.int32()), pa.int64()) for value in values)
    return pc.subtract(*days)


def _date_add(values: list[Any]) -> Any:
    """The date so many days later; null out of the range of dates."""
    days, number = pc.cast(pc.cast(values[0], pa.int32()), pa.int64()), values[1]
    moved = pc.add(days, pc.if_else(_near(number, LAST_DAY - FIRST_DAY), number, None))
    return pc.cast(pc.cast(_inside(moved, FIRST_DAY, LAST_DAY), pa.int32()), pa.date32())


def _timestampadd(values: list[Any]) -> Any:
    """The time so many units later; null out of the range of times. A day that a month lacks is its last."""
    unit, number, time = values[0].as_py(), values[1], pc.cast(values[2], pa.int64())
    size = _UNITS_US.get(unit)
    if size is not None:
        room = (LAST_US - FIRST_US) // size
        moved = pc.add(time, pc.multiply(pc.if_else(_near(number, room), number, None), size))
        return pc.cast(_inside(moved, FIRST_US, LAST_US), pa.timestamp("us"))
    number = pc.if_else(_near(number, 12 * 10_000), pc.multiply(number, _UNITS_MONTHS[unit]), None)
    month = pc.add(_month(values[2]), number)
    first, last = _ends_of(month)
    day = pc.min_element_wise(pc.add(first, pc.subtract(pc.day(values[2]), 1)), last, skip_nulls=False)
    of_day = pc.subtract(time, pc.multiply(_down(time, _DAY_US), _DAY_US))
    moved = pc.add(pc.multiply(day, _DAY_US), of_day)
    return pc.cast(_inside(moved, FIRST_US, LAST_US), pa.timestamp("us"))


def _timestampdiff(values: list[Any]) -> Any:
    """The number of whole units from the first time to the second, below 0 if the second is earlier."""
    unit, start, end = values[0].as_py(), values[1], values[2]
    size = _UNITS_US.get(unit)
    if size is not None:
        return pc.divide(pc.subtract(pc.cast(end, pa.int64()), pc.cast(start, pa.int64())), size)
    months = pc.subtract(_month(end), _month(start))
    # the last month is whole if the end has reached the day and the time of day of the start
    reached = pc.subtract(_in_month(end), _in_month(start))
    short = pc.and_(pc.greater(months, 0), pc.less(reached, 0))
    long = pc.and_(pc.less(months, 0), pc.greater(reached, 0))
    months = pc.add(pc.subtract(months, pc.cast(short, pa.int64())), pc.cast(long, pa.int64()))
    return pc.divide(months, _UNITS_MONTHS[unit])


def _last_day(values: list[Any]) -> Any:
    """The last day of the month."""
    return pc.cast(pc.cast(_ends_of(_month(values[0]))[1], pa.int32()), pa.date32())


def _month(time: Any) -> Any:
    """The number of months since January 1970."""
    return pc.add(pc.multiply(pc.subtract(pc.year(time), 1970), 12), pc.subtract(pc.month(time), 1))


def _in_month(time: Any) -> Any:
    """The microseconds since the beginning of the month."""
    first = pc.multiply(_ends_of(_month(time))[0], _DAY_US)
    return pc.subtract(pc.cast(time, pa.int64()), first)


def _ends_of(month: Any) -> tuple[Any, Any]:
    """The first and the last day of months, both as days since 1970."""
    single = isinstance(month, pa.Scalar)
    column = pa.repeat(month, 1) if single else month
    months = pc.fill_null(column, 0).to_numpy()
    start = months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)
    end = (months + 1).astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)
    absent = pc.is_null(column).to_numpy(zero_copy_only=False)
    first, last = pa.array(start, mask=absent), pa.array(end - 1, mask=absent)
    return (first[0], last[0]) if single else (first, last)


def _near(number: Any, most: int) -> Any:
    """Whether a number is so small that no sum with it overflows."""
    return pc.and_(pc.greater_equal(number, -most), pc.less_equal(number, most))


def _inside(counts: Any, least: int, most: int) -> Any:
    return pc.if_else(pc.and_(pc.greater_equal(counts, least), pc.less_equal(counts, most)), counts, None)


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
    "weekday": _part(_weekday),
    "weekofyear": _part(pc.iso_week),
    "datediff": _datediff,
    "date_add": _date_add,
    "timestampadd": _timestampadd,
    "timestampdiff": _timestampdiff,
    "last_day": _last_day,
    "unix_millis": _unix_millis,
    "timestamp_micros": _timestamp_micros,
    "unix_micros": _unix_micros,
    "unix_seconds": _unix_seconds,
}
