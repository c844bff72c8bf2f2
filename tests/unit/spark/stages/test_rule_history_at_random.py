"""The table `rule_changes` of jobs whose rules change at random, and that are killed at random moments."""

from __future__ import annotations

import random
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timezone
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from spark_pace.core.plan.rule import Rule
from spark_pace.io.delta_tables import CHANGES_SCHEMA, DeltaTables
from spark_pace.io.query import CHANGES, read_table
from spark_pace.rules import load_rules
from spark_pace.spark.checkpoint.checkpoint import Checkpoint
from spark_pace.spark.checkpoint.layout import Layout, read_layout, write_layout
from spark_pace.spark.stages.merger import RuleHistory
from spark_pace.spark.start import compared, without_reset

BEGIN = ("added", "came back", "resumed", "reset")
ENDS = ("removed", "paused")
CAME_BACK = {"removed": "came back", "paused": "resumed"}
NOW = datetime(2024, 5, 1, tzinfo=timezone.utc)
RULES = {
    "events": {"schema": "t TIMESTAMP, x BIGINT", "event_time": "t"},
    "rules": [
        *({"name": name, "pattern": {"sequence": [{"a": "x > 5"}]}, "emit": {"x": "a.x"}} for name in "abc"),
        {"name": "d", "from": ["a", "events"], "pattern": {"sequence": [{"a": "x > 7"}]}},
    ],
}


class Killed(Exception):
    """The job ends here."""


@dataclass
class Job:
    """A job without events: its checkpoint, its table, and what has run.

    Attributes:
        done: of each batch that is done, the rules of the try that ended it, each with the batch it began at.
    """

    folder: Path
    chance: random.Random
    kill_chance: float = 0.2
    done: list[dict[str, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.checkpoint = Checkpoint(self.folder / "checkpoint")
        for notes in (self.checkpoint.offsets, self.checkpoint.commits):
            notes.mkdir(parents=True)
        self.tables = DeltaTables(str(self.folder), "app")
        self.tables.prepare({CHANGES: CHANGES_SCHEMA})

    def maybe_killed(self) -> None:
        if self.chance.random() < self.kill_chance:
            raise Killed

    def start(self, rules: tuple[Rule, ...], reset: list[str], paused: list[str], batches: int) -> None:
        layout = read_layout(self.checkpoint) or Layout(1, 1, (0,), "app", {})
        change = compared(self.checkpoint, layout, rules, reset).require_unchanged()
        if reset:
            write_layout(self.checkpoint, without_reset(layout, rules, reset))
        self.maybe_killed()
        for laid, unfinished in change.layouts({}):
            self.maybe_killed()
            write_layout(self.checkpoint, laid)
            history = RuleHistory(laid.rules, paused)
            for _ in range(1 if unfinished else batches):
                self.batch(laid, history)

    def batch(self, laid: Layout, history: RuleHistory) -> None:
        number = self.checkpoint.next_batch()
        self.maybe_killed()
        (self.checkpoint.offsets / str(number)).touch()
        self.maybe_killed()
        history.append(self.tables, number, NOW)
        self.maybe_killed()
        self.done.append({name: rule.place.since for name, rule in laid.rules.items() if not rule.hands_on})
        (self.checkpoint.commits / str(number)).touch()

    def rows(self) -> list[dict[str, Any]]:
        """The rows of the table, the end of a rule behind its begin with the same batch."""
        rows: list[dict[str, Any]] = read_table(self.folder, CHANGES).to_pylist()
        return sorted(rows, key=lambda row: (row["batch_id"], row["change"] not in BEGIN))

    def said(self, batch_id: int) -> dict[str, int]:
        """The rules that count in a batch by the table, each with the batch it began at."""
        last = {row["rule"]: row for row in self.rows() if row["batch_id"] <= batch_id}
        return {name: row["batch_id"] for name, row in last.items() if row["change"] in BEGIN}


def drawn(chance: random.Random) -> tuple[tuple[Rule, ...], list[str], list[str]]:
    """(the rules that run, which of them start anew, which of the others are paused)."""
    every = load_rules(RULES)
    names = {rule.name for rule in every if chance.random() < 0.6} or {"b"}
    rules = tuple(rule for rule in every if rule.name in names and (rule.name != "d" or "a" in names))
    running = {rule.name for rule in rules}
    reset = [name for name in sorted(running) if chance.random() < 0.15]
    return rules, reset, [name for name in "abcd" if name not in running and chance.random() < 0.4]


@pytest.mark.parametrize("seed", range(12))
def test_the_table_says_which_rules_each_batch_had(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    job = Job(tmp_path, chance)
    for _ in range(12):
        rules, reset, paused = drawn(chance)
        for _ in range(chance.randrange(1, 3)):
            with suppress(Killed):
                job.start(rules, reset, paused, chance.randrange(3))
    job.kill_chance = 0
    job.start(rules, [], paused, 2)
    assert [job.said(number) for number in range(len(job.done))] == job.done
    for name in "abcd":
        told = [row["change"] for row in job.rows() if row["rule"] == name]
        assert told[:1] in ([], ["added"])
        for before, after in pairwise(told):
            assert after in ((*ENDS, "reset") if before in BEGIN else (CAME_BACK[before],)), told
