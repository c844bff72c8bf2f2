"""The figures of a job: how far it is, how fast, how far behind the clock, what it keeps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pyarrow.compute as pc

from spark_pace.errors import counted, one_line
from spark_pace.watching.seen import Seen
from spark_pace.watching.subject import Subject
from spark_pace.watching.words import age, shown_bytes, shown_length, shown_time

CLOSE_SECONDS = 60  # who is no further behind keeps up
MOST_SEEN = 256  # of the last batches, or stretches of time
LATELY_SECONDS = 60
_FEW = 3  # what lies further back than these, and than a minute, says nothing of now
_LEAST_SECONDS = 20  # a shorter time does not tell the speed
_STEADY = 0.2  # seconds a second by which a lag may change
_MOST_NAMED = 10  # rules
_BUSY = 0.7  # of its time a job takes for batches where it cannot keep up


@dataclass(frozen=True)
class Reached:
    """How far a job was once a batch, or those of a stretch of time, were done.

    Attributes:
        at: when that was, in seconds since 1970.
        newest: the time of the newest event until then, in seconds since 1970.
        seconds: since the batch before.
        batch_seconds: what the batch itself took.
    """

    at: float
    newest: float
    seconds: float
    batch_seconds: float

    @property
    def lag(self) -> float:
        """How far the newest event is behind the clock, in seconds."""
        return self.at - self.newest


@dataclass(frozen=True)
class Lag:
    """Whether a job falls behind, or its input does, or it catches up; and a sentence about it."""

    kind: str
    told: str


def lag_of(seen: Sequence[Reached]) -> Lag | None:
    """How a lag of more than a minute has changed lately; None if it has not, or there is none.

    Args:
        seen: how far the job was, after all batches with records or the last of them, in order.
    """
    last, few = seen[-1], len(seen) - _FEW
    lately = [one for place, one in enumerate(seen) if place >= few or one.at >= last.at - LATELY_SECONDS]
    first, lasted = lately[0], last.at - lately[0].at
    if last.lag <= CLOSE_SECONDS or lasted < _LEAST_SECONDS or first.newest == last.newest:
        return None
    grown = last.lag - first.lag
    told = f"the newest event is {shown_length(last.lag)} behind the clock"
    if grown < -_STEADY * lasted:
        left = shown_length(last.lag * lasted / -grown)
        return Lag(
            "catches up", f"The job is behind: {told}. At this speed it has caught up in about {left}."
        )
    if grown <= _STEADY * lasted:
        return None
    told += f", {shown_length(grown)} more than {shown_length(lasted)} before"
    if sum(one.batch_seconds for one in lately[1:]) >= _BUSY * sum(one.seconds for one in lately[1:]):
        return Lag("falls behind", f"The job falls behind: {told}. It is too slow for its input.")
    return Lag("input", f"The input falls behind: {told}, and the job waits for it. What sends it is slow.")


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
    lately = seen.history.lately()
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


def paused_rules(subject: Subject) -> Sequence[str] | None:
    """The names of the rules that are paused; None without a job file."""
    return None if subject.spec is None else subject.spec.paused


def rules_without_matches(subject: Subject, seen: Seen) -> list[str] | None:
    """The names of the other rules whose matches no batch has written yet; None without a job file."""
    if subject.spec is None:
        return None
    totals = seen.history.totals()
    return [rule.name for rule in subject.spec.rules if rule.name not in totals]


def quiet_rules(subject: Subject, seen: Seen) -> Iterator[tuple[str, str]]:
    """Of both kinds, where there are some, a pair: what they are, and how many, with the first names."""
    kinds = {"paused": paused_rules(subject)}
    if seen.last is not None:
        kinds["no match yet"] = rules_without_matches(subject, seen)
    for kind, names in kinds.items():
        if names:
            more = len(names) - _MOST_NAMED
            others = f" and {counted(more, 'other')}" if more > 0 else ""
            yield kind, f"{counted(len(names), 'rule')}: {', '.join(names[:_MOST_NAMED])}{others}"
