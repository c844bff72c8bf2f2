"""`spark-pace status`, `watch` and `report`: what a job does and has done, from its tables, without Spark."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path

import click
from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from spark_pace.cli.show import console_of
from spark_pace.errors import ConfigError, SparkPaceError, counted, one_line
from spark_pace.io.html.timeline import require_plotly, write_page
from spark_pace.io.query import Tables
from spark_pace.spark.running import Running, running
from spark_pace.watching.facts import Facts, facts
from spark_pace.watching.figures import newest_event, of_the_clock, quiet_rules
from spark_pace.watching.page import report
from spark_pace.watching.seen import Seen
from spark_pace.watching.status import MATCHES_OF_RULES, status_of
from spark_pace.watching.subject import Subject, waiting_alerts
from spark_pace.watching.troubles import troubles
from spark_pace.watching.words import age, shown_time


def report_command(subject: Subject, out: Path) -> None:
    """Do what `spark_pace.cli.main.report` says."""
    if not out.parent.is_dir():
        do = f"Make {out.parent} first, or choose another."
        raise ConfigError.of("--out", "must lie in a folder that is there", str(out), do)
    require_plotly()
    write_page(report(facts(subject, Seen(subject.tables), datetime.now(timezone.utc))), out, "report")
    click.echo(f"{out}: written")


_EVERY_SECONDS = 2.0
_WIDTH = 120  # where the output is no terminal
_LINES_BESIDE_RULES = 30
_LEAST_RULES, _LATEST = 5, 5


def watch_command(subject: Subject) -> None:
    """Do what `spark_pace.cli.main.watch` says."""
    console, seen = console_of(_WIDTH), Seen(subject.tables)

    def shown() -> Group:
        most = max(_LEAST_RULES, console.height - _LINES_BESIDE_RULES)
        return board(facts(subject, seen, datetime.now(timezone.utc)), most)

    with Live(shown(), console=console, auto_refresh=False, screen=console.is_terminal) as live:
        while console.is_terminal:
            threading.Event().wait(_EVERY_SECONDS)
            live.update(shown(), refresh=True)


def board(told: Facts, most_rules: int) -> Group:
    """What is shown: the figures of the page, the rules with the most matches, and the latest matches."""
    state, name = told["state"], Text(one_line(told["name"]), style="bold")
    head = Text.assemble(name, f"  {state['word']}: {state['told']}; as of {told['at']}")
    wrong = [Text(f"! {sentence}", style="red") for sentence in told["troubles"]]
    if told["wrong"] is not None:
        wrong.append(Text("! What is wrong in the job file: spark-pace check", style="red"))
    figures = Table.grid(padding=(0, 2))
    for label, text in told["figures"]:
        figures.add_row(Text(label, style="dim"), Text(text))
    for one in told["alerts"]:
        figures.add_row(Text(f"alerts.{one['target']}", style="dim"), Text(one["said"]))
    return Group(head, *wrong, figures, _rules(told["rules"], most_rules), _latest(told["newest"]))


def _rules(rules: Facts, most: int) -> Table:
    left = len(rules["names"]) - most
    shown = Table("rule", "matches", "last written", caption=f"and {left:,} more rules" if left > 0 else None)
    for row in zip(rules["names"][:most], rules["matches"], rules["last_written"], strict=False):
        shown.add_row(Text(row[0]), f"{row[1]:,}", row[2])
    return shown


def _latest(matches: list[Facts]) -> Table:
    shown = Table("latest matches", "matched at", "key", "fields")
    for match in matches[:_LATEST]:
        shown.add_row(*(Text(match[name] or "") for name in ("rule", "matched_at", "key", "fields")))
    return shown


WIDTH = 120  # where the output is no terminal


def status_command(subject: Subject) -> None:
    """Do what `spark_pace.cli.main.status` says.

    Raises:
        ConfigError: there are no tables; or, behind all that is known, the job's files are wrong.
        StateError: a table is damaged; or, likewise, the checkpoint is.
    """
    seen, console, now = Seen(subject.tables), console_of(WIDTH), datetime.now(timezone.utc)
    seen.look()
    failure: SparkPaceError | None = None
    try:
        for text in _lines(subject, seen, now):
            console.print(text, markup=False, soft_wrap=True)
    except SparkPaceError as error:  # of the checkpoint: the tables are told all the same
        failure = error
    for text in standing(seen, now):
        console.print(text, markup=False, soft_wrap=True)
    console.print(found(Tables(seen.out, ["matches"])))
    for kind, names in quiet_rules(subject, seen):
        console.print(f"{kind}: {names}", markup=False, soft_wrap=True)
    if failure is not None:
        raise failure
    subject.require_right()


def print_json(subject: Subject) -> None:
    """Print what is known of a job as one JSON object.

    Raises:
        ConfigError: there are no tables; or, behind the object, the job's files are wrong.
    """
    told = status_of(subject, Seen(subject.tables), datetime.now(timezone.utc))
    click.echo(json.dumps(told))
    subject.require_right()


def _lines(subject: Subject, seen: Seen, now: datetime) -> Iterator[str]:
    """Lines about whether the job runs, what is wrong, and how its alerts stand."""
    state = None if subject.checkpoint is None else running(subject.checkpoint)
    if state is not None:
        yield _process(state, now)
    for trouble in troubles(subject, seen, state, now):
        yield f"! {trouble}"
    for one in waiting_alerts(subject, seen.done):
        yield f"alerts.{one.target}: {one.said}"


def _process(state: Running, now: datetime) -> str:
    if state.process is None or state.since is None:
        return state.absent
    since = f"since {shown_time(state.since)}, for {age(state.since, now)}"
    lease = "" if state.renewed is None else f"; its lease was renewed {age(state.renewed, now)} ago"
    return f"runs as process {state.process} {since}{lease}"


def standing(seen: Seen, now: datetime) -> Iterator[str]:
    """Lines of text about how far the job has come, from its table `metrics`."""
    last, sums = seen.last, seen.history.sums()
    if last is None:
        yield "no batch is done yet"
        return
    written_at = f"{shown_time(last['written_at'])}, {age(last['written_at'], now)} ago"
    took = "" if last["batch_seconds"] is None else f", took {last['batch_seconds']:.2f} s"
    yield f"{counted(int(sums['batches']), 'batch')}, the last ({last['batch_id']}) at {written_at}{took}"
    yield (
        f"{counted(int(sums['records']), 'record')} in {sums['seconds']:.1f} s: "
        f"{counted(int(sums['events']), 'event')}, {sums['late']:,.0f} late, {sums['bad_records']:,.0f} bad, "
        f"{counted(int(sums['heartbeats']), 'heartbeat')}, {counted(int(sums['repeats']), 'repeat')}; "
        f"{sums['quarantined']:,.0f} quarantined"
    )
    frontier = "none yet" if last["frontier"] is None else shown_time(last["frontier"])
    yield (
        f"frontier: {'the end of the input' if last['finished'] else frontier}; "
        f"{counted(last['pending'], 'event')} waiting, "
        f"carry {counted(last['carry'], 'event')}, {counted(last['open'], 'selection')} open"
    )
    if last["slowest_source"] is not None:
        yield f"slowest source: {one_line(last['slowest_source'])}; {last['idle_sources']:,} idle"
    newest = newest_event(seen)
    if newest is not None:
        yield f"newest event: {of_the_clock(newest, now)}"


def found(tables: Tables) -> Table:
    """A table to print: each rule's number of matches, and the least and the greatest `matched_at`.

    Matches are counted while they are read, because there may be more than fit into memory.
    """
    shown = Table("rule", "matches", "first matched at", "last matched at")
    rules = tables.query(MATCHES_OF_RULES).read_all()
    for rule, matches, first, last in zip(*(column.to_pylist() for column in rules.columns), strict=True):
        shown.add_row(rule, f"{matches:,}", shown_time(first), shown_time(last))
    return shown
