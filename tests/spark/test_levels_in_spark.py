"""Jobs with rules over rules: the core's rows, wherever the job stops, and with its state in files."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_pace import ways
from spark_pace.errors import ConfigError, StateError
from spark_pace.job import run_job
from spark_pace.job_file import JobSpec
from spark_pace.spark.checkpoint.batch_begin import read_begin
from spark_pace.spark.checkpoint.checkpoint import Checkpoint
from spark_pace.spark.detect import detect
from tests.spark.jobs import (
    RULES,
    Event,
    in_core,
    job,
    matches,
    only,
    random_events,
    stop_at,
    table,
    write_files,
)

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]

LEVELS = (
    RULES
    + """
  - name: busy
    from: [keyed, pairs]
    pattern: {sequence: [{one: "rule = 'pairs'"}, {other: "rule = 'keyed'"}]}
    within: 10 s
    merge: detection
    emit: {gap: other.matched_at, second: one.second}
  - name: high
    from: [sums]
    pattern: {sequence: [{low: total < 70}, {high: total > 75}]}
    context: next, selected
    within: 40 s
    emit: {rise: high.total - low.total}
  - name: last
    from: [busy, events, high]
    pattern: {sequence: [{m: "rule <> 'events'"}, {e: "kind = 'c' and x > 5"}]}
    within: 15 s
    context: next, selected
    emit: {of: m.rule, at: e.t}
"""
)
FILES = 6


def feed(folder: Path, first: int, last: int) -> None:
    """Put some of the job's six files there."""
    events = random_events(31, 40 * FILES)
    for number in range(first, last):
        write_files(folder, events[40 * number : 40 * (number + 1)], 1, first=number)


def rows(spec: JobSpec) -> list[dict[str, Any]]:
    return in_core(spec).matches.to_pylist()


def counted(spec: JobSpec) -> dict[str, int]:
    counts: dict[str, int] = {}
    for by_rule in table(spec, "metrics")["matches_by_rule"].to_pylist():
        for name, count in by_rule:
            counts[name] = counts.get(name, 0) + count
    return counts


def test_rules_over_rules_find_in_a_job_what_the_core_finds_also_where_an_operator_below_fails(
    tmp_path: Path,
) -> None:
    spec = job(tmp_path, rules=LEVELS, slots=2)
    events: list[Event] = random_events(31, 40 * FILES)
    events[100]["x"] = 666
    write_files(tmp_path, events, 2)
    run_job(spec)
    found, core = matches(spec), in_core(spec)
    assert found == core.matches.to_pylist()
    numbers = {name: sum(row["rule"] == name for row in found) for name in {row["rule"] for row in found}}
    assert counted(spec) == numbers
    assert set(numbers) == {"pairs", "keyed", "sums", "busy", "high", "last"}
    assert table(spec, "quarantine").num_rows == core.failed.num_rows > 0


def test_what_is_carried_of_matches_lies_in_files_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = job(tmp_path, rules=LEVELS, finish=False)
    monkeypatch.setattr(ways, "is_stored_apart", lambda rows: rows > 0)
    feed(tmp_path, 0, 1)
    run_job(spec)
    checkpoint = Checkpoint(Path(spec.checkpoint_path))
    begin = read_begin(checkpoint, checkpoint.next_batch())
    assert begin is not None
    assert {path.name for path in checkpoint.chunks.folder.iterdir()} >= set(begin.chunks) != set()
    feed(tmp_path, 1, 2)
    run_job(replace(spec, finish=True))
    assert matches(spec) == rows(spec)


def lose(path: Path) -> None:
    path.unlink()


def spoil(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


@pytest.mark.in_parts
def test_a_checkpoint_without_its_state_of_matches_is_refused(tmp_path: Path) -> None:
    spec = job(tmp_path, rules=LEVELS, finish=False)
    feed(tmp_path, 0, 2)
    run_job(spec)
    state = Path(spec.checkpoint_path, "levels", "2")
    feed(tmp_path, 2, 3)
    got = "got no file, or another content than 2.json has the checksum of. Restore"
    message = re.escape(f"{state} — must be as this program wrote it; {got}")
    for damage in (lambda path: shutil.copy(path.with_name("1"), path), spoil, lose):
        damage(state)
        with pytest.raises(StateError, match=f"^{message}"):
            run_job(spec)


def found(spec: JobSpec, rule: str) -> list[dict[str, Any]]:
    return [row for row in matches(spec) if row["rule"] == rule]


@pytest.mark.in_parts
def test_rules_over_rules_come_and_go_and_start_anew_with_those_that_they_read(tmp_path: Path) -> None:
    spec = job(tmp_path, rules=LEVELS, finish=False)
    first = only(spec, "pairs", "keyed", "busy")
    feed(tmp_path, 0, 1)
    run_job(first)
    feed(tmp_path, 1, 2)
    run_job(spec)
    changed = job(tmp_path, rules=LEVELS.replace("within: 30 s", "within: 31 s"), finish=False)
    feed(tmp_path, 2, 3)
    message = (
        r"^rule keyed — must be as the checkpoint knows it; got a changed within: 31 s, was 30 s\. Restore "
        r"it, give the rule a new name, or start it anew with --reset-rule keyed, with which busy, last "
        r"start anew too\.$"
    )
    with pytest.raises(StateError, match=message):
        run_job(changed)
    before = {name: found(spec, name) for name in ("keyed", "busy", "last")}
    run_job(changed, reset_rules=["keyed"])
    feed(tmp_path, 3, 4)
    run_job(replace(changed, finish=True))
    core = rows(spec)
    for name in ("pairs", "sums"):
        assert [row["matched_at"] for row in found(spec, name)][-5:] == [
            row["matched_at"] for row in core if row["rule"] == name
        ][-5:]
    assert found(spec, "pairs") == [row for row in core if row["rule"] == "pairs"]
    for name, kept in before.items():
        assert found(spec, name)[: len(kept)] == kept
        assert [row["out_seq"] for row in found(spec, name)] == list(range(len(found(spec, name))))


@pytest.mark.long
@pytest.mark.in_parts
def test_an_unfinished_batch_is_finished_before_a_rule_over_rules_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = job(tmp_path, rules=LEVELS, finish=False)
    feed(tmp_path, 0, 3)
    stop_at(monkeypatch, "metrics", batch_id=2)
    with pytest.raises(Exception, match="the disk is full"):
        run_job(spec)
    monkeypatch.undo()
    stays = only(spec, "pairs", "keyed", "busy")
    run_job(stays)
    feed(tmp_path, 3, 6)
    run_job(replace(stays, finish=True))
    core = rows(spec)
    for name in ("pairs", "keyed", "busy"):
        assert found(spec, name) == [row for row in core if row["rule"] == name]


def test_detect_refuses_rules_over_rules(tmp_path: Path, spark: SparkSession) -> None:
    message = (
        r"^detect — must be given rules that read events; got busy, which reads other rules\. Run rules over "
        r"rules in a job, or by replay\.$"
    )
    with pytest.raises(ConfigError, match=message):
        detect(spark.range(1), job(tmp_path, rules=LEVELS).rules)
