"""When the rule files of a running job are read anew."""

from __future__ import annotations

import logging
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from spark_pace.errors import ConfigError, StateError
from spark_pace.job_file import JobSpec, read_job, reader, rule_sources
from spark_pace.job_file.reader import RulesOnDisk
from tests.support.silent_store import SilentStore

HEAD = 'events: {schema: "t TIMESTAMP, x BIGINT", event_time: t}\nrules:\n'
HIGH = "  - {name: high, pattern: {sequence: [a: x > 5]}}\n"
EVENTS = 'events: {schema: "t TIMESTAMP, x BIGINT", event_time: t}\n'
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


class Watched(RulesOnDisk):
    """The files of a job, with all that was told of them."""

    def __init__(self, files: Path, accept: Callable[[JobSpec], None] | None = None) -> None:
        spec = read_job(files / "job.yaml")
        self.told: list[tuple[str, tuple[str, ...]]] = []
        super().__init__(spec, spec, accept or take_all, lambda rules, keys: self.told.append((rules, keys)))

    def changed(self) -> bool:
        """Wait for the look, too."""
        super().changed()
        if self._look is not None:
            self._look.join()
        if self._failure is not None:
            raise self._failure
        return self._found is not None


def looks(on_disk: RulesOnDisk, count: int) -> bool:
    return any(on_disk.changed() for _ in range(count))


def take_all(_: JobSpec) -> None:
    """Refuse nothing."""


def test_files_that_stay_as_they_are_change_nothing(files: Path, caplog: pytest.LogCaptureFixture) -> None:
    on_disk = Watched(files)
    assert not looks(on_disk, 5)
    (files / "rules.yaml").write_text(HEAD + "  # a comment\n" + HIGH)
    assert not looks(on_disk, 5)
    assert not on_disk.take() and not caplog.messages


def test_files_are_read_once_they_are_still(files: Path) -> None:
    on_disk = Watched(files)
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

    on_disk = Watched(files, refuse_one)
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
    on_disk = Watched(files)
    (files / "rules.yaml").write_text((HEAD + HIGH + LOW).replace("x BIGINT", "x DOUBLE"))
    assert not looks(on_disk, 5)
    assert "must have the attributes that the job was started with" in caplog.messages[0]


def test_a_new_rule_file_is_watched_though_it_is_wrong_at_first(
    files: Path, caplog: pytest.LogCaptureFixture
) -> None:
    on_disk = Watched(files)
    (files / "more.yaml").write_text(HEAD + LOW.replace("pattern", "patern"))
    (files / "job.yaml").write_text(JOB.replace("[rules.yaml]", "[rules.yaml, more.yaml]"))
    assert not looks(on_disk, 5)
    assert len(caplog.messages) == 1
    (files / "more.yaml").write_text(HEAD + LOW)
    assert looks(on_disk, 3)


def test_what_differs_is_told_until_the_files_agree_again(
    files: Path, caplog: pytest.LogCaptureFixture
) -> None:
    on_disk = Watched(files)
    (files / "rules.yaml").write_text(HEAD)
    assert not looks(on_disk, 5)
    [(why, keys)] = on_disk.told
    assert why == caplog.messages[0] and "rules.yaml:2:7 rules — must be a list of rules" in why and not keys
    (files / "job.yaml").write_text(JOB.replace("1 s", "2 s") + "parallelism: {lanes: 3}\n")
    assert not looks(on_disk, 5)
    assert len(on_disk.told) == 1  # the rules are wrong, so nothing is known of the job
    (files / "rules.yaml").write_text(HEAD + HIGH)
    assert not looks(on_disk, 5)
    assert on_disk.told[1:] == [("", ("trigger", "parallelism"))]
    (files / "job.yaml").write_text(JOB)
    assert not looks(on_disk, 5)
    assert on_disk.told[2:] == [("", ())]
    assert caplog.messages[-3:] == [
        "rules — the files have again the rules that the job runs with.",
        "job file — changed since the start: trigger, parallelism. That counts at the next start.",
        "job file — says again what the job was started with.",
    ]


def test_rules_that_are_taken_over_differ_no_more(files: Path) -> None:
    on_disk = Watched(files)
    (files / "rules.yaml").write_text(HEAD + LOW.replace("low", "lo w"))
    assert not looks(on_disk, 5)
    (files / "rules.yaml").write_text(HEAD + HIGH + LOW)
    assert looks(on_disk, 5) and on_disk.take()
    assert [bool(rules) for rules, _ in on_disk.told] == [True, False]


