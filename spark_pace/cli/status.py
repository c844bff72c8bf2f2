"""`spark-pace status`: shows what a job has done, from its Delta tables, without Spark."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import fields
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import click
import pyarrow as pa
import pyarrow.compute as pc
from rich.table import Table

from spark_pace.cli.show.terminal import console_of
from spark_pace.errors import counted, one_line
from spark_pace.io.metrics import Counts
from spark_pace.io.query import Tables, read_table
from spark_pace.job_file.reader import places_of, read_job
from spark_pace.job_file.rules_on_disk import keys_told
from spark_pace.spark.checkpoint.checkpoint import Checkpoint
from spark_pace.spark.checkpoint.files_note import read_note
from spark_pace.spark.checkpoint.layout import checkpoint_in
from spark_pace.spark.checkpoint.lock import holder
from spark_pace.watching.seen import Seen
from spark_pace.watching.status import MATCHES_OF_RULES, status_of
from spark_pace.watching.subject import Subject
from spark_pace.watching.words import age, shown_time

_SUMMED = ("seconds", *(counter.name for counter in fields(Counts)))
_SHOWN = [
    "batch_id",
    "written_at",
    *_SUMMED,
    "pending",
    "carry",
    "open",
    "frontier",
    "idle_sources",
    "slowest_source",
    "finished",
]
_MOST = 10_000  # characters of a line about rules
WIDTH = 120  # where the output is no terminal


def status_command(out: str | Path, job_file: str | None = None) -> None:
    """Do what `spark_pace.cli.main.status` says; `job_file` is the file that names the tables `out`."""
    metrics = read_table(out, "metrics", _SHOWN)
    console = console_of(WIDTH)
    now = datetime.now(timezone.utc)
    checkpoint = checkpoint_in(out) if job_file is None else checkpoint_of(job_file)
    state = [] if checkpoint is None else running(checkpoint, now)
    for text in [*state, *standing(metrics, now)]:
        console.print(text, markup=False, soft_wrap=True)
    try:
        for text in [] if job_file is None else _alerts(job_file):
            console.print(text, markup=False, soft_wrap=True)
    finally:
        console.print(found(Tables(out, ["matches"])))


def print_json(subject: Subject) -> None:
    """Print what is known of a job as one JSON object.

    Raises:
        ConfigError: there are no tables; or, behind the object, the job's files are wrong.
    """
    told = status_of(subject, Seen(subject.sink), datetime.now(timezone.utc))
    click.echo(json.dumps(told))
    if subject.job_file is not None and subject.spec is None:
        read_job(subject.job_file)  # says what is wrong


def checkpoint_of(job_file: str) -> Checkpoint | None:
    """The checkpoint that a job file names, whatever else is wrong with it."""
    _, folder = places_of(job_file)
    return None if folder is None else Checkpoint(folder)


def _alerts(job_file: str) -> Iterator[str]:
    """Lines about the alerts of a job.

    Raises:
        ConfigError: its files are wrong.
    """
    spec = read_job(job_file)
    if spec.alerts:
        from spark_pace.watching.waiting_alerts import waiting_alerts

        yield from (f"alerts.{one.target}: {one.said}" for one in waiting_alerts(spec))


def running(checkpoint: Checkpoint, now: datetime) -> list[str]:
    """Lines about whether a job runs on this machine, and in what its files differ from what runs."""
    holding = holder(checkpoint)
    if holding is None:
        return ["does not run on this machine"]
    pid, began = holding
    since = datetime.fromtimestamp(began, timezone.utc)
    lines = [f"runs as process {pid} since {shown_time(since)}, for {age(since, now)}"]
    note = read_note(checkpoint)
    if note is not None and note.rules:
        lines += [one_line(line, _MOST) for line in f"since {note.at}: {note.rules}".splitlines()]
    return lines + ([keys_told(note.keys)] if note is not None and note.keys else [])


def standing(metrics: pa.Table, now: datetime) -> list[str]:
    """Lines of text about how far the job has come, from its table `metrics`."""
    if metrics.num_rows == 0:
        return ["no batch is done yet"]
    last: dict[str, Any] = metrics.sort_by("batch_id").slice(metrics.num_rows - 1).to_pylist()[0]
    sums = {name: pc.sum(metrics[name]).as_py() for name in _SUMMED}
    frontier = "none yet" if last["frontier"] is None else shown_time(last["frontier"])
    frontier = "the end of the input" if last["finished"] else frontier
    written_at = f"{shown_time(last['written_at'])}, {age(last['written_at'], now)} ago"
    lines = [
        f"{counted(metrics.num_rows, 'batch')}, the last ({last['batch_id']}) at {written_at}",
        f"{counted(sums['records'], 'record')} in {sums['seconds']:.1f} s: "
        f"{counted(sums['events'], 'event')}, {sums['late']:,} late, {sums['bad_records']:,} bad, "
        f"{counted(sums['heartbeats'], 'heartbeat')}, {counted(sums['repeats'], 'repeat')}; "
        f"{sums['quarantined']:,} quarantined",
        f"frontier: {frontier}; {counted(last['pending'], 'event')} waiting, "
        f"carry {counted(last['carry'], 'event')}, {counted(last['open'], 'selection')} open",
    ]
    if last["slowest_source"] is not None:
        lines.append(f"slowest source: {one_line(last['slowest_source'])}; {last['idle_sources']:,} idle")
    return lines


def found(tables: Tables) -> Table:
    """A table to print: each rule's number of matches, and the times of its first and last one.

    Matches are counted while they are read, because there may be more than fit into memory.
    """
    shown = Table("rule", "matches", "first", "last")
    rules = tables.query(MATCHES_OF_RULES).read_all()
    for rule, matches, first, last in zip(*(column.to_pylist() for column in rules.columns), strict=True):
        shown.add_row(rule, f"{matches:,}", shown_time(first), shown_time(last))
    return shown
