"""Small jobs for the tests on Spark: events with a type and a key, three rules, one with an operator.

This module must stay where it is: the checkpoints stored in `tests/fixtures/checkpoints` name its operator,
`tests.spark.jobs:total`.
"""

from __future__ import annotations

import ctypes
import json
import os
import random
import signal
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from spark_pace import read_table
from spark_pace.core import local_run
from spark_pace.core.plan.plan import build_plan
from spark_pace.io.delta_tables import DeltaTables
from spark_pace.io.event_files import read_events
from spark_pace.job_file import JobSpec, read_job
from spark_pace.ways import SMALL

RULES = """
events:
  schema: "t TIMESTAMP, k STRING, kind STRING, x BIGINT"
  event_time: t
rules:
  - name: pairs
    pattern: {sequence: [{a: "kind = 'a'"}, {b: "kind = 'b'"}]}
    where: b.x >= a.x
    within: 20 s
    emit: {first: a.x, second: b.x, began: a.t}
  - name: keyed
    partition_by: [k]
    pattern: {sequence: [{a: "kind = 'a'"}, {b: "kind = 'b'"}]}
    within: 30 s
    context: next, selected
  - name: sums
    span: {every: 10 s, size: 20 s}
    operator: tests.spark.jobs:total
    emit: {total: BIGINT, events_in_span: BIGINT}
"""

WAITING = """
events: {schema: "t TIMESTAMP, k STRING, kind STRING, x BIGINT", event_time: t}
rules:
  - name: waits
    partition_by: [k]
    pattern: {sequence: [{a: "kind = 'a'"}, {b: "kind = 'b'"}]}
    within: 3 h
    emit: {first: a.x, second: b.x}
"""
EVENTS = 'events: {schema: "t TIMESTAMP, k STRING, kind STRING, x BIGINT", event_time: t}\nrules:\n'
FOLDS = f"""{EVENTS}
  - name: door
    partition_by: [k]
    fold:
      initial: closed
      moves:
        - {{from: closed, when: kind = 'a', to: open}}
        - {{from: open, when: x > prev(x), to: ajar, emit: false}}
        - {{from: [open, ajar], when: kind = 'b', to: closed}}
    emit: {{was: state.from, now: state.to, since: state.since, x: x}}
  - name: whole
    filter: x > 2
    fold:
      initial: even
      moves: [{{from: even, when: kind = 'c', to: odd}}, {{from: odd, to: even}}]
    emit: {{now: state.to}}
  - name: forgetful
    partition_by: [k]
    forget_key_after: 3 s
    fold:
      initial: fresh
      moves: [{{from: fresh, to: known}}, {{from: known, when: x > prev(x), to: known}}]
    emit: {{was: state.from, x: x}}
  - name: streaks
    partition_by: [k]
    fold: tests.spark.jobs:streak
    emit: {{label: STRING, number: BIGINT}}
  - name: streaks_of_tables
    fold: {{function: tests.spark.jobs:streak_of_table}}
    emit: {{label: STRING, number: BIGINT}}
"""
OVER_FOLDS = """  - name: doors
    from: [door, whole]
    fold:
      initial: quiet
      moves: [{from: any, when: "x > prev(x, 2)", to: loud}, {from: loud, when: rule = 'whole', to: quiet}]
    emit: {was: state.from, now: state.to, x: x}
  - name: upper
    from: [events, door]
    partition_by: [k]
    fold: tests.spark.jobs:streak
    emit: {label: STRING, number: BIGINT}
"""
LINES = RULES.replace(
    "event_time: t\n",
    "event_time: t\n  text: {regex: '(?P<k>\\w+) \\[(?P<t>[^\\]]+)\\] (?P<kind>\\w+)(?:=(?P<x>\\S*))?'}\n"
    "  timestamp_format: ['%d.%m.%Y %H:%M:%S', '%b %d %H:%M:%S']\n  time_zone: Europe/Berlin\n  year: 2024\n",
)
KEYS = 3 * SMALL
JOB = """
name: test
source: {{kind: files, format: json, path: in, max_files_per_trigger: 1}}
events: {{{events}}}
rules: [rules.yaml]
sink: {{kind: delta, path: out}}
checkpoint: checkpoint
trigger: available_now
finish: {finish}
operators: [tests.spark.jobs]
parallelism: {{slots: {slots}, buckets: {buckets}}}
"""

Event = dict[str, Any]
ROOT = Path(__file__).parents[2]


def total(span: Any) -> Iterator[dict[str, Any]]:
    """The operator of `sums`: fails on the events that carry x = 666 or more."""
    values = span.events["x"].to_pylist()
    if max(values) >= 666:
        raise ValueError("the number of the beast")
    yield {"total": sum(values), "events_in_span": len(values)}


def deadly(span: Any) -> Iterator[dict[str, Any]]:
    """The same, but hangs, ends or crashes its process on others."""
    ways = {
        1002: lambda: threading.Event().wait(),
        1003: lambda: os._exit(3),
        1004: lambda: os.kill(os.getpid(), signal.SIGKILL),
        1005: lambda: ctypes.string_at(0),
    }
    for value in span.events["x"].to_pylist():
        ways.get(value, lambda: None)()
    print("a good selection")
    yield from total(span)


def streak(state: Any, event: Event) -> tuple[Any, list[Event]]:
    """A fold: how many events of one kind came in a row; a row for every second one of them."""
    kind, number = state or (None, 0)
    number = number + 1 if event["kind"] == kind else 1
    return [event["kind"], number], [] if number % 2 else [{"label": event["kind"], "number": number}]


