"""Keys that are forgotten, in the streaming query: the core's matches, and a checkpoint without dead keys."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_pace.errors import StateError
from spark_pace.job import run_job
from spark_pace.job_file import read_job
from spark_pace.spark.checkpoint.batch_begin import read_begin
from spark_pace.spark.checkpoint.checkpoint import Checkpoint
from spark_pace.ways import SMALL
from tests.spark.jobs import Event, in_core, job, matches, random_events, table, write_files

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]

RULES = """
events: {schema: "t TIMESTAMP, k STRING, kind STRING, x BIGINT", event_time: t}
rules:
  - name: plain
    partition_by: [k]
    forget_key_after: 3 s
    pattern: {sequence: [{a: "kind = 'a'"}, {b: "kind = 'b'"}]}
  - name: counted
    partition_by: [k]
    forget_key_after: 4 s
    pattern: {sequence: [{a: "kind = 'a'"}, {b: "kind = 'b'"}]}
    where: b.x >= a.x
    within: 20 events
    context: latest, zero
  - name: spans
    partition_by: [k]
    forget_key_after: 5 s
    span: {every: 2 events, size: 3 events}
    operator: tests.spark.jobs:total
    emit: {total: BIGINT, events_in_span: BIGINT}
"""
SILENT = """
events: {schema: "t TIMESTAMP, k STRING, kind STRING, x BIGINT", event_time: t}
rules:
  - name: waits
    partition_by: [k]
    forget_key_after: 10 min
    pattern: {sequence: [{a: "kind = 'a'"}, {b: "kind = 'b'"}]}
"""


def test_a_query_stopped_between_batches_gives_the_cores_matches(tmp_path: Path) -> None:
    spec = job(tmp_path, finish=False, rules=RULES)
    events = random_events(7)
    write_files(tmp_path, events[:120], 3)
    run_job(spec)
    write_files(tmp_path, events[120:], 2, first=3)
    run_job(read_job(tmp_path / "job.yaml"))
    (tmp_path / "job.yaml").write_text(
        (tmp_path / "job.yaml").read_text().replace("finish: false", "finish: true")
    )
    run_job(read_job(tmp_path / "job.yaml"))
    found = matches(spec)
    assert found == in_core(spec).matches.to_pylist()
    for name in ("plain", "counted", "spans"):
        starts = [row for row in found if row["rule"] == name and row["selection_id"] == 0]
        assert len({(row["key"], row["opened_at"]) for row in starts}) > 3  # more than there are keys


def test_keys_that_are_forgotten_leave_the_checkpoint(tmp_path: Path) -> None:
    """A hundred keys a second come once; then time goes on for an hour."""
    spec = job(tmp_path, finish=False, rules=SILENT)
    keys = 4 * SMALL
    write_files(tmp_path, [event(number // 100, f"k{number}") for number in range(keys)], 2)
    write_files(tmp_path, [event(3600 + 10 * number, "k") for number in range(2)], 2, first=2)
    run_job(spec)
    metrics = table(spec, "metrics").sort_by("batch_id").to_pylist()
    assert [row["carry"] > 0.9 * keys for row in metrics] == [False, True, False, False]
    assert metrics[-1]["carry"] == 1
    assert metrics[-1]["state_bytes"] < 20_000
    named = [read_begin(Checkpoint(Path(spec.checkpoint_path)), batch) for batch in (2, 4)]
    assert [begin is not None and len(begin.chunks) > 0 for begin in named] == [True, False]


def test_a_rule_that_is_to_forget_its_keys_from_now_on_is_another_rule(tmp_path: Path) -> None:
    spec = job(tmp_path, finish=False, rules=SILENT.replace("    forget_key_after: 10 min\n", ""))
    write_files(tmp_path, [event(0, "k")], 1)
    run_job(spec)
    with pytest.raises(StateError, match="forget_key_after"):
        run_job(job(tmp_path, finish=False, rules=SILENT))


def event(second: int, key: str) -> Event:
    clock = f"2024-01-01T{second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}"
    return {"t": clock, "k": key, "kind": "a", "x": 1}
