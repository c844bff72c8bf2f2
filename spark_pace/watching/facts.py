"""All that the report, the live page and the terminal show of a job, as one value that JSON can hold.

Texts from events are cut here; whoever shows them escapes them.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from spark_pace.core.expr.time_functions import time_of
from spark_pace.core.operate.match_table import FIXED_COLUMNS, TAKEN_COLUMNS
from spark_pace.core.plan.rule import Rule, column_name
from spark_pace.errors import ConfigError, one_line
from spark_pace.io.query import REFUSED, Tables
from spark_pace.io.text.value_texts import as_cells
from spark_pace.job_file import FilesSource
from spark_pace.spark.running import Running, running
from spark_pace.watching.figures import figures, quiet_rules
from spark_pace.watching.history import COUNTED
from spark_pace.watching.seen import Seen, Summing, state_word
from spark_pace.watching.subject import Subject, waiting_alerts
from spark_pace.watching.troubles import troubles
from spark_pace.watching.words import shown_length, shown_time

MOST_MATCHES = 50
_ORDER = ("matched_at", "rule", "out_seq")
_MOST_ROWS = 20
_MOST_REASONS = 10_000  # that are counted
_MOST_EVENTS = 100  # of a match
_MOST_CHARACTERS = 300


def latest_matches(tables: Tables, fields_of: Mapping[str, Iterable[str]] | None) -> list[dict[str, Any]]:
    """The matches with the greatest `matched_at`, the last first, each with its events.

    Args:
        tables: with the table `matches`, which has a column for each field of each rule.
        fields_of: the fields of rules, so that no others are read; None: they are not known.
    """
    columns = tables.schemas["matches"].names
    if fields_of is not None:
        rules = tables.newest("matches", _ORDER, MOST_MATCHES, _ORDER)["rule"].to_pylist()
        wanted = {field for rule in rules for field in fields_of.get(rule, columns)}
        columns = [name for name in columns if name in FIXED_COLUMNS or name in wanted]
    found = tables.newest("matches", _ORDER, MOST_MATCHES, columns)
    fields = [name for name in columns if name not in TAKEN_COLUMNS]
    fields = [name for name in fields if found[name].null_count < found.num_rows]
    cells = {name: cells_of(found, name) for name in fields}
    texts = [
        cut(" ".join(f"{name}={cells[name][row]}" for name in fields if cells[name][row] is not None))
        for row in range(found.num_rows)
    ]
    shown = {name: cells_of(found, name) for name in FIXED_COLUMNS if name != "events"}
    lists = found["events"].to_pylist()
    return [
        {name: shown[name][row] for name in shown}
        | {"fields": text, "number": len(lists[row] or ()), "events": _events(lists[row] or [])}
        for row, text in enumerate(texts)
    ]


def _events(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    rows = pa.Table.from_pylist(events[:_MOST_EVENTS], pa.schema(FIXED_COLUMNS["events"].value_type))
    return records(rows)


def late_events(tables: Tables, by_source: pa.Table) -> dict[str, Any]:
    """The latest late events, and how many each source has; `by_source`: the sums of `LATE`."""
    seconds = pc.divide(by_source["most_us"].cast(pa.float64()), 1e6)
    shown = by_source.drop_columns(["most_us"]).add_column(2, "most_seconds", seconds)
    return {
        "by_source": _first(shown, [("events", "descending"), ("source", "ascending")]),
        "newest": records(tables.newest("late", ["event_time"], _MOST_ROWS)),
    }


def reasons(_: Tables, by_reason: pa.Table) -> list[dict[str, Any]]:
    """The most frequent reasons of rows in `quarantine`, each with the place of one of them.

    `by_reason`: the sums of `QUARANTINED`.
    """
    return _first(by_reason, [("rows", "descending"), ("reason", "ascending")])


def _first(rows: pa.Table, order: list[tuple[str, str]]) -> list[dict[str, Any]]:
    return records(rows.sort_by(order).slice(0, _MOST_ROWS))


def _late_sums(rows: pa.Table) -> pa.Table:
    found = rows.group_by("source").aggregate(
        [([], "count_all"), ("lateness_us", "max"), ("event_time", "max")]
    )
    return found.rename_columns(["source", "events", "most_us", "last"])


def _sums_of_late(sums: pa.Table) -> pa.Table:
    found = sums.group_by("source").aggregate([("events", "sum"), ("most_us", "max"), ("last", "max")])
    return found.rename_columns(sums.column_names)


def _reason_sums(rows: pa.Table) -> pa.Table:
    offset = pc.fill_null(rows["offset"].cast(pa.string()), "")
    at = pc.binary_join_element_wise(pc.fill_null(rows["source"], ""), offset, ":")
    reason = pc.utf8_slice_codeunits(rows["reason"], 0, _MOST_CHARACTERS)
    told = pa.table({"kind": rows["kind"], "rule": rows["rule"], "reason": reason, "at": at})
    found = told.group_by(["kind", "rule", "reason"]).aggregate([([], "count_all"), ("at", "min")])
    return found.rename_columns(["kind", "rule", "reason", "rows", "at"])


def _sums_of_reasons(sums: pa.Table) -> pa.Table:
    found = sums.group_by(["kind", "rule", "reason"]).aggregate([("rows", "sum"), ("at", "min")])
    found = found.rename_columns(sums.column_names)
    if found.num_rows > _MOST_REASONS:  # texts from records may make every reason another one
        found = found.sort_by([("rows", "descending")]).slice(0, _MOST_REASONS)
    return found


LATE = Summing("late", ("source", "lateness_us", "event_time"), _late_sums, _sums_of_late)
QUARANTINED = Summing(
    "quarantine", ("kind", "rule", "reason", "source", "offset"), _reason_sums, _sums_of_reasons
)


def refused_alerts(tables: Tables) -> list[dict[str, Any]]:
    """The alerts that targets have refused last."""
    return records(tables.newest(REFUSED, ["refused_at"], _MOST_ROWS))


def records(rows: pa.Table) -> list[dict[str, Any]]:
    """Rows as objects of JSON, in which times are texts and long texts are cut."""
    cells = [cells_of(rows, name) for name in rows.column_names]
    return [dict(zip(rows.column_names, row, strict=True)) for row in zip(*cells, strict=True)]


def cells_of(rows: pa.Table, name: str) -> list[Any]:
    """The values of a column as `as_cells` has them, with long texts cut."""
    values = as_cells(rows[name].combine_chunks())
    return [cut(value) if isinstance(value, str) else value for value in values]


def cut(text: str) -> str:
    """The text as one line of at most some hundred characters."""
    return one_line(text, _MOST_CHARACTERS)


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
    targets = waiting_alerts(subject, seen.done)
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