def test_a_rule_is_paused_and_resumed(files: Path, caplog: pytest.LogCaptureFixture) -> None:
    (files / "rules.yaml").write_text(HEAD + HIGH + LOW)
    on_disk = Watched(files)
    (files / "rules.yaml").write_text(HEAD + HIGH + LOW.replace("name: low", "name: low, enabled: false"))
    assert looks(on_disk, 5) and on_disk.take()
    assert [rule.name for rule in on_disk.spec.rules] == ["high"] and on_disk.spec.paused == ("low",)
    (files / "rules.yaml").write_text(HEAD + HIGH + LOW)
    assert looks(on_disk, 5) and on_disk.take()
    assert [rule.name for rule in on_disk.spec.rules] == ["high", "low"] and on_disk.spec.paused == ()
    assert [message[:20] for message in caplog.messages] == ["rules — paused: low.", "rules — resumed: low"]


def test_a_rule_file_that_is_put_into_a_folder_is_read(files: Path) -> None:
    (files / "rules").mkdir()
    (files / "rules" / "high.yaml").write_text(HEAD + HIGH)
    (files / "job.yaml").write_text(JOB.replace("[rules.yaml]", "[rules]"))
    on_disk = Watched(files)
    (files / "rules" / ".low.yaml").write_text(HEAD + LOW)
    assert not looks(on_disk, 5)
    (files / "rules" / ".low.yaml").rename(files / "rules" / "low.yml")
    assert looks(on_disk, 5) and on_disk.take()
    assert [rule.name for rule in on_disk.spec.rules] == ["high", "low"]
    (files / "rules" / "high.yaml").unlink()
    assert looks(on_disk, 5) and on_disk.take()
    assert [rule.name for rule in on_disk.spec.rules] == ["low"]


def test_a_new_version_of_a_table_of_rules_is_read(files: Path) -> None:
    text = "pattern: {sequence: [a: x > 5]}"
    write_deltalake(files / "table", pa.table({"name": ["high"], "text": [text]}))
    events = HEAD.replace("rules:\n", "")
    (files / "job.yaml").write_text(events + JOB.replace("[rules.yaml]", "{table: table}"))
    on_disk = Watched(files)
    assert not looks(on_disk, 5)
    write_deltalake(files / "table", pa.table({"name": ["low"], "text": [text]}), mode="append")
    assert looks(on_disk, 5) and on_disk.take()
    assert [rule.name for rule in on_disk.spec.rules] == ["high", "low"]
    shutil.rmtree(files / "table")
    assert not looks(on_disk, 5)
    assert on_disk.told and "must name a table of rules; got no Delta table" in on_disk.told[-1][0]


def test_without_a_refresh_they_differ_until_the_next_start(
    files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "_LOOK_US", 0)
    (files / "job.yaml").write_text(JOB.replace("rules_refresh: 1 us\n", ""))
    on_disk = Watched(files)
    (files / "rules.yaml").write_text(HEAD + LOW)
    assert not looks(on_disk, 5)
    assert on_disk.told == [
        (
            "rules — added: low; removed: high. To take them over, start the job again or set rules_refresh.",
            (),
        )
    ]


def test_a_store_that_is_silent_keeps_nobody_waiting(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = read_job(files / "job.yaml")
    on_disk = RulesOnDisk(spec, spec, take_all)
    with SilentStore() as store:
        for name, value in store.environment.items():
            monkeypatch.setenv(name, value)
        (files / "job.yaml").write_text(JOB.replace("[rules.yaml]", "{table: 's3://bucket/rules'}") + EVENTS)
        began = time.monotonic()
        assert not on_disk.changed()
        assert store.asked.wait(60)
        assert not on_disk.changed()
        monkeypatch.setattr(rule_sources, "_PATIENCE_S", 1)
        with pytest.raises(ConfigError, match="must be a table that can be read; got no answer within 1 s"):
            read_job(files / "job.yaml")
        assert time.monotonic() - began < 60


def test_what_a_look_raises_is_raised(files: Path) -> None:
    def fail(_: JobSpec) -> None:
        raise ConnectionError("the JVM is gone")

    on_disk = Watched(files, fail)
    (files / "rules.yaml").write_text(HEAD + LOW)
    with pytest.raises(ConnectionError, match="the JVM is gone"):
        looks(on_disk, 3)
