"""A job as somebody finds it who watches it: its files, its checkpoint and tables with rows of every kind.

The job's own writers fill the tables; no job runs.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa

from spark_pace.io.delta_tables import DeltaTables, of_batch, table_schemas
from spark_pace.io.metrics import BatchReport, metrics_row
from spark_pace.io.replay import replay_files
from spark_pace.job_file import JobSpec, read_job

HOSTILE = "</script><script>document.title = 'taken'</script><img src=x onerror=alert(1)>"
BEGAN = datetime(2026, 11, 1, tzinfo=timezone.utc)
QUIET: dict[str, Any] = {
    "seconds": 2.0, "batch_seconds": 0.5,
    "records": 1000, "events": 990, "late": 3, "bad_records": 1, "repeats": 6,
    "quarantined": 1, "pending": 40, "carry": 500, "open": 70, "state_bytes": 900_000, "idle_sources": 0,
    "slowest_source": None, "idle_names": (), "unheard_sources": (), "waiting_for": (),
    "finished": False, "selections": 90, "operator_seconds": 0.2,
    "lanes": 2, "lane_rows": 1000, "distinct_rows": 900, "longest_lane_seconds": 0.1,
    "longest_lane_predicted": None, "over_bound": None, "lookups": {},
}  # fmt: skip


@dataclass
class Watched:
    """A job and the writer of its tables."""

    spec: JobSpec
    tables: DeltaTables
    batches: int = 0

    def batch(self, matches: dict[str, int], **changed: Any) -> None:
        """Write the row of one more batch, two seconds behind the last one."""
        at = BEGAN + timedelta(seconds=2 * self.batches)
        us = int(at.timestamp() * 1e6)
        values = {**QUIET, "frontier_us": us - 5_000_000, "max_time_us": us - 1_000_000, **changed}
        report = BatchReport(batch_id=self.batches, matches=matches, **values)
        self.tables.append("metrics", metrics_row(report, at), self.batches)
        self.batches += 1

    def rows(self, table: str, *rows: dict[str, Any]) -> None:
        """Add rows to a table."""
        schema = table_schemas(self.spec.rules)[table]
        made = pa.Table.from_pylist([row | {"batch_id": self.batches} for row in rows], schema)
        self.tables.append(table, made, self.batches)


def watched_job(
    folder: Path, rules: int, events: Sequence[dict[str, Any]] = (), keys: dict[str, Any] | None = None
) -> Watched:
    """A job with so many rules and these further keys, and tables with the matches of these events."""
    of_rule = [
        {
            "name": f"rule_{number}",
            "description": f"Rule {number} <b>finds</b> {HOSTILE if number == 0 else 'a pair'}.",
            "partition_by": ["k"],
            "pattern": {"sequence": [{"a": "type = 'a'"}, {"b": f"type = 'b' and x >= {number}"}]},
            "within": "10 s",
            "emit": {"told": "b.text", f"x_{number}": "b.x"},
        }
        for number in range(rules)
    ]
    schema = "time TIMESTAMP, type STRING, k STRING, x BIGINT, text STRING"
    declared = {"events": {"schema": schema, "event_time": "time"}, "rules": of_rule}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "rules.yaml").write_text(json.dumps(declared))
    (folder / "in.json").write_text("".join(json.dumps(event) + "\n" for event in events))
    job = {
        "name": f"watched {HOSTILE}" if rules == 1 else "watched",
        "source": {"kind": "files", "format": "json", "path": "in.json"},
        "rules": ["rules.yaml"],
        "sink": {"kind": "delta", "path": "out"},
        "checkpoint": "checkpoint",
        "trigger": "2 s",
        **(keys or {}),
    }
    (folder / "job.yaml").write_text(json.dumps(job))
    spec = read_job(folder / "job.yaml")
    tables = DeltaTables(spec.sink_path, "app")
    tables.prepare(table_schemas(spec.rules))
    if events:
        found = replay_files(spec.rules, folder / "in.json").result.matches
        tables.append("matches", of_batch(found, 0), 0)
    return Watched(spec, tables)


def pairs_of_events(number: int) -> list[dict[str, Any]]:
    """Events a second apart, of the types a and b in turn, with hostile texts."""
    return [
        {
            "time": (BEGAN + timedelta(seconds=place)).isoformat(),
            "type": "ab"[place % 2],
            "k": HOSTILE if place % 4 < 2 else "plain",
            "x": place,
            "text": HOSTILE,
        }
        for place in range(number)
    ]
