"""The table `rule_changes`: a row for each change, whatever was killed between two of them."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from datetime import datetime, timezone
from pathlib import Path

import pytest

from spark_pace.core.plan.plan import RulePlace
from spark_pace.io.delta_tables import CHANGES_SCHEMA, DeltaTables
from spark_pace.io.query import CHANGES, read_table
from spark_pace.spark.checkpoint.layout import LaidRule
from spark_pace.spark.stages.merger import RuleHistory

NOW = datetime(2024, 5, 1, 12, tzinfo=timezone.utc)
Row = tuple[int, str, str]


class Written:
    """The table, and the batches of a job that write to it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.tables = DeltaTables(str(folder), "app")
        self.tables.prepare({CHANGES: CHANGES_SCHEMA})

    def batch(self, number: int, rules: dict[str, int], paused: Collection[str] = ()) -> None:
        """The first batch of a query with these rules, each with its `since`; and once more after a kill."""
        laid = {
            name: LaidRule({"within": f"{since} min"}, RulePlace((0,), since))
            for name, since in rules.items()
        }
        laid |= {f"events of {name}": LaidRule({"merge": "selection"}, RulePlace((0,))) for name in rules}
        for _ in range(2):
            history = RuleHistory(laid, paused)
            history.append(self.tables, number, NOW)
            history.append(self.tables, number + 1, NOW)

    def rows(self) -> Sequence[Row]:
        rows = read_table(self.folder, CHANGES).to_pylist()
        assert all(row["changed_at"] == NOW for row in rows)
        begun = {"added", "reset", "came back", "resumed"}
        assert [row["change"] in begun for row in rows] == [row["meaning"] is not None for row in rows]
        for row in rows:
            assert row["meaning"] in (None, json.dumps({"within": f"{row['batch_id']} min"}))
        return sorted((row["batch_id"], row["rule"], row["change"]) for row in rows)


@pytest.fixture
def table(tmp_path: Path) -> Written:
    return Written(tmp_path)


def test_each_change_has_a_row(table: Written) -> None:
    table.batch(0, {"a": 0, "b": 0})
    table.batch(3, {"a": 0, "c": 3})
    table.batch(4, {"a": 0, "c": 3})
    table.batch(5, {"a": 5, "b": 5, "c": 3})
    table.batch(6, {"a": 5, "b": 5}, paused=["c"])
    table.batch(7, {"a": 5, "b": 5}, paused=["c"])
    table.batch(8, {"a": 5, "b": 5, "c": 8})
    table.batch(9, {"a": 5}, paused=["b"])
    table.batch(10, {"a": 5}, paused=["d"])
    assert table.rows() == [
        *((0, "a", "added"), (0, "b", "added")),
        *((3, "b", "removed"), (3, "c", "added")),
        *((5, "a", "reset"), (5, "b", "came back")),
        *((6, "c", "paused"), (8, "c", "resumed"), (9, "b", "paused"), (9, "c", "removed")),
    ]


def test_a_rule_that_begins_anew_behind_an_unfinished_batch_has_none_of_it(table: Written) -> None:
    table.batch(0, {"a": 0, "b": 0})
    table.batch(2, {"b": 0})
    table.batch(3, {"a": 3, "b": 0})
    assert table.rows() == [(0, "a", "added"), (0, "b", "added"), (2, "a", "removed"), (3, "a", "came back")]


def test_the_rules_of_an_older_release_get_the_batches_with_which_they_began(table: Written) -> None:
    table.batch(70, {"a": 0, "b": 31})
    assert table.rows() == [(0, "a", "added"), (31, "b", "added")]


def test_a_rule_may_begin_and_end_with_a_batch_that_is_done_again(table: Written) -> None:
    table.batch(0, {"a": 0})
    table.batch(1, {"a": 0, "b": 1})
    table.batch(1, {})  # the batch was not finished, and both were removed then
    table.batch(2, {"b": 2})
    assert table.rows() == [
        *((0, "a", "added"), (1, "a", "removed"), (1, "b", "added"), (1, "b", "removed")),
        (2, "b", "came back"),
    ]
