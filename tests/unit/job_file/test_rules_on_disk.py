"""When the rule files of a running job are read anew."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from spark_pace.errors import StateError
from spark_pace.job_file import JobSpec, read_job
from spark_pace.job_file.rules_on_disk import RulesOnDisk

HEAD = 'events: {schema: "t TIMESTAMP, x BIGINT", event_time: t}\nrules:\n'
HIGH = "  - {name: high, pattern: {sequence: [a: x > 5]}}\n"
LOW = "  - {name: low, pattern: {sequence: [a: x < 5]}}\n"
JOB = """
name: test
source: {kind: files, format: json, path: in}
rules: [rules.yaml]
sink: {kind: delta, path: out}
checkpoint: out/_checkpoint
trigger: 1 s
rules_refresh: 1 us
"""


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "rules.yaml").write_text(HEAD + HIGH)
    (tmp_path / "job.yaml").write_text(JOB)
    return tmp_path


def looks(on_disk: RulesOnDisk, count: int) -> bool:
    return any(on_disk.changed() for _ in range(count))


def take_all(_: JobSpec) -> None:
    """Refuse nothing."""


def test_files_that_stay_as_they_are_change_nothing(files: Path, caplog: pytest.LogCaptureFixture) -> None:
    on_disk = RulesOnDisk(read_job(files / "job.yaml"), take_all)
    assert not looks(on_disk, 5)
    (files / "rules.yaml").write_text(HEAD + "  # a comment\n" + HIGH)
    assert not looks(on_disk, 5)
    assert not on_disk.take() and not caplog.messages


def test_files_are_read_once_they_are_still(files: Path) -> None:
    on_disk = RulesOnDisk(read_job(files / "job.yaml"), take_all)
    for length in range(1, len(LOW)):
        (files / "rules.yaml").write_text(HEAD + HIGH + LOW[:length])
        assert not looks(on_disk, 1)
    (files / "rules.yaml").write_text(HEAD + HIGH + LOW)
    assert not looks(on_disk, 1) and looks(on_disk, 1)
    assert on_disk.take() and not on_disk.changed()
    assert [rule.name for rule in on_disk.spec.rules] == ["high", "low"]


def test_what_is_refused_is_told_once_and_the_next_change_is_read(
    files: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse_one(spec: JobSpec) -> None:
        if len(spec.rules) == 1:
            raise StateError("one rule — must be two; got one. Add one.")

    on_disk = RulesOnDisk(read_job(files / "job.yaml"), refuse_one)
    (files / "rules.yaml").write_text(HEAD + LOW)
    assert not looks(on_disk, 5)
    (files / "rules.yaml").unlink()
    assert not looks(on_disk, 5)
    told = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert len(told) == 2
    assert told[0].endswith("goes on with those it has: one rule — must be two; got one. Add one.")
    assert "rules.yaml — must be a file that can be read" in told[1]
    (files / "rules.yaml").write_text(HEAD + HIGH + LOW)
    assert looks(on_disk, 2)


def test_attributes_must_stay(files: Path, caplog: pytest.LogCaptureFixture) -> None:
    on_disk = RulesOnDisk(read_job(files / "job.yaml"), take_all)
    (files / "rules.yaml").write_text((HEAD + HIGH + LOW).replace("x BIGINT", "x DOUBLE"))
    assert not looks(on_disk, 5)
    assert "must have the attributes that the job was started with" in caplog.messages[0]


def test_a_new_rule_file_is_watched_though_it_is_wrong_at_first(
    files: Path, caplog: pytest.LogCaptureFixture
) -> None:
    on_disk = RulesOnDisk(read_job(files / "job.yaml"), take_all)
    (files / "more.yaml").write_text(HEAD + LOW.replace("pattern", "patern"))
    (files / "job.yaml").write_text(JOB.replace("[rules.yaml]", "[rules.yaml, more.yaml]"))
    assert not looks(on_disk, 5)
    assert len(caplog.messages) == 1
    (files / "more.yaml").write_text(HEAD + LOW)
    assert looks(on_disk, 3)
