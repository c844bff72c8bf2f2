"""TIMESTAMP and DATE: their range, functions on them, and times that are written in formats of one's own.

Moments are microseconds since 1970. Every time is UTC, and the calendar is Gregorian before 1582 too. A value
lies in the years 1 to 9999: these are the years that Python, SQL engines and readers of Delta tables know.

A format such as ``%d/%b/%Y:%H:%M:%S %z`` is turned into a regular expression, which finds the fraction of a
second and the day; pyarrow's `strptime` reads the rest. It would take 30 February for a day in March: so the
day is compared.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta, timezone
from functools import partial, reduce
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from spark_pace.core.tables import bools, on_columns

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def time_of(us: int) -> datetime:
    """The time so many microseconds after the beginning of 1970, in UTC."""
    return _EPOCH + timedelta(microseconds=int(us))


def us_of(time: datetime) -> int:
    """The microseconds from the beginning of 1970 to a time that has a zone."""
    return (time - _EPOCH) // timedelta(microseconds=1)


# what stands for each directive, as an expression of RE2
DIRECTIVES = {
    "Y": r"\d{4}", "y": r"\d{2}", "m": r"\d{1,2}", "b": "[A-Za-z]{3}", "B": "[A-Za-z]{3,9}", "d": r"\d{1,2}",
    "a": "[A-Za-z]{3}", "A": "[A-Za-z]{6,9}", "H": r"\d{1,2}", "I": r"\d{1,2}",
    "M": r"\d{1,2}", "S": r"\d{1,2}", "f": r"\d{1,9}", "p": "[AaPp][Mm]", "z": r"(?:Z|[+-]\d{2}:?\d{2})",
}  # fmt: skip
_PARTS = re.compile(r"%(.)|(\s+)|(.)", re.DOTALL)
_MICROSECONDS = 6  # digits
_YEARS = {"Y", "y"}


def directives(format: str) -> list[str]:
    """The letters behind the percent signs of a format, in their order; ``%%`` is none."""
    return [letter for letter, _, _ in _PARTS.findall(format) if letter not in ("", "%")]


def wrong_format(format: str) -> str | None:
    """What is wrong with a format of times; None if it is right."""
    there = directives(format)
    unknown = [letter for letter in there if letter not in DIRECTIVES]
    if unknown or re.search(r"(?<!%)(%%)*%$", format):
        return f"%{unknown[0]}" if unknown else "a % at the end"
    twice = [letter for letter in there if there.count(letter) > 1]
    if twice:
        return f"%{twice[0]} twice"
    if "d" not in there or not {"m", "b", "B"} & set(there):
        return "no day of a year (%d with %m, %b or %B)"
    if "I" in there and "p" not in there:
        return "%I without %p"
    return None


def has_year(format: str) -> bool:
    """True if times of the format have a year."""
    return bool(_YEARS & set(directives(format)))


def times_of(
    texts: pa.ChunkedArray,
    formats: Sequence[str],
    year: int | None,
    newest_us: int | None,
    zone: str | None,
) -> pa.ChunkedArray:
    """Texts as timestamp[us], in UTC, by the first format that each has.

    Args:
        texts: string; null where there is none.
        formats: as `wrong_format` takes them.
        year: of times whose format has none; None: see `newest_us`.
        newest_us: where times have no year, each is in the last year that puts it at most a day after this;
            in microseconds since 1970.
        zone: of times whose format has none, a name of the tz database; None: UTC.

    Raises:
        pa.ArrowInvalid: a text has none of the formats.
    """
    latest_us = None if year is not None or newest_us is None else newest_us + _DAY_US
    years = [year] if year is not None else _years_up_to(latest_us)
    times = pa.chunked_array([pa.nulls(len(texts), pa.timestamp("us"))])
    tries = ((format, each) for format in formats for each in ([None] if has_year(format) else years))
    for format, each in tries:
        left = pc.if_else(pc.is_null(times), texts, None)
        if left.null_count == len(left):
            break
        read = _times(left, format, each, zone)
        if each is not None and latest_us is not None:
            read = pc.if_else(pc.less_equal(read.cast(pa.int64()), latest_us), read, None)
        times = pc.coalesce(times, read)
    failed = texts.filter(pc.and_(pc.is_null(times), pc.is_valid(texts)))
    if len(failed):
        raise pa.ArrowInvalid(f"'{failed[0].as_py()}', which has not the form {' nor '.join(formats)}")
    return times


def _years_up_to(latest_us: int | None) -> list[int]:
    """The year of a time, the one before, and the two before these, of which one may have a 29 February."""
    if latest_us is None:
        return []
    last = time_of(latest_us).year
    return list(range(last, last - 4, -1))


def _times(texts: pa.ChunkedArray, format: str, year: int | None, zone: str | None) -> pa.ChunkedArray:
    """The times of the texts that have this format; null for the others."""
    before, _, after = format.partition("%f")
    fraction = DIRECTIVES["f"] if "%f" in format else ""
    groups = f"(?P<before>{_expression(before)})(?P<fraction>{fraction})(?P<after>{_expression(after)})"
    parts = pc.extract_regex(texts, rf"^{groups}$")
    told = pc.binary_join_element_wise(pc.struct_field(parts, "before"), pc.struct_field(parts, "after"), "")
    whole = before + after
    if year is not None:
        told, whole = pc.binary_join_element_wise(str(year), told, " "), f"%Y {whole}"
    times = pc.strptime(told, format=whole, unit="us", error_is_null=True)
    times = pc.if_else(_has_day(times, pc.struct_field(parts, "day").cast(pa.int64())), times, None)
    times = _in_utc(times, zone)
    if fraction:
        digits = pc.utf8_rpad(pc.struct_field(parts, "fraction"), _MICROSECONDS, "0")
        digits = pc.utf8_slice_codeunits(digits, 0, _MICROSECONDS)
        times = pc.add(times, digits.cast(pa.int64()).cast(pa.duration("us")))
    return times


def _has_day(times: pa.ChunkedArray, days: pa.ChunkedArray) -> pa.ChunkedArray:
    """bool[n], which times are on the written day of the month; a day off counts too, for other zones."""
    counts = times.cast(pa.timestamp("us", times.type.tz)).cast(pa.int64())
    near = (pc.day(pc.add(counts, moved).cast(pa.timestamp("us"))) for moved in (-_DAY_US, 0, _DAY_US))
    return reduce(pc.or_, (pc.equal(day, days) for day in near))


def _in_utc(times: pa.ChunkedArray, zone: str | None) -> pa.ChunkedArray:
    """Times without a zone. An hour that a clock shows twice is the first; one it leaves out is moved on."""
    if times.type.tz is None and zone is not None:
        times = pc.assume_timezone(times, zone, ambiguous="earliest", nonexistent="latest")
    return times.cast(pa.timestamp("us", "UTC")).cast(pa.timestamp("us")) if times.type.tz else times


def _expression(format: str) -> str:
    """A regular expression for texts of the format, with the group `day`."""
    found = []
    for letter, space, other in _PARTS.findall(format):
        known = f"(?P<day>{DIRECTIVES['d']})" if letter == "d" else DIRECTIVES.get(letter, letter)
        found.append(known or (r"\s+" if space else re.escape(other)))
    return "".join(found)


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


def _part(kernel: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda time: pc.cast(kernel(time), pa.int64())


def _micros(time: Any) -> Any:
    return pc.cast(time, pa.int64())


def _unix(unit: int) -> Callable[[Any], Any]:
    """Whole units since 1970, rounded down (before 1970 too)."""
    return lambda time: _down(_micros(time), unit)


def _timestamp_micros(micros: Any) -> Any:
    """The TIMESTAMP so many microseconds after 1970; null out of its range."""
    return pc.cast(_inside(pc.cast(micros, pa.int64()), FIRST_US, LAST_US), pa.timestamp("us"))


def _date_trunc(unit: pa.Scalar, time: Any) -> Any:
    """The beginning of the unit that a time is in; a week begins on Monday."""
    return pc.floor_temporal(time, unit=unit.as_py(), week_starts_monday=True)


def _down(micros: Any, unit: int) -> Any:
    """Microseconds in whole units, rounded down (before 1970 too)."""
    whole = pc.divide(micros, unit)
    return pc.subtract(whole, pc.cast(pc.less(micros, pc.multiply(whole, unit)), pa.int64()))


def _days(date: Any) -> Any:
    """The days since 1970 as BIGINT."""
    return pc.cast(pc.cast(date, pa.int32()), pa.int64())


def _date(days: Any) -> Any:
    """The date so many days after 1970; null out of the range of dates."""
    return pc.cast(pc.cast(_inside(days, FIRST_DAY, LAST_DAY), pa.int32()), pa.date32())


def _datediff(end: Any, start: Any) -> Any:
    """The number of days from the second date to the first."""
    return pc.subtract(_days(end), _days(start))


def _date_add(date: Any, number: Any) -> Any:
    """The date so many days later; null out of the range of dates."""
    near = pc.if_else(_near(number, LAST_DAY - FIRST_DAY), number, None)
    return _date(pc.add(_days(date), near))


def _timestampadd(constant: pa.Scalar, number: Any, time: Any) -> Any:
    """The time so many units later; null out of the range of times. A day that a month lacks is its last."""
    unit, micros = constant.as_py(), _micros(time)
    size = _UNITS_US.get(unit)
    if size is not None:
        room = (LAST_US - FIRST_US) // size
        moved = pc.add(micros, pc.multiply(pc.if_else(_near(number, room), number, None), size))
        return _timestamp_micros(moved)
    number = pc.if_else(_near(number, 12 * 10_000), pc.multiply(number, _UNITS_MONTHS[unit]), None)
    month = pc.add(_month(time), number)
    first, behind = _first_day(month), _first_day(pc.add(month, 1))
    day = pc.add(first, pc.subtract(pc.day(time), 1))
    day = pc.min_element_wise(day, pc.subtract(behind, 1), skip_nulls=False)
    of_day = pc.subtract(micros, pc.multiply(_down(micros, _DAY_US), _DAY_US))
    return _timestamp_micros(pc.add(pc.multiply(day, _DAY_US), of_day))


def _timestampdiff(constant: pa.Scalar, start: Any, end: Any) -> Any:
    """The number of whole units from the first time to the second, below 0 if the second is earlier."""
    unit = constant.as_py()
    size = _UNITS_US.get(unit)
    if size is not None:
        return pc.divide(pc.subtract(_micros(end), _micros(start)), size)
    months = pc.subtract(_month(end), _month(start))
    # the last month is whole if the end has reached the day and the time of day of the start
    reached = pc.subtract(_in_month(end), _in_month(start))
    short = pc.and_(pc.greater(months, 0), pc.less(reached, 0))
    long = pc.and_(pc.less(months, 0), pc.greater(reached, 0))
    months = pc.add(pc.subtract(months, pc.cast(short, pa.int64())), pc.cast(long, pa.int64()))
    return pc.divide(months, _UNITS_MONTHS[unit])


def _last_day(date: Any) -> Any:
    """The last day of the month."""
    return _date(pc.subtract(_first_day(pc.add(_month(date), 1)), 1))


def _month(time: Any) -> Any:
    """The number of months since January 1970."""
    return pc.add(pc.multiply(pc.subtract(pc.year(time), 1970), 12), pc.subtract(pc.month(time), 1))


def _in_month(time: Any) -> Any:
    """The microseconds since the beginning of the month."""
    return pc.subtract(_micros(time), pc.multiply(_first_day(_month(time)), _DAY_US))


@on_columns
def _first_day(months: pa.Array) -> pa.Array:
    """The first day of months, both counted since 1970."""
    first = pc.fill_null(months, 0).to_numpy().astype("datetime64[M]").astype("datetime64[D]")
    return pa.array(first.astype(np.int64), mask=bools(pc.is_null(months)))


def _near(number: Any, most: int) -> Any:
    """Whether a number is so small that no sum with it overflows."""
    return pc.and_(pc.greater_equal(number, -most), pc.less_equal(number, most))


def _inside(counts: Any, least: int, most: int) -> Any:
    return pc.if_else(pc.and_(pc.greater_equal(counts, least), pc.less_equal(counts, most)), counts, None)


KERNELS: dict[str, Callable[..., Any]] = {
    "year": _part(pc.year),
    "month": _part(pc.month),
    "day": _part(pc.day),
    "dayofweek": _part(partial(pc.day_of_week, count_from_zero=False, week_start=7)),  # Sunday is 1
    "hour": _part(pc.hour),
    "minute": _part(pc.minute),
    "second": _part(pc.second),
    "quarter": _part(pc.quarter),
    "dayofyear": _part(pc.day_of_year),
    "date_trunc": _date_trunc,
    "weekday": _part(partial(pc.day_of_week, count_from_zero=True, week_start=1)),  # Monday is 0
    "weekofyear": _part(pc.iso_week),
    "datediff": _datediff,
    "date_add": _date_add,
    "timestampadd": _timestampadd,
    "timestampdiff": _timestampdiff,
    "last_day": _last_day,
    "unix_millis": _unix(1_000),
    "timestamp_micros": _timestamp_micros,
    "unix_micros": _micros,
    "unix_seconds": _unix(_MICROS),
}
