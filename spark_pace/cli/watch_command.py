"""`spark-pace watch`: shows on the terminal how a job does, until ctrl-C."""

from __future__ import annotations

import threading
from datetime import datetime, timezone

from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from spark_pace.cli.show.terminal import console_of
from spark_pace.errors import one_line
from spark_pace.watching.facts import Facts, facts
from spark_pace.watching.seen import Seen
from spark_pace.watching.subject import Subject

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
