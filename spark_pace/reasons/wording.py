"""Turns values, times and lengths into text."""

from __future__ import annotations

import math
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np

from spark_pace.core.columns import UNKNOWN_TIME
from spark_pace.core.expr.moments import time_of

_UNITS = (("d", 86_400_000_000), ("h", 3_600_000_000), ("min", 60_000_000))


def iso(time_us: int) -> str:
    """ISO text in UTC for microseconds since 1970."""
    return iso_of(time_of(time_us))


def iso_of(moment: datetime) -> str:
    """ISO text for a moment in UTC."""
    return moment.isoformat().replace("+00:00", "Z")


def iso_or_none(time_us: int) -> str | None:
    """Return the text of `iso`; None for a time that is unknown or stands for no time."""
    known = abs(int(time_us)) < UNKNOWN_TIME // 4
    return iso(time_us) if known else None


def length(time_us: int) -> str:
    """The text of a length of time, such as ``23 min 10 s``."""
    parts, left = [], int(time_us)
    for name, unit_us in _UNITS:
        if left >= unit_us:
            parts.append(f"{left // unit_us} {name}")
            left %= unit_us
    if left or not parts:
        parts.append(f"{left / 1_000_000:g} s")
    return " ".join(parts)


def plain(value: Any) -> Any:
    """Convert a value to one that JSON has."""
    if isinstance(value, datetime):
        return value.isoformat() + "Z"
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, dict):
        return {name: plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    return value


def shown(value: Any) -> str:
    """The text of a plain value, nearly as in rules: quotation marks inside a text are not doubled."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"'{value}'" if isinstance(value, str) else str(value)
