"""`spark-pace status`, `watch` and `report`: what a job does and has done, from its tables, without Spark."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path

import click
from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from spark_pace.cli.show import console_of, require_folder
from spark_pace.errors import SparkPaceError, shown_time
from spark_pace.io.query import Tables
from spark_pace.io.timeline import require_plotly, write_page
from spark_pace.watching.facts import (
    MATCHES_OF_RULES,
    Facts,
    Look,
    facts,
    figures,
    quiet_rules,
    status_of,
)
from spark_pace.watching.history import Seen
from spark_pace.watching.page import report
from spark_pace.watching.subject import Subject

_EVERY_SECONDS = 2.0
_WIDTH = 120  # where the output is no terminal
_LINES_BESIDE_RULES = 30
_LEAST_RULES, _LATEST = 5, 5


def report_command(subject: Subject, out: Path) -> None:
    """Do what `spark_pace.cli.main.report` says."""
    require_folder("--out", out)
    require_plotly()
    write_page(report(facts(subject, Seen(subject.tables), datetime.now(timezone.utc))), out, "report")
    click.echo(f"{out}: written")


def watch_command(subject: Subject) -> None:
    """Do what `spark_pace.cli.main.watch` says."""
    console, seen = console_of(_WIDTH), Seen(subject.tables)

    def shown() -> Group:
        told = facts(subject, seen, datetime.now(timezone.utc))
        wrong = [] if told["wrong"] is None else ["What is wrong in the job file: spark-pace check"]
        said = [(f"alerts.{one['target']}", one["said"]) for one in told["alerts"]]
        state = f"{told['state']['word']}: {told['state']['told']}; as of {told['at']}"
        most = max(_LEAST_RULES, console.height - _LINES_BESIDE_RULES)
        parts = told["troubles"] + wrong, told["figures"] + said, told["rules"]
        return Group(board(told["name"], state, *parts, most), _latest(told["newest"]))

    with Live(shown(), console=console, auto_refresh=False, screen=console.is_terminal) as live:
        while console.is_terminal:
            threading.Event().wait(_EVERY_SECONDS)
            live.update(shown(), refresh=True)


def board(
    name: str, state: str, troubles: Sequence[str], pairs: Sequence[tuple[str, str]], rules: Facts, most: int
) -> Group:
    """What the terminal shows of a job: the figures of the page, and the rules with the most matches."""
    head = Text.assemble(Text(name, style="bold"), f"  {state}")
    grid = Table.grid(padding=(0, 2))
    for label, text in pairs:
        grid.add_row(Text(label, style="dim"), Text(text))
    left = len(rules["names"]) - most
    shown = Table("rule", "matches", "last written", caption=f"and {left:,} more rules" if left > 0 else None)
    for row in zip(rules["names"][:most], rules["matches"], rules["last_written"], strict=False):
        shown.add_row(Text(row[0]), f"{row[1]:,}", row[2])
    return Group(head, *(Text(f"! {sentence}", style="red") for sentence in troubles), grid, shown)


def _latest(matches: list[Facts]) -> Table:
    shown = Table("latest matches", "matched at", "key", "fields")
    for match in matches[:_LATEST]:
        shown.add_row(*(Text(match[name] or "") for name in ("rule", "matched_at", "key", "fields")))
    return shown


def status_command(subject: Subject) -> None:
    """Do what `spark_pace.cli.main.status` says.

    Raises:
        ConfigError: there are no tables; or, behind all that is known, the job's files are wrong.
        StateError: a table is damaged; or, likewise, the checkpoint is.
    """
    seen, console, now = Seen(subject.tables), console_of(_WIDTH), datetime.now(timezone.utc)
    failure: SparkPaceError | None = None
    try:
        look = Look.of(subject, seen, now)
    except SparkPaceError as error:  # perhaps of a cursor of alerts, or of the checkpoint: the rest is told
        failure = error
        try:
            look = Look.of(subject, seen, now, with_alerts=False)
        except SparkPaceError:
            look = Look.of(Subject(subject.sink), seen, now)
    pairs = [(f"alerts.{one.target}", one.said) for one in look.alerts]
    pairs += [*figures(look.history, now), *quiet_rules(subject.spec, look.history)]
    told = [f"{look.word}: {look.told}", *(f"! {sentence}" for sentence in look.troubles)]
    for text in (*told, *map(": ".join, pairs)):
        console.print(text, markup=False, soft_wrap=True)
    console.print(_found(Tables(seen.out, ["matches"])))
    if failure is not None:
        raise failure
    subject.require_right()


def print_json(subject: Subject) -> None:
    """Print what is known of a job as one JSON object.

    Raises:
        ConfigError: there are no tables; or, behind the object, the job's files are wrong.
    """
    click.echo(json.dumps(status_of(subject, Seen(subject.tables), datetime.now(timezone.utc))))
    subject.require_right()


def _found(tables: Tables) -> Table:
    """A table to print: each rule's number of matches, and the least and the greatest `matched_at`.

    Matches are counted while they are read, because there may be more than fit into memory.
    """
    shown = Table("rule", "matches", "first matched at", "last matched at")
    rules = tables.query(MATCHES_OF_RULES).read_all()
    for rule, matches, first, last in zip(*(column.to_pylist() for column in rules.columns), strict=True):
        shown.add_row(rule, f"{matches:,}", shown_time(first), shown_time(last))
    return shown
