"""`spark-pace bench` as a user calls it: a short run through files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.commands import SPARK_PACE, called

pytestmark = [pytest.mark.integration, pytest.mark.long]

JOB = """
name: job
source: {kind: files, format: json, path: events}
rules: [rules.yaml]
sink: {kind: delta, path: out}
checkpoint: checkpoint
trigger: 500 ms
parallelism: {slots: 1, buckets: 1}
"""
RULES = """
events: {schema: "t TIMESTAMP, card BIGINT, kind STRING", event_time: t}
rules:
  - {name: pair, partition_by: [card], pattern: {sequence: [a: kind = 'a', b: kind = 'b']}, within: 1 s}
"""
RUN = """
name: short
job: job.yaml
events: {generate: {card: {uniform: [1, 20]}, kind: {choice: {a: 0.9, b: 0.1}}}}
phases:
  - {name: warm up, seconds: 1, rate: [1, 100], role: warm_up}
  - {name: even, seconds: 2, rate: 100, arrivals: poisson}
limit: 2 min
"""


def test_a_run_measures_what_a_job_finds_in_a_folder_of_any_name(tmp_path: Path) -> None:
    tmp_path = tmp_path / "my data" / "ü#?"
    tmp_path.mkdir(parents=True)
    for name, text in (("job.yaml", JOB), ("rules.yaml", RULES), ("run.yaml", RUN)):
        (tmp_path / name).write_text(text)
    answer = called(SPARK_PACE, "bench", "run.yaml", "-o", "measured", cwd=tmp_path)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    (found,) = json.loads((tmp_path / "measured" / "report.json").read_text())
    assert found["differences"] == [] and found["unread"] == 0
    assert found["matches"] == found["expected"] > 0
    assert found["measured"]["matches"] > 0
    for kind in ("end_to_end", "processing", "scheduled"):
        assert 0 < found["measured"][kind]["p50"] <= found["measured"][kind]["p99.9"]
    assert found["measured"]["scheduled"]["mean"] >= found["measured"]["end_to_end"]["mean"]
    assert "differences: none" in answer.stdout
    assert (tmp_path / "measured" / "report.html").read_text().count("<svg") == 5
    assert not (tmp_path / "out").exists() and not (tmp_path / "checkpoint").exists()
    again = called(SPARK_PACE, "bench", "run.yaml", "-o", ".", cwd=tmp_path)
    assert again.returncode == 2
    assert "must be a new folder, or one of an earlier run of the driver" in again.stderr
