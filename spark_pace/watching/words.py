"""Times, lengths of time and sizes as the report, the live page and the terminal show them."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone


def shown_time(time: datetime) -> str:
    """A time in UTC, to the second."""
    return f"{time.astimezone(timezone.utc):%Y-%m-%d %H:%M:%SZ}"


def shown_length(seconds: float) -> str:
    """A length of time, to the second: ``0:01:30``, ``2 days, 3:00:00``."""
    return str(timedelta(seconds=max(0, int(seconds))))


def age(time: datetime, now: datetime) -> str:
    """How long ago a time was."""
    return shown_length((now - time).total_seconds())


def shown_bytes(number: int) -> str:
    """A number of bytes in the unit that suits it."""
    for size, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if number >= size:
            return f"{number / size:.1f} {unit}"
    return f"{number} bytes"