def streak_of_table(state: Any, events: pa.Table) -> tuple[Any, pa.Table]:
    """The same for all events of a run."""
    rows = []
    for place, event in enumerate(events.to_pylist()):
        state, found = streak(state, event)
        rows += [{"row": place, **row} for row in found]
    schema = pa.schema({"row": pa.int64(), "label": pa.string(), "number": pa.int64()})
    return state, pa.Table.from_pylist(rows, schema=schema)


streak_of_table.takes_table = True  # type: ignore[attr-defined]


def deadly_streak(state: Any, event: Event) -> tuple[Any, list[Event]]:
    """The same, but ends its process as long as there is a file that an event names."""
    if Path(event["k"]).is_file():
        os.kill(os.getpid(), signal.SIGKILL)
    return streak(state, event)


def make_job(
    folder: Path,
    *,
    finish: bool = True,
    slots: int = 2,
    buckets: int = 2,
    rules: str = RULES,
    events: str = "delay: 2 s",
) -> Path:
    """A job file in `folder`, whose events go into `folder`/in."""
    (folder / "in").mkdir(exist_ok=True)
    (folder / "rules.yaml").write_text(rules)
    (folder / "job.yaml").write_text(
        JOB.format(finish=str(finish).lower(), slots=slots, buckets=buckets, events=events)
    )
    return folder / "job.yaml"


def job(folder: Path, **options: Any) -> JobSpec:
    return read_job(make_job(folder, **options))


def failing(spec: JobSpec, **treatment: Any) -> JobSpec:
    return replace(spec, events=replace(spec.events, **treatment))


def only(spec: JobSpec, *names: str, **changes: Any) -> JobSpec:
    """The job with some of its rules."""
    return replace(spec, rules=tuple(rule for rule in spec.rules if rule.name in names), **changes)


def stop_at(monkeypatch: pytest.MonkeyPatch, *table_names: str, batch_id: int) -> None:
    """Let a batch fail where it first appends to one of the tables."""
    append = DeltaTables.append

    def failing(self: DeltaTables, name: str, rows: pa.Table, batch: int) -> None:
        if name in table_names and batch == batch_id:
            raise OSError("the disk is full")
        append(self, name, rows, batch)

    monkeypatch.setattr(DeltaTables, "append", failing)


def waiting_events() -> list[Event]:
    """One `a` a second, each of a key of its own; now and then a `b` of the key of one long before."""
    listed = []
    for second in range(KEYS):
        clock = f"2024-01-01T{second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}"
        key, kind = (second // 2, "b") if second % 10 == 9 else (second, "a")
        listed.append({"t": clock, "k": f"k{key}", "kind": kind, "x": second})
    return listed


def random_events(seed: int, count: int = 200) -> list[Event]:
    """Events a second apart and up to two seconds out of order, so that none is late at a delay of two."""
    chance = random.Random(seed)
    seconds = sorted(range(count), key=lambda second: second + chance.random() * 2)
    kinds = [("a", "b", "c")[chance.randrange(3)] for _ in seconds]
    return [
        {
            "t": f"2024-01-01T{s // 3600:02d}:{s // 60 % 60:02d}:{s % 60:02d}",
            "k": chance.choice("uvw"),
            "kind": kind,
            "x": chance.randrange(9),
        }
        for s, kind in zip(seconds, kinds, strict=True)
    ]


def line_of(event: Event) -> str:
    """An event as a line of text, as `LINES` reads it: its time by the clock of Berlin."""
    time = datetime.fromisoformat(event["t"]) + timedelta(hours=1)
    form = "%d.%m.%Y %H:%M:%S" if event["x"] % 2 else "%b %d %H:%M:%S"
    return f"{event['k']} [{time:{form}}] {event['kind']}={event['x']}"


def write_files(folder: Path, events: Sequence[Event], files: int, first: int = 0) -> None:
    """The events as `files` files of JSON lines, in order of their names."""
    size = -(-len(events) // files)
    for number in range(files):
        lines = [json.dumps(event) for event in events[number * size : (number + 1) * size]]
        hidden = folder / "in" / f".{first + number:03d}.json"
        hidden.write_text("\n".join(lines))
        hidden.rename(hidden.with_name(hidden.name[1:]))


def in_core(spec: JobSpec) -> local_run.LocalResult:
    """What the core finds in a job's files, one file a batch, in one process."""
    plan = build_plan(
        spec.rules,
        order=spec.events.order,
        source_column=spec.events.source_column,
        heartbeat=spec.events.heartbeat,
    )
    files = sorted(path for path in Path(spec.files.path).iterdir() if path.name[0] != ".")
    form, schema = spec.files.format, spec.events.schema
    batches = [read_events(str(path), form, schema, path.name).events for path in files]
    return local_run.run(plan, batches)


def table(spec: JobSpec, name: str) -> pa.Table:
    """A table of the job; matches and late events as the core gives them, without their `batch_id`."""
    found = read_table(spec.sink_path, name)
    taken = ["batch_id"] if name in ("matches", "late") and "batch_id" in found.column_names else []
    return found.drop_columns(taken)


def matches(spec: JobSpec) -> list[dict[str, Any]]:
    """The job's matches in output order."""
    return table(spec, "matches").sort_by([("rule", "ascending"), ("out_seq", "ascending")]).to_pylist()  # type: ignore[no-any-return]
