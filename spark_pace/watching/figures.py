"""The figures of a job: how far it is, how fast, how far behind the clock, what it keeps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

import pyarrow.compute as pc

from spark_pace.errors import counted, one_line
from spark_pace.job_file import JobSpec
from spark_pace.watching.history import History
from spark_pace.watching.words import age, shown_bytes, shown_length, shown_time

_MOST_NAMED = 10  # rules


def figures(history: History, now: datetime) -> list[tuple[str, str]]:
    """Pairs of a name and a text."""
    if (last := history.last) is None:
        return [("batches", "no batch is done yet")]
    return [*_of_batches(history, last, now), *_of_time(history, last, now), *_of_state(last)]


def _of_batches(history: History, last: dict[str, Any], now: datetime) -> Iterator[tuple[str, str]]:
    sums, at = history.sums, last["written_at"]
    written = f"the last ({last['batch_id']}) {age(at, now)} ago, at {shown_time(at)}"
    yield "batches", f"{counted(int(sums['batches']), 'batch')}, {written}"
    if last["batch_seconds"] is not None:  # batches of older releases lack it
        mean, greatest = sums["batch_seconds"] / sums["timed_batches"], history.greatest["batch_seconds"]
        yield "seconds a batch", f"last {last['batch_seconds']:.2f}, mean {mean:.2f}, greatest {greatest:.2f}"
    lately = history.lately()
    seconds, records = (pc.sum(lately[name]).as_py() for name in ("seconds", "records"))
    yield (
        "records a second",
        f"lately {_rate(records, seconds)}, mean {_rate(sums['records'], sums['seconds'])}",
    )
    kinds = {"late": "late", "bad_records": "bad", "heartbeats": "heartbeats", "repeats": "repeats"}
    parts = ", ".join(f"{sums[name]:,.0f} {word}" for name, word in kinds.items())
    read, events = counted(int(sums["records"]), "record"), counted(int(sums["events"]), "event")
    yield "records", f"{read}: {events}, {parts}"
    yield "matches", f"{sums['matches']:,.0f}"
    yield "in quarantine", f"{sums['quarantined']:,.0f}"


def _of_time(history: History, last: dict[str, Any], now: datetime) -> Iterator[tuple[str, str]]:
    frontier, newest = last["frontier"], history.newest
    at = "none yet" if frontier is None else shown_time(frontier)
    yield "frontier", "the end of the input" if last["finished"] else at
    if newest is not None:
        told = f"{age(newest, now)} behind" if newest <= now else f"{age(now, newest)} ahead of"
        yield "newest event", f"{shown_time(newest)}, {told} the clock"
        if frontier is not None:
            yield "lag of the frontier", shown_length((newest - frontier).total_seconds())


def _of_state(last: dict[str, Any]) -> Iterator[tuple[str, str]]:
    yield "waiting for the frontier", counted(last["pending"], "event")
    yield "carried", f"{counted(last['carry'], 'event')}, {counted(last['open'], 'selection')} open"
    yield "state", shown_bytes(last["state_bytes"])
    if last["slowest_source"] is not None:
        yield "slowest source", f"{one_line(last['slowest_source'])}; {last['idle_sources']:,} left out"


def _rate(records: float, seconds: float) -> str:
    return f"{records / seconds:,.0f}" if seconds else "none"


def rules_without_matches(spec: JobSpec, history: History) -> list[str]:
    """The names of the rules that run whose matches no batch has written yet."""
    return [rule.name for rule in spec.rules if rule.name not in history.totals]


def quiet_rules(spec: JobSpec | None, history: History) -> Iterator[tuple[str, str]]:
    """Of paused rules and of those without matches a pair: what they are, how many, with the first names."""
    kinds: dict[str, Sequence[str]] = {} if spec is None else {"paused": spec.paused}
    if spec is not None and history.last is not None:
        kinds["no match yet"] = rules_without_matches(spec, history)
    for kind, names in kinds.items():
        if names:
            more = len(names) - _MOST_NAMED
            others = f" and {counted(more, 'other')}" if more > 0 else ""
            yield kind, f"{counted(len(names), 'rule')}: {', '.join(names[:_MOST_NAMED])}{others}"
