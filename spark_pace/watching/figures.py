"""The figures of a job: how far it is, how fast, what it keeps."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pyarrow.compute as pc

from spark_pace.errors import counted, one_line
from spark_pace.watching.seen import Seen
from spark_pace.watching.words import age, shown_bytes, shown_length, shown_time

_LATELY = 10  # stretches of the history


def figures(seen: Seen, now: datetime) -> list[tuple[str, str]]:
    """Pairs of a name and a text."""
    if seen.last is None:
        return [("batches", "no batch is done yet")]
    return [*_of_batches(seen, seen.last, now), *_of_time(seen, seen.last, now), *_of_state(seen, seen.last)]


def _of_batches(seen: Seen, last: dict[str, Any], now: datetime) -> Iterator[tuple[str, str]]:
    sums, rows = seen.history.sums(), seen.history.batches
    at = last["written_at"]
    written = f"the last ({last['batch_id']}) {age(at, now)} ago, at {shown_time(at)}"
    yield "batches", f"{counted(int(sums['batches']), 'batch')}, {written}"
    if last["batch_seconds"] is not None:  # batches of older releases lack it
        mean, greatest = sums["batch_seconds"] / sums["timed_batches"], pc.max(rows["longest"]).as_py()
        yield "seconds a batch", f"last {last['batch_seconds']:.2f}, mean {mean:.2f}, greatest {greatest:.2f}"
    lately = rows.slice(max(0, rows.num_rows - _LATELY))
    seconds, records = (pc.sum(lately[name]).as_py() for name in ("seconds", "records"))
    yield (
        "records a second",
        f"lately {_rate(records, seconds)}, mean {_rate(sums['records'], sums['seconds'])}",
    )
    parts = ", ".join(
        f"{sums[name]:,.0f} {word}"
        for name, word in (
            ("late", "late"),
            ("bad_records", "bad"),
            ("heartbeats", "heartbeats"),
            ("repeats", "repeats"),
        )
    )
    yield (
        "records",
        f"{counted(int(sums['records']), 'record')}: {counted(int(sums['events']), 'event')}, {parts}",
    )
    yield "matches", f"{sums['matches']:,.0f}"
    yield "in quarantine", f"{sums['quarantined']:,.0f}"


def _of_time(seen: Seen, last: dict[str, Any], now: datetime) -> Iterator[tuple[str, str]]:
    frontier = last["frontier"]
    newest = newest_event(seen)
    at = "none yet" if frontier is None else shown_time(frontier)
    yield "frontier", "the end of the input" if last["finished"] else at
    if newest is not None:
        yield "newest event", of_the_clock(newest, now)
        if frontier is not None:
            yield "lag of the frontier", shown_length((newest - frontier).total_seconds())


def newest_event(seen: Seen) -> datetime | None:
    """The time of the newest event of all batches, for the last one may have none; None before the first."""
    newest: datetime | None = pc.max(seen.history.batches["max_event_time"]).as_py()
    return newest


def of_the_clock(newest: datetime, now: datetime) -> str:
    """The time of the newest event, and how far it is behind the clock, or ahead of it."""
    told = f"{age(newest, now)} behind" if newest <= now else f"{age(now, newest)} ahead of"
    return f"{shown_time(newest)}, {told} the clock"


def _of_state(seen: Seen, last: dict[str, Any]) -> Iterator[tuple[str, str]]:
    yield "waiting for the frontier", counted(last["pending"], "event")
    yield "carried", f"{counted(last['carry'], 'event')}, {counted(last['open'], 'selection')} open"
    yield "state", shown_bytes(last["state_bytes"])
    if last["slowest_source"] is not None:
        yield "slowest source", f"{one_line(last['slowest_source'])}; {last['idle_sources']:,} left out"


def _rate(records: float, seconds: float) -> str:
    return f"{records / seconds:,.0f}" if seconds else "none"
