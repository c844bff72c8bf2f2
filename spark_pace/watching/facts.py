"""All that the report, the live page and the terminal show of a job, as one value that JSON can hold."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from datetime import datetime
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from spark_pace.core.expr.time_functions import time_of
from spark_pace.core.plan.rule import Rule, column_name
from spark_pace.errors import ConfigError, one_line
from spark_pace.io.query import REFUSED
from spark_pace.job_file import FilesSource
from spark_pace.spark.running import Running, running
from spark_pace.watching.figures import figures, quiet_rules
from spark_pace.watching.history import COUNTED
from spark_pace.watching.rows import (
    LATE,
    QUARANTINED,
    cut,
    late_events,
    latest_matches,
    reasons,
    refused_alerts,
)
from spark_pace.watching.seen import Seen, state_word
from spark_pace.watching.subject import Subject
from spark_pace.watching.troubles import troubles
from spark_pace.watching.waiting_alerts import waiting_alerts
from spark_pace.watching.words import shown_length, shown_time

_DRAWN = (
    *("longest", "lag_us", "pending", "carry", "open", "state_bytes", *COUNTED),
    *("seconds", "batch_seconds", "timed_batches"),
)
_MOST_SOURCES = 50

_TOLD = {
    "runs": "on this machine",
    "finished": "its input has ended",
    "unknown": "the job file tells whether a job runs; this is of its tables alone",
}

Facts = dict[str, Any]


def facts(subject: Subject, seen: Seen, now: datetime) -> Facts:
    """Look at the tables and the checkpoint of a job, and tell what there is.

    Raises:
        ConfigError: there are no tables.
        StateError: a table or the checkpoint is damaged.
    """
    state = None if subject.checkpoint is None else running(subject.checkpoint)
    seen.look()
    wrong = troubles(subject, seen, state, now)
    latest = seen.asked("matches", partial(latest_matches, fields_of=_fields(subject)))
    targets = waiting_alerts(subject.spec, subject.tables)
    wrong += [one.trouble for one in targets if one.trouble]
    return {
        "name": one_line(subject.name),
        "at": shown_time(now),
        "about": list(_about(subject)),
        "state": _state(seen, state),
        "wrong": subject.wrong,
        "troubles": wrong,
        "figures": [*figures(seen, now), *quiet_rules(subject, seen)],
        "batches": _batches(seen),
        "rules": _rules(subject, seen),
        "newest": [_match(subject, match) for match in latest],
        "late": seen.summed(LATE, late_events),
        "reasons": seen.summed(QUARANTINED, reasons),
        "alerts": [
            {"target": one.target, "rows_waiting": one.waiting, "failing": one.fails, "said": one.said}
            for one in targets
        ],
        "refused": _refused(seen),
        "sources": [*_unheard(seen), *(_sources(state, subject) or _of_the_last(seen))],
        "ask": shlex.join(["spark-pace", "sql", subject.job_file or subject.sink]),
    }


def _about(subject: Subject) -> Iterator[tuple[str, str]]:
    """What the job is: pairs of a name and a text."""
    if subject.spec is not None:
        spec = subject.spec
        trigger = (
            "available_now" if spec.trigger_us == "available_now" else shown_length(spec.trigger_us / 1e6)
        )
        yield "rules", f"{len(spec.rules):,}{'' if subject.wrong is None else ' without problems'}"
        yield "source", f"{type(spec.source).__name__.removesuffix('Source').lower()}, {spec.source.format}"
        yield "trigger", trigger
    if subject.job_file is not None:
        yield "job file", subject.job_file
    yield "tables", subject.sink
    if subject.checkpoint is not None:
        yield "checkpoint", str(subject.checkpoint)


def _state(seen: Seen, state: Running | None) -> dict[str, str]:
    """One word, and what is known beyond it."""
    word = state_word(seen, state)
    told = state.absent if state is not None and word == "stopped" else _TOLD[word]
    if state is not None and state.process is not None and state.since is not None:
        told = f"as process {state.process} since {shown_time(state.since)}"
        if state.batch is not None:
            told += f"; batch {state.batch} is under way"
    return {"word": word, "told": told}


def _batches(seen: Seen) -> dict[str, list[Any]]:
    """What is drawn over time: a list for each column of the history."""
    rows = seen.history.batches
    at, newest = (
        pc.divide(rows[name].cast(pa.int64()), 1_000).to_pylist() for name in ("written_at", "max_event_time")
    )
    return {"at": at, "newest": newest, **{name: rows[name].to_pylist() for name in _DRAWN}}


def _rules(subject: Subject, seen: Seen) -> dict[str, Any]:
    """All rules, those with the most matches first, with their matches over time."""
    totals = seen.history.totals()
    known: dict[str, Rule] = {} if subject.spec is None else {rule.name: rule for rule in subject.spec.rules}
    names = sorted({**dict.fromkeys(known), **totals}, key=lambda name: -totals.get(name, (0, 0))[0])
    begins, matches = seen.history.matrix(names)
    return {
        "names": names,
        "about": [cut(known[name].description) if name in known else "" for name in names],
        "matches": [totals[name][0] if name in totals else 0 for name in names],
        "last_written": [shown_time(time_of(totals[name][1])) if name in totals else "" for name in names],
        "begins": [at // 1_000 for at in begins],
        "series": matches,
    }


def _fields(subject: Subject) -> dict[str, list[str]] | None:
    """The fields of each rule that the job knows."""
    if subject.spec is None:
        return None
    return {
        rule.name: [*map(column_name, rule.partition_by), *(field.name for field in rule.emit)]
        for rule in subject.spec.rules
    }


def _match(subject: Subject, match: dict[str, Any]) -> dict[str, Any]:
    """A match, and the command that explains the last of its events."""
    events = match["events"]
    if not events:
        return {**match, "why": None}
    last = events[-1]
    source = subject.spec.source if subject.spec is not None else None
    is_here = isinstance(source, FilesSource) and "://" not in source.path
    read = os.path.abspath(source.path) if isinstance(source, FilesSource) and is_here else "EVENTS"
    job = os.path.abspath(subject.job_file) if subject.job_file is not None else "JOB.yaml"
    at = f"{last['source']}:{last['offset']}"
    asked = ["spark-pace", "why", job, read, "--rule", match["rule"], "--at", at]
    return {**match, "why": shlex.join(asked)}


def _refused(seen: Seen) -> list[dict[str, Any]]:
    try:
        refused: list[dict[str, Any]] = seen.asked(REFUSED, refused_alerts)
    except ConfigError:  # no alert was refused yet, so there is no table
        return []
    return refused


def _unheard(seen: Seen) -> list[dict[str, Any]]:
    """The expected sources that have sent nothing yet."""
    names = [] if seen.last is None else seen.last["unheard_sources"] or []
    return [{"source": one_line(name), "reached": None, "behind": "", "idle": False} for name in names]


def _of_the_last(seen: Seen) -> list[dict[str, Any]]:
    """The sources that the last batch names: the slowest, and some of those that are left out."""
    last: dict[str, Any] = seen.last or {"idle_names": None, "slowest_source": None}
    left_out = [(name, "", True) for name in last["idle_names"] or ()]
    slowest = [(last["slowest_source"], "the slowest", False)] if last["slowest_source"] is not None else []
    return [
        {"source": one_line(name), "reached": "", "behind": told, "idle": idle}
        for name, told, idle in (*left_out, *slowest)
    ]


def _sources(state: Running | None, subject: Subject) -> list[dict[str, Any]]:
    """The sources that are furthest behind, what they have reached, and which of them are left out.

    There are none where the checkpoint keeps no list of them: with files they are a part of the state.
    """
    if state is None:
        return []
    most_us = None if subject.spec is None else subject.spec.events.order.idle_after_us
    fastest = max(state.reached.values(), default=0)
    slowest = sorted(state.reached.items(), key=lambda source: source[1])[:_MOST_SOURCES]
    return [
        {
            "source": one_line(name),
            "reached": shown_time(time_of(at)),
            "behind": shown_length((fastest - at) / 1e6),
            "idle": most_us is not None and fastest - at > most_us,
        }
        for name, at in slowest
    ]
