"""Keys that are forgotten, in the streaming query: a checkpoint without dead keys."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_pace.errors import StateError
from spark_pace.job import run_job
from spark_pace.spark.checkpoint.batch_begin import read_begin
from spark_pace.spark.checkpoint.checkpoint import Checkpoint
from spark_pace.ways import SMALL
from tests.spark.jobs import Event, job, table, write_files

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]

SILENT = """
events: {schema: "t TIMESTAMP, k STRING, kind STRING, x BIGINT", event_time: t}
rules:
  - name: waits
    partition_by: [k]
    forget_key_after: 10 min
    pattern: {sequence: [{a: "kind = 'a'"}, {b: "kind = 'b'"}]}
"""


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
