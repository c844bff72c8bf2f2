"""Jobs stopped or killed midway: started again, they end as if nothing had happened."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from spark_pace.errors import SetupError
from spark_pace.job_file import JobSpec, read_job
from spark_pace.spark.checkpoint.checkpoint import Checkpoint
from spark_pace.spark.checkpoint.lock import checkpoint_lock
from tests.spark.jobs import ROOT, environment, in_core, make_job, matches, random_events, table, write_files

pytestmark = pytest.mark.integration

FILES = 6
LONG_S = 300  # a start takes ten seconds, on a busy machine a hundred


@pytest.fixture
def job_file(tmp_path: Path) -> Path:
    path = make_job(tmp_path)
    write_files(tmp_path, random_events(20), FILES)
    return path


@contextmanager
def running(job: Path) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, str(ROOT / "jobs" / "run.py"), str(job)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes, env=environment(), start_new_session=True) as process:
        try:
            yield process
        finally:
            process.kill()


def signalled_in_the_middle(job: Path, number: signal.Signals, send: Callable[[int, int], None]) -> int:
    """Run a job, signal its process or its group after the second batch, and return its exit code."""
    with running(job) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("batch 1:"):
                send(process.pid, number)
                break
        if number == signal.SIGKILL:
            return process.wait(LONG_S)  # its JVM lives on for a moment, and tells of the end of its driver
        _, errors = process.communicate(timeout=LONG_S)
        assert errors == ""
        return process.returncode


def finish(job: Path) -> None:
    with running(job) as process:
        output, errors = process.communicate(timeout=LONG_S)
        assert process.returncode == 0, errors
        assert "200 events" not in output  # the rest only


def assert_complete(spec: JobSpec) -> None:
    assert matches(spec) == in_core(spec).matches.to_pylist()
    metrics = table(spec, "metrics").sort_by("batch_id")
    assert metrics["batch_id"].to_pylist() == list(range(FILES))
    assert metrics["events"].to_pylist() == [34] * 5 + [30]


@pytest.mark.parametrize(
    ("number", "send", "code"),
    [
        (signal.SIGINT, os.kill, 130),
        (signal.SIGTERM, os.kill, 143),
        (signal.SIGTERM, os.killpg, 143),
    ],
)
def test_a_job_stopped_in_the_middle_ends_as_an_unbroken_one(
    job_file: Path, number: signal.Signals, send: Callable[[int, int], None], code: int
) -> None:
    assert signalled_in_the_middle(job_file, number, send) == code
    spec = read_job(job_file)
    assert table(spec, "metrics").num_rows < FILES
    finish(job_file)
    assert_complete(spec)


def test_a_killed_job_ends_as_an_unbroken_one_and_what_it_left_is_removed(
    job_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "temporary files"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.delenv("SPARK_HOME", raising=False)
    assert signalled_in_the_middle(job_file, signal.SIGKILL, os.kill) == -signal.SIGKILL
    spec = read_job(job_file)
    assert table(spec, "metrics").num_rows < FILES
    (left,) = temporary.iterdir()
    assert {path.name for path in left.iterdir()} == {"home", "tmp"}
    assert any(path.name.startswith("blockmgr-") for path in (left / "tmp").iterdir())
    others = temporary / "spark-pace-sessions"
    others.mkdir()
    finish(job_file)
    assert list(temporary.iterdir()) == [others]
    assert_complete(spec)


def test_a_second_process_on_a_checkpoint_is_refused(job_file: Path) -> None:
    with running(job_file) as first:
        assert first.stdout is not None
        next(line for line in first.stdout if line.startswith("batch 0:"))
        first.send_signal(signal.SIGSTOP)  # or it may be done before the second has begun
        with running(job_file) as second:
            _, errors = second.communicate(timeout=LONG_S)
        first.send_signal(signal.SIGCONT)
        assert second.returncode == 1
        assert f"must be used by one job at a time; got a second while process {first.pid} runs" in errors
        assert "Traceback" not in errors


def after_two_batches(process: subprocess.Popen[str]) -> psutil.Process:
    """The JVM of a job that has written two batches, and so has committed one."""
    assert process.stdout is not None
    next(line for line in process.stdout if line.startswith("batch 1:"))
    return next(child for child in psutil.Process(process.pid).children() if child.name() == "java")


def test_a_job_whose_jvm_is_killed_says_so_in_one_line_and_can_go_on(job_file: Path) -> None:
    with running(job_file) as process:
        after_two_batches(process).kill()
        _, errors = process.communicate(timeout=LONG_S)
    assert process.returncode == 1
    assert "Traceback" not in errors
    assert errors.splitlines()[-1].startswith("Spark's JVM — must run as long as the job; got its end")
    finish(job_file)
    assert_complete(read_job(job_file))


def test_a_checkpoint_is_not_taken_from_a_jvm_that_outlived_its_job(job_file: Path) -> None:
    checkpoint = Checkpoint(Path(read_job(job_file).checkpoint_path))
    with running(job_file) as process:
        jvm = after_two_batches(process)
        jvm.suspend()
        process.kill()
        process.wait()
        try:
            message = f"got the JVM of a job that was killed, process {jvm.pid}, still running"
            with pytest.raises(SetupError, match=message), checkpoint_lock(checkpoint, 0.5):
                pass
        finally:
            jvm.resume()  # it finds that nobody is there any more
    finish(job_file)
    assert_complete(read_job(job_file))
    assert not jvm.is_running()
