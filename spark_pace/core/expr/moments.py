"""Moments as events have them, microseconds since 1970, and as Python has them."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def time_of(us: int) -> datetime:
    """The time so many microseconds after the beginning of 1970, in UTC."""
    return _EPOCH + timedelta(microseconds=int(us))


def us_of(time: datetime) -> int:
    """The microseconds from the beginning of 1970 to a time that has a zone."""
    return (time - _EPOCH) // timedelta(microseconds=1)
