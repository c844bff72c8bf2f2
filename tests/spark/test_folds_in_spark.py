"""Folds in the streaming query: the core's matches, whatever stops it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from spark_pace.errors import StateError
from spark_pace.job import run_job
from spark_pace.job_file import read_job
from tests.spark.jobs import in_core, job, matches, random_events, stop_at, table, write_files

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]

MACHINE = """
events: {schema: "t TIMESTAMP, k STRING, kind STRING, x BIGINT", event_time: t}
rules:
  - name: door
    partition_by: [k]
    fold:
      initial: closed
      moves:
        - {from: closed, when: kind = 'a', to: open}
        - {from: open, when: x > prev(x), to: ajar, emit: false}
        - {from: [open, ajar], when: kind = 'b', to: closed}
    emit: {was: state.from, now: state.to, since: state.since, x: x}
  - name: whole
    filter: x > 2
    fold:
      initial: even
      moves: [{from: even, when: kind = 'c', to: odd}, {from: odd, to: even}]
    emit: {now: state.to}
  - name: forgetful
    partition_by: [k]
    forget_key_after: 3 s
    fold: {initial: fresh, moves: [{from: fresh, to: known}, {from: known, when: x > prev(x), to: known}]}
    emit: {was: state.from, x: x}
"""


def test_a_query_stopped_and_killed_between_batches_gives_the_cores_matches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = job(tmp_path, finish=False, rules=MACHINE)
    events = random_events(5, 300)
    write_files(tmp_path, events[:150], 3)
    with monkeypatch.context() as failing, pytest.raises(Exception, match="disk is full"):
        stop_at(failing, "matches", 1)
        run_job(spec)
    run_job(spec)
    write_files(tmp_path, events[150:], 2, first=3)
    run_job(replace(read_job(tmp_path / "job.yaml"), finish=True))
    found = matches(spec)
    assert found == in_core(spec).matches.to_pylist()
    assert found == in_core(spec, whole=True).matches.to_pylist()
    number = Counter(row["rule"] for row in found)
    assert {rule.name: number[rule.name] > 20 for rule in spec.rules} == dict.fromkeys(number, True)
    assert not any(row["carry"] for row in table(spec, "metrics").to_pylist())


def test_a_fold_that_has_changed_is_another_rule(tmp_path: Path) -> None:
    spec = job(tmp_path, finish=False, rules=MACHINE)
    write_files(tmp_path, random_events(5, 20), 1)
    run_job(spec)
    changed = MACHINE.replace("kind = 'a', to: open", "kind = 'c', to: open")
    with pytest.raises(StateError, match=r"door.*fold"):
        run_job(job(tmp_path, finish=False, rules=changed))
