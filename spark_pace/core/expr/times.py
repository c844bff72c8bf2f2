"""Functions on TIMESTAMP and DATE. Every time is UTC, and the calendar is Gregorian before 1582 too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

_MICROS = 1_000_000


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


KERNELS: dict[str, Callable[[list[Any]], Any]] = {
    "year": _part(pc.year),
    "month": _part(pc.month),
    "day": _part(pc.day),
    "dayofweek": _part(_dayofweek),
    "hour": _part(pc.hour),
    "minute": _part(pc.minute),
    "second": _part(pc.second),
    "unix_micros": _unix_micros,
    "unix_seconds": _unix_seconds,
}
