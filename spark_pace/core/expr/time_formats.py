"""Reads times that are written in formats of one's own, such as ``%d/%b/%Y:%H:%M:%S %z``, on columns.

A format is turned into a regular expression, which finds the fraction of a second and the day; pyarrow's
`strptime` reads the rest. It would take 30 February for a day in March: so the day is compared.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

from spark_pace.core.expr.moments import time_of

# what stands for each directive, as an expression of RE2
DIRECTIVES = {
    "Y": r"\d{4}", "y": r"\d{2}", "m": r"\d{1,2}", "b": "[A-Za-z]{3}", "B": "[A-Za-z]{3,9}", "d": r"\d{1,2}",
    "a": "[A-Za-z]{3}", "A": "[A-Za-z]{6,9}", "H": r"\d{1,2}", "I": r"\d{1,2}",
    "M": r"\d{1,2}", "S": r"\d{1,2}", "f": r"\d{1,9}", "p": "[AaPp][Mm]", "z": r"(?:Z|[+-]\d{2}:?\d{2})",
}  # fmt: skip
_PARTS = re.compile(r"%(.)|(\s+)|(.)", re.DOTALL)
_MICROSECONDS = 6  # digits
_DAY_US = 86_400_000_000
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
