"""All that the report, the live page and the terminal show of a job, as one value that JSON can hold.

Texts from events are cut here; whoever shows them escapes them.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from rich.filesize import decimal

from spark_pace.core.expr.time_functions import time_of
from spark_pace.core.operate.match_table import FIXED_COLUMNS, TAKEN_COLUMNS
from spark_pace.errors import ConfigError, age, counted, one_line, shown_length, shown_time
from spark_pace.io.query import REFUSED, Tables
from spark_pace.io.text.value_texts import as_cells
from spark_pace.job_file import FilesSource, JobSpec
from spark_pace.spark.running import Running, running
from spark_pace.watching.history import COUNTED, History, Seen
from spark_pace.watching.subject import Subject, WaitingAlerts, waiting_alerts
from spark_pace.watching.troubles import troubles

MOST_MATCHES = 50
_MOST_NAMED = 10  # rules
_ORDER = ("matched_at", "rule", "out_seq")
_MOST_ROWS = 20
_MOST_COUNTED = 1_000  # late events, and rows of quarantine, that are added up: the last ones
_LATE_BY_SOURCE = f"""
SELECT source, count(*) AS events, max(lateness_us) / 1e6 AS most_seconds, max(event_time) AS last
FROM {{rows}} GROUP BY source ORDER BY events DESC, source LIMIT {_MOST_ROWS}
"""
_REASONS = f"""
SELECT kind, rule, substr(reason, 1, 300) AS reason, count(*) AS "rows",
  min(concat(source, ':', CAST("offset" AS VARCHAR))) AS "at"
