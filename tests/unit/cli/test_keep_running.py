"""`spark-pace run --keep-running`: a job is started again after what may pass, and after nothing else."""

from __future__ import annotations

import fcntl
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from spark_pace import errors
from spark_pace.errors import (
    ConfigError,
    EventError,
    SetupError,
    SparkPaceError,
    StateError,
    UnfitError,
    may_pass,
)
from spark_pace.io.files.files import write_json
from spark_pace.job_file import read_job
from spark_pace.job_file.spec import event_settings
from spark_pace.spark.checkpoint.checkpoint import Checkpoint
from spark_pace.spark.checkpoint.layout import Layout, write_layout
from spark_pace.spark.start import compared
from tests.support.commands import environment, message_of, spark_pace

RULES = """
events: {schema: "t TIMESTAMP, x BIGINT", event_time: t}
rules:
  - {name: high, pattern: {sequence: [a: x > 5, b: x > 6]}, within: 1 min}
"""
JOB = """
name: test
source: {kind: files, format: json, path: in}
rules: [rules.yaml]
sink: {kind: delta, path: out}
checkpoint: out/_checkpoint
parallelism: {slots: 1, buckets: 1}
"""
KEEP = """
import sys
from pathlib import Path
from spark_pace.cli.keep_running import KeptJob

first_s, most_s, long_s = map(float, sys.argv[2:])
sys.exit(KeptJob(Path(sys.argv[1]), first_s, most_s, long_s).run())
"""


@pytest.fixture
def job(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    (tmp_path / "rules.yaml").write_text(RULES)
    (tmp_path / "job.yaml").write_text(JOB)
    return tmp_path / "job.yaml"


@contextmanager
def kept(job: Path, *seconds: float) -> Iterator[subprocess.Popen[str]]:
    """The command with other pauses: the first, the longest, and after how long they begin anew."""
    words = [sys.executable, "-c", KEEP, str(job), *map(str, seconds)]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True, env=environment()) as process:
        try:
            yield process
        finally:
            process.kill()


def lines(process: subprocess.Popen[str], count: int) -> list[str]:
    assert process.stderr is not None
    said = "".join(process.stderr.readline() for _ in range(count))
    return message_of(said).splitlines()


def told(pause: str) -> re.Pattern[str]:
    return re.compile(rf"keep-running: it has failed after \d+ s; next start in {pause} s")


@contextmanager
def taken_port(job: Path) -> Iterator[int]:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        job.write_text(f"{JOB}metrics: {{port: {port}}}\n")
        yield port


@contextmanager
def held_by_a_jvm(job: Path) -> Iterator[None]:
    """Let a run wait for the JVM of another one: for a minute, before it starts Spark."""
    checkpoint = Checkpoint(read_job(job).checkpoint_folder)
    checkpoint.path.mkdir(parents=True)
    with open(checkpoint.jvm_lock_file, "a+", encoding="ascii") as file:
        fcntl.lockf(file, fcntl.LOCK_EX)
        yield


def run_of(process: subprocess.Popen[str], checkpoint: Path) -> psutil.Process:
    """The process of the run, once it waits for the JVM."""
    while True:
        for child in psutil.Process(process.pid).children():
            if (checkpoint / ".lock").is_file() and (checkpoint / ".lock").read_text() == str(child.pid):
                return child


def test_what_may_pass_is_tried_again_later_and_later_and_a_wrong_file_ends_it(job: Path) -> None:
    with taken_port(job) as port, kept(job, 0.05, 0.1, 600) as process:
        for pause in ("0.05", "0.1", "0.1"):
            what, when = lines(process, 2)
            assert f"must be an address of this machine that is free; got 127.0.0.1:{port}" in what
            assert told(pause).fullmatch(when), when
        job.write_text(JOB.replace("sink", "sinc"))
        assert process.wait() == 2
        assert process.stderr is not None
        rest = process.stderr.read()
        assert 'must be a known key; got "sinc"' in rest and rest.count("keep-running") < 2


def test_after_a_run_that_lasted_long_the_pauses_begin_anew(job: Path) -> None:
    with taken_port(job), kept(job, 0.05, 0.1, 0) as process:
        for _ in range(2):
            assert told("0.05").fullmatch(lines(process, 2)[1])


def test_a_changed_rule_ends_it(job: Path) -> None:
    spec, checkpoint = read_job(job), Checkpoint(job.parent / "out" / "_checkpoint")
    write_json(checkpoint.source_file, {"kind": "files"})
    layout = Layout(1, 1, (0,), "app", event_settings(spec))
    write_layout(checkpoint, compared(checkpoint, layout, spec.rules, ()).require_unchanged().after)
    checkpoint.offsets.mkdir()
    (checkpoint.offsets / "0").touch()
    (job.parent / "rules.yaml").write_text(RULES.replace("1 min", "2 min"))
    with kept(job, 0.05, 0.1, 600) as process:
        assert process.wait() == 1
        assert process.stderr is not None
        said = message_of(process.stderr.read())
    assert said.startswith("rule high — must be as the checkpoint knows it") and "keep-running" not in said


@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.long)])
def test_a_signal_in_a_pause_ends_it_at_once(job: Path, number: signal.Signals) -> None:
    with taken_port(job), kept(job, 300, 300, 600) as process:
        assert told("300").fullmatch(lines(process, 2)[1])
        process.send_signal(number)
        assert process.wait(timeout=10) == 128 + number


def test_a_signal_ends_the_run_and_it(job: Path) -> None:
    with held_by_a_jvm(job), kept(job, 300, 300, 600) as process:
        child = run_of(process, job.parent / "out" / "_checkpoint")
        process.terminate()
        assert process.wait(timeout=30) == 128 + signal.SIGTERM
        assert not child.is_running()


def test_a_run_that_is_killed_is_started_again(job: Path) -> None:
    with held_by_a_jvm(job), kept(job, 0.05, 0.1, 600) as process:
        run_of(process, job.parent / "out" / "_checkpoint").kill()
        [said] = lines(process, 1)
        assert re.fullmatch(r"keep-running: signal 9 has ended it after \d+ s; next start in 0.05 s", said)
        again = run_of(process, job.parent / "out" / "_checkpoint")
        os.kill(process.pid, signal.SIGKILL)  # the run ends with the process that keeps it
        assert process.wait() == -signal.SIGKILL
        again.wait(timeout=30)


def test_it_resets_no_rule(job: Path) -> None:
    answer = spark_pace("run", job, "--keep-running", "--reset-rule", "high")
    assert (answer.returncode, message_of(answer.stderr)) == (
        2,
        "--keep-running — must come without --reset-rule; got --reset-rule high. "
        "Reset the rule by a run of its own, once.\n",
    )


def test_a_class_of_errors_says_whether_they_may_pass() -> None:
    kinds = {
        kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, SparkPaceError)
    }
    passing = {"SparkPaceError", "SetupError", "FullStoreError"}
    assert {kind.__name__ for kind in kinds if kind.may_pass} == passing
    assert may_pass(SetupError("no broker")) and may_pass(OSError("no store")) and may_pass(RuntimeError())
    assert not may_pass(EventError("bad")) and not may_pass(UnfitError("no Java"))
    assert not may_pass(ConfigError.of("a", "must", "b", "do"))
    refused = StateError("the table cannot be read")
    assert not may_pass(refused)
    refused.__cause__ = OSError("stale file handle")
    assert may_pass(refused)
