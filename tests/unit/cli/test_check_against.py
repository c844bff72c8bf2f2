"""`spark-pace check --against`: what a start would do, in its own words, and nothing is changed by it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from spark_pace.errors import StateError
from spark_pace.io.delta_tables import CHANGES_SCHEMA
from spark_pace.io.files.files import write_json
from spark_pace.job_file import read_job
from spark_pace.job_file.spec import event_settings
from spark_pace.spark.checkpoint.batch_begin import Begin, write_begin
from spark_pace.spark.checkpoint.checkpoint import Checkpoint
from spark_pace.spark.checkpoint.layout import Layout, read_layout, write_layout
from spark_pace.spark.checkpoint.lock import checkpoint_lock
from spark_pace.spark.start import compared
from tests.support.commands import spark_pace

HEAD = 'events: {schema: "t TIMESTAMP, x BIGINT, k STRING", event_time: t}\nrules:\n'
HIGH = "  - {name: high, pattern: {sequence: [a: x > 5, b: x > 6]}, within: 1 min, emit: {x: a.x}}\n"
LOW = "  - {name: low, pattern: {sequence: [a: x < 5]}, emit: {x: a.x}}\n"
MID = "  - {name: mid, pattern: {sequence: [a: x = 5]}}\n"
TOP = "  - {name: top, from: [high, events], pattern: {sequence: [a: x > 7]}}\n"
JOB = """
name: test
source: {kind: files, format: json, path: in}
rules: [rules.yaml]
sink: {kind: delta, path: out}
checkpoint: out/_checkpoint
parallelism: {slots: 2, buckets: 2}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A job with three rules, two of which its checkpoint has begun with; a third was there before."""
    (tmp_path / "in").mkdir()
    (tmp_path / "rules.yaml").write_text(HEAD + HIGH + LOW + TOP)
    (tmp_path / "job.yaml").write_text(JOB)
    spec = read_job(tmp_path / "job.yaml")
    checkpoint = checkpoint_of(tmp_path)
    write_json(checkpoint.source_file, {"kind": "files"})
    layout = Layout(2, 2, (0, 1), "app", event_settings(spec))
    write_layout(checkpoint, compared(checkpoint, layout, spec.rules, ()).require_unchanged().after)
    for notes in (checkpoint.offsets, checkpoint.commits):
        notes.mkdir()
        (notes / "0").touch()
    write_begin(checkpoint, 1, Begin({"high": 3, "mid": 17}, 0))
    return tmp_path


def checkpoint_of(folder: Path) -> Checkpoint:
    return Checkpoint(folder / "out" / "_checkpoint")


def lines(folder: Path, *arguments: object, code: int = 0) -> Iterator[str]:
    """What the command prints, its errors last; nothing of the checkpoint changes, though a job runs."""
    checkpoint = checkpoint_of(folder)
    with checkpoint_lock(checkpoint):
        before = {path: path.read_bytes() for path in checkpoint.path.rglob("*") if path.is_file()}
        answer = spark_pace("check", *arguments)
        assert before == {path: path.read_bytes() for path in checkpoint.path.rglob("*") if path.is_file()}
    assert answer.returncode == code, answer.stderr
    yield from (answer.stdout + answer.stderr).splitlines()


def test_rules_that_nobody_changed_are_kept(folder: Path) -> None:
    kept = ["high: kept", "low: kept", "top: kept"]
    for arguments in (["job.yaml", "--against"], ["rules.yaml", "--against", folder / "out"]):
        file, *others = arguments
        assert list(lines(folder, folder / file, *others)) == kept
    assert list(lines(folder, "--against", checkpoint_of(folder), folder / "job.yaml")) == kept


def test_new_and_removed_rules_and_those_that_come_back_are_told(folder: Path) -> None:
    (folder / "rules.yaml").write_text(HEAD + MID + LOW + LOW.replace("low", "lower"))
    (checkpoint_of(folder).offsets / "1").touch()
    assert list(lines(folder, folder / "job.yaml", "--against")) == [
        "mid: came back; it begins with the events read from now on, out_seq 17",
        "low: kept",
        "lower: new; it begins with the events read from now on",
        "high: removed; its state is dropped, its matches stay",
        "top: removed; its state is dropped, its matches stay",
        "batch 1 is not done: a start does it first, with the rules that are kept",
    ]


def test_rules_without_matches_that_were_there_before_are_not_new(folder: Path) -> None:
    changes = [
        {"batch_id": number, "rule": rule, "change": change}
        for number, rule, change in (
            *((0, "lower", "added"), (0, "lowest", "added"), (0, "mid", "added")),
            *((1, "lower", "paused"), (2, "lowest", "removed"), (1, "mid", "paused")),
        )
    ]
    write_deltalake(folder / "out" / "rule_changes", pa.Table.from_pylist(changes, CHANGES_SCHEMA))
    rules = [LOW.replace("low", name) for name in ("lower", "lowest", "other")]
    (folder / "rules.yaml").write_text(HEAD + HIGH + LOW + TOP + MID + "".join(rules))
    expected = [
        *("high: kept", "low: kept", "top: kept"),
        "mid: resumed; it begins with the events read from now on, out_seq 17",
        "lower: resumed; it begins with the events read from now on, out_seq 0",
        "lowest: came back; it begins with the events read from now on, out_seq 0",
        "other: new; it begins with the events read from now on",
    ]
    assert list(lines(folder, folder / "job.yaml", "--against")) == expected
    assert list(lines(folder, folder / "rules.yaml", "--against", folder / "out")) == expected
    assert list(lines(folder, folder / "job.yaml", "--against", checkpoint_of(folder))) == expected


def test_paused_rules_are_told(folder: Path) -> None:
    paused = [text.replace("{name", "{enabled: false, name") for text in (HIGH, MID)]
    (folder / "rules.yaml").write_text(HEAD + LOW + "".join(paused))
    expected = [
        "low: kept",
        "high: paused; its state is dropped, its matches stay",
        "top: removed; its state is dropped, its matches stay",
        "mid: paused",
    ]
    assert list(lines(folder, folder / "job.yaml", "--against")) == expected
    assert list(lines(folder, folder / "rules.yaml", "--against", folder / "out")) == expected


def test_what_a_start_refuses_is_told_in_its_words(folder: Path) -> None:
    (folder / "rules.yaml").write_text(HEAD + HIGH.replace("1 min", "2 min") + LOW + TOP)
    (folder / "job.yaml").write_text(JOB.replace("slots: 2", "slots: 3"))
    spec, checkpoint = read_job(folder / "job.yaml"), checkpoint_of(folder)
    layout = read_layout(checkpoint)
    assert layout is not None
    with pytest.raises(StateError) as refused:
        compared(checkpoint, layout, spec.rules, ()).require_unchanged()
    write_deltalake(folder / "out" / "matches", pa.table({"x": ["text"]}))
    assert list(lines(folder, folder / "job.yaml", "--against", code=1)) == [
        "high: refused; got a changed within: 2 min, was 1 min; --reset-rule high drops its state and begins "
        "it anew",
        "low: kept",
        "top: refused; got a changed rule that it reads",
        "parallelism — must be as the checkpoint knows it; got slots 3 instead of 2. "
        "Restore it, or start a new checkpoint with a sink of its own.",
        str(refused.value),
        f"{folder}/out/matches — must have a column x of type BIGINT; got x of type STRING. "
        "Give what is emitted another name, or choose another sink.",
    ]
    assert "--reset-rule high, with which top starts anew too" in str(refused.value)


def test_a_job_without_a_batch_begins_with_every_rule(folder: Path) -> None:
    (folder / "job.yaml").write_text(JOB.replace("_checkpoint", "_other"))
    assert list(lines(folder, folder / "job.yaml", "--against")) == [
        f"{folder}/out/_other: no batch yet, so every rule begins with the first one"
    ]
    assert not (folder / "out" / "_other").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["rules.yaml", "--against"],
            "--against — must say with what a rule file is compared; got no folder. "
            "Name the folder of the job's tables, or of its checkpoint.",
        ),
        (
            ["rules.yaml", "--against", "none"],
            "--against — must name the folder of a checkpoint, or of tables in which one lies; got none. "
            "Name the checkpoint's folder, which `checkpoint` of the job file says.",
        ),
        (
            ["rules.yaml", "job.yaml", "--against"],
            "--against — must come with one file; got 2. Give the command once for each.",
        ),
    ],
)
def test_what_it_is_asked_of_must_be_there(folder: Path, arguments: list[str], message: str) -> None:
    answer = spark_pace("check", *arguments, cwd=folder)
    assert (answer.returncode, answer.stderr) == (2, f"{message}\n")


def test_a_source_that_is_not_there_is_told_beside_the_rules(folder: Path) -> None:
    (folder / "job.yaml").write_text(JOB.replace("path: in", "path: input"))
    *kept, refused = lines(folder, folder / "job.yaml", "--against", code=1)
    assert kept == ["high: kept", "low: kept", "top: kept"]
    assert refused.startswith(f"{folder}/input — must")


def test_a_wrong_file_ends_as_without_it(folder: Path) -> None:
    (folder / "rules.yaml").write_text(HEAD)
    answer = spark_pace("check", folder / "job.yaml", "--against")
    assert answer.returncode == 2 and "must be a list of rules" in answer.stderr