FROM {{rows}} GROUP BY 1, 2, 3 ORDER BY 4 DESC, 3 LIMIT {_MOST_ROWS}
"""
_MOST_EVENTS = 100  # of a match
_MOST_CHARACTERS = 300
_MOST_SOURCES = 50
_MOST_POINTS = 500  # of a curve
_SUMMED = ("seconds", *COUNTED)
_GREATEST = ("at", "newest", "lag_ms", "batch_seconds", "pending", "carry", "open", "state_bytes")
_TOLD = {
    "finished": "its input has ended",
    "unknown": "the job file tells whether a job runs; this is of its tables alone",
}
MATCHES_OF_RULES = (
    "SELECT rule, count(*) AS matches, min(matched_at) AS first, max(matched_at) AS last "
    "FROM matches GROUP BY rule ORDER BY rule"
)
SCHEMA = 1  # of `status_of`: keys may be added; one that is removed, or gets another meaning, makes it 2
_OF_THE_LAST = ("batch_id", "written_at", "seconds", "batch_seconds", "records")
_STANDING = (
    *("frontier", "max_event_time", "finished", "pending", "carry", "open", "state_bytes"),
    *("idle_sources", "idle_names", "slowest_source", "unheard_sources"),
)

Facts = dict[str, Any]


def latest_matches(tables: Tables) -> list[Facts]:
    """The matches with the greatest `matched_at`, the last first, each with its events."""
    found, latest = tables.newest("matches", _ORDER, MOST_MATCHES), []
    fields = [name for name in found.column_names if name not in TAKEN_COLUMNS]
    cells = {name: cells_of(found, name) for name in fields if found[name].null_count < found.num_rows}
    # a table of an older release may lack one
    fixed = [name for name in FIXED_COLUMNS if name in found.column_names and name != "events"]
    heads = records(found.select(fixed))
    for row, (head, events) in enumerate(zip(heads, found["events"].to_pylist(), strict=True)):
        shown = (events or [])[:_MOST_EVENTS]
        rows = pa.Table.from_pylist(shown, pa.schema(FIXED_COLUMNS["events"].value_type))
        text = " ".join(f"{name}={of[row]}" for name, of in cells.items() if of[row] is not None)
        latest.append(head | {"fields": cut(text), "number": len(events or ()), "events": records(rows)})
    return latest


def late_events(tables: Tables) -> Facts:
    """The latest late events, and how many of the last ones each source has."""
    return {
        "by_source": records(tables.newest("late", ["batch_id"], _MOST_COUNTED, _LATE_BY_SOURCE)),
        "newest": records(tables.newest("late", ["batch_id", "event_time"], _MOST_ROWS)),
    }


def reasons(tables: Tables) -> list[Facts]:
    """The most frequent reasons of the last rows in `quarantine`, each with the place of one of them."""
    return records(tables.newest("quarantine", ["batch_id"], _MOST_COUNTED, _REASONS))


def refused_alerts(tables: Tables) -> list[Facts]:
    """The alerts that targets have refused last."""
    return records(tables.newest(REFUSED, ["refused_at"], _MOST_ROWS))


def records(rows: pa.Table) -> list[Facts]:
    """Rows as objects of JSON, in which times are texts and long texts are cut."""
    return _objects(rows.column_names, [cells_of(rows, name) for name in rows.column_names])


def _objects(names: list[str], cells: list[list[Any]]) -> list[Facts]:
    return [dict(zip(names, row, strict=True)) for row in zip(*cells, strict=True)]


def cells_of(rows: pa.Table, name: str) -> list[Any]:
    """The values of a column as `as_cells` has them, with long texts cut."""
    values = as_cells(rows[name].combine_chunks())
    return [cut(value) if isinstance(value, str) else value for value in values]


def cut(text: str) -> str:
    """The text as one line of at most some hundred characters."""
    return one_line(text, _MOST_CHARACTERS)


@dataclass(frozen=True)
class Look:
    """What a look at the tables and the checkpoint of a job has found.

    Attributes:
        subject: the job.
        history: of its batches.
        state: of its checkpoint; None if that is not known.
        alerts: how its targets stand.
        now: when that was.
    """

    subject: Subject
    history: History
    state: Running | None
    alerts: list[WaitingAlerts]
    now: datetime

    @staticmethod
    def of(subject: Subject, seen: Seen, now: datetime, *, with_alerts: bool = True) -> Look:
        """Look; without alerts where their cursors cannot be read.

        Raises:
            ConfigError: there are no tables.
            StateError: a table or the checkpoint is damaged.
        """
        state = None if subject.checkpoint is None else running(subject.checkpoint)
        seen.look()
        last = seen.history.last
        alerts = waiting_alerts(subject, None if last is None else last["batch_id"]) if with_alerts else []
        return Look(subject, seen.history, state, alerts, now)

    @property
    def word(self) -> str:
        """`runs`, has `finished` its input, or is `stopped`; `unknown` without its checkpoint."""
        if self.state is not None and self.state.process is not None:
            return "runs"
        if (last := self.history.last) is not None and last["finished"]:
            return "finished"
        return "unknown" if self.state is None else "stopped"

    @property
    def told(self) -> str:
        """What is known beyond the word."""
        state, word = self.state, self.word
        if state is None or word == "finished":
            return _TOLD[word]
        if state.process is None or state.since is None:
            return state.absent
        told = f"as process {state.process} since {shown_time(state.since)}, for {age(state.since, self.now)}"
        told += "" if state.renewed is None else f"; its lease was renewed {age(state.renewed, self.now)} ago"
        return told + ("" if state.batch is None else f"; batch {state.batch} is under way")

    @property
    def troubles(self) -> list[str]:
        """What is wrong, the gravest first."""
        wrong = troubles(self.subject.spec, self.history, self.state, self.now)
        return wrong + [one.trouble for one in self.alerts if one.trouble]


def facts(subject: Subject, seen: Seen, now: datetime) -> Facts:
    """Look at a job, and tell what there is; raises as `Look.of` does."""
    look, spec = Look.of(subject, seen, now), subject.spec
    return {
        "name": one_line(subject.sink if spec is None else spec.name),
        "at": shown_time(now),
        "about": list(_about(subject)),
        "state": {"word": look.word, "told": look.told},
        "wrong": subject.wrong,
        "troubles": look.troubles,
        "figures": [*figures(look.history, now), *quiet_rules(spec, look.history)],
        "batches": _batches(look.history),
        "rules": _with_series(rules_told(spec, look.history), look.history),
        "newest": [_match(subject, match) for match in seen.asked("matches", latest_matches)],
        "late": seen.asked("late", late_events),
        "reasons": seen.asked("quarantine", reasons),
        "alerts": [
            {"target": one.target, "rows_waiting": one.waiting, "said": one.said} for one in look.alerts
        ],
        "refused": _refused(seen),
        "sources": list(_sources(look)),
        "ask": shlex.join(["spark-pace", "sql", subject.job_file or subject.sink]),
    }


def status_of(subject: Subject, seen: Seen, now: datetime) -> Facts:
    """Look at a job, and tell what `spark-pace status --json` says; raises as `Look.of` does."""
    look, spec = Look.of(subject, seen, now), subject.spec
    state, last = look.state, look.history.last or {}
    rows = Tables(seen.out, ["matches"]).query(MATCHES_OF_RULES).read_all()
    return {
        "schema": SCHEMA,
        "at": _text(now),
        "job": None if spec is None else spec.name,
        "sink": subject.sink,
        "state": look.word,
        "process": None if state is None else state.process,
        "since": None if state is None else _text(state.since),
        "under_way": None if state is None else state.batch,
        "last_batch": {name: _text(last[name]) for name in _OF_THE_LAST} if last else None,
        "sums": look.history.sums,
        **{name: _text(last.get(name)) for name in _STANDING},
        "rules": _objects(rows.column_names, [as_cells(column.combine_chunks()) for column in rows.columns]),
        "paused": None if spec is None else spec.paused,
        "without_matches": None if spec is None else rules_without_matches(spec, look.history),
        "alerts": [
            {
                "target": one.target,
                "rows_waiting": one.waiting,
                "failing_since": one.failure.at if one.failure is not None and one.fails else None,
                "last_failure": None if one.failure is None else one.failure.text,
            }
            for one in look.alerts
        ],
        "troubles": look.troubles,
    }


def _text(value: Any) -> Any:
    """A time as text in UTC; other values as they are."""
    if not isinstance(value, datetime):
        return value
    return value.astimezone(timezone.utc).isoformat().replace("+00:00", "Z")


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


def _batches(history: History) -> Facts:
    """What is drawn over time: a list for each column of the history, in which batches may share a point."""
    rows = history.batches
    at, newest, frontier = (
        pc.divide(rows[name].cast(pa.int64()), 1_000) for name in ("written_at", "max_event_time", "frontier")
    )
    lag = pc.max_element_wise(pc.subtract(newest, frontier), 0, skip_nulls=False)
    point = np.arange(rows.num_rows) * _MOST_POINTS // max(rows.num_rows, _MOST_POINTS)
    drawn = {"point": point, "at": at, "newest": newest, "lag_ms": lag}
    drawn |= {name: rows[name] for name in (*_SUMMED, *_GREATEST) if name not in drawn}
    kinds = {**dict.fromkeys(_SUMMED, "sum"), **dict.fromkeys(_GREATEST, "max")}
    points = pa.table(drawn).group_by("point", use_threads=False).aggregate([*kinds.items()])
    return {name: points[f"{name}_{kind}"].to_pylist() for name, kind in kinds.items()}


def rules_told(spec: JobSpec | None, history: History) -> Facts:
    """All rules, those with the most matches first."""
    totals = history.totals
    known = {} if spec is None else {rule.name: cut(rule.description) for rule in spec.rules}
    names = sorted({**dict.fromkeys(known), **totals}, key=lambda name: -totals.get(name, (0,))[0])
    return {
        "names": names,
        "about": [known.get(name, "") for name in names],
        "matches": [totals[name][0] if name in totals else 0 for name in names],
        "last_written": [shown_time(totals[name][1]) if name in totals else "" for name in names],
    }


def _with_series(rules: Facts, history: History) -> Facts:
    begins, matches = history.matrix(rules["names"])
    return {**rules, "begins": [at // 1_000 for at in begins], "series": matches}


def _match(subject: Subject, match: Facts) -> Facts:
    """A match, and the command that explains the last of its events."""
    events = match["events"]
    if not events:
        return {**match, "why": None}
    last, spec = events[-1], subject.spec
    source = None if spec is None else spec.source
    read = source.path if isinstance(source, FilesSource) else "EVENTS"
    job = os.path.abspath(subject.job_file) if subject.job_file is not None else "JOB.yaml"
    at = f"{last['source']}:{last['offset']}"
    asked = ["spark-pace", "why", job, read, "--rule", match["rule"], "--at", at]
    return {**match, "why": shlex.join(asked)}


def _refused(seen: Seen) -> list[Facts]:
    try:
        refused: list[Facts] = seen.asked(REFUSED, refused_alerts)
    except ConfigError:  # no alert was refused yet, so there is no table
        return []
    return refused


def _sources(look: Look) -> Iterator[Facts]:
    """The sources that are furthest behind, what they have reached, and which of them are left out.

    Before them stand those that were never heard of. With files the checkpoint keeps no list of sources:
    those are told that the last batch names, the slowest and some of those that are left out.
    """
    last: Facts = look.history.last or dict.fromkeys(("unheard_sources", "idle_names", "slowest_source"))
    for name in last["unheard_sources"] or ():
        yield _source(name, None)
    reached, spec = {} if look.state is None else look.state.reached, look.subject.spec
    most_us = None if spec is None else spec.events.order.idle_after_us
    fastest = max(reached.values(), default=0)
    for name, at in sorted(reached.items(), key=lambda source: source[1])[:_MOST_SOURCES]:
        is_idle, behind = most_us is not None and fastest - at > most_us, shown_length((fastest - at) / 1e6)
        yield _source(name, shown_time(time_of(at)), behind, is_idle)
    if not reached:
        yield from (_source(name, idle=True) for name in last["idle_names"] or ())
        if last["slowest_source"] is not None:
            yield _source(last["slowest_source"], behind="the slowest")


def _source(name: str, reached: str | None = "", behind: str = "", idle: bool = False) -> Facts:
    return {"source": one_line(name), "reached": reached, "behind": behind, "idle": idle}


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
    yield "state", decimal(last["state_bytes"])
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
