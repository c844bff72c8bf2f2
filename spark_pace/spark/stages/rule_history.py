"""Writes the table `rule_changes`: with which batch each rule begins, ends, pauses and begins anew.

What has changed follows from the rows that the table has and from the rules that run. So nothing is written
twice and nothing is forgotten, whenever the job is killed: the next batch that is written completes it.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pyarrow as pa

from spark_pace.io.delta_tables import CHANGES_SCHEMA, DeltaTables
from spark_pace.io.query import CHANGES
from spark_pace.spark.checkpoint.layout import LaidRule

ADDED, REMOVED, RESET = "added", "removed", "reset"
CAME_BACK, PAUSED, RESUMED = "came back", "paused", "resumed"
_MOST_ROWS = 1 << 20  # of which transactions of one batch tell their number
_BEGIN_AFTER = {REMOVED: CAME_BACK, PAUSED: RESUMED}  # else it is added, or has begun anew


@dataclass
class RuleHistory:
    """The changes of rules of a job, written with the first batch of a query.

    Attributes:
        rules: the rules that run, by name.
        paused: the names of rules that are paused.
    """

    rules: Mapping[str, LaidRule]
    paused: Collection[str]
    _is_written: bool = False

    def append(self, tables: DeltaTables, batch_id: int, now: datetime) -> None:
        """Write what has changed since the last row, in the first batch; `now` is the time of the rows."""
        if self._is_written:
            return
        known = tables.rows(CHANGES, ["batch_id", "rule", "change"])
        rows = self._changes(last_changes(known), batch_id)
        if rows:
            stamped = [{"changed_at": now, **row} for row in rows]
            # a batch that is done again with other rules has further rows, so its number alone does not do
            version = batch_id * _MOST_ROWS + min(known.num_rows, _MOST_ROWS - 1)
            tables.append(CHANGES, pa.Table.from_pylist(stamped, CHANGES_SCHEMA), version)
        self._is_written = True

    def _changes(self, last: Mapping[str, tuple[int, str]], batch_id: int) -> list[dict[str, Any]]:
        rows = []
        for name, rule in self.rules.items():
            since, before = last.get(name, (-1, ""))
            if rule.hands_on or (since == rule.place.since and before not in _BEGIN_AFTER):
                continue
            change = _BEGIN_AFTER.get(before, RESET if before else ADDED)
            meaning = json.dumps(rule.parts, ensure_ascii=False)
            rows.append(_row(rule.place.since, name, change, meaning))
        for name, (_, before) in last.items():
            if name not in self.rules and before not in _BEGIN_AFTER:
                rows.append(_row(batch_id, name, PAUSED if name in self.paused else REMOVED, None))
        return rows


def last_changes(rows: pa.Table) -> dict[str, tuple[int, str]]:
    """The last change of each rule, as (its batch, the change), by the name of the rule.

    A rule may begin and end with the same batch, and not the other way round: once a batch has begun without
    it, it begins anew with a later one.
    """
    changes = [(row["batch_id"], row["change"] in _BEGIN_AFTER, row) for row in rows.to_pylist()]
    ordered = sorted(changes, key=lambda change: change[:2])
    return {row["rule"]: (batch_id, row["change"]) for batch_id, _, row in ordered}


def _row(batch_id: int, rule: str, change: str, meaning: str | None) -> dict[str, Any]:
    return {"batch_id": batch_id, "rule": rule, "change": change, "meaning": meaning}
