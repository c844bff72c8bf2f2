"""Jobs stopped or killed midway: started again, they end as if nothing had happened."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from spark_pace.errors import SetupError
from spark_pace.job_file import read_job
from spark_pace.spark.checkpoint.checkpoint import Checkpoint
from spark_pace.spark.checkpoint.lock import checkpoint_lock
from tests.spark.jobs import ROOT, in_core, make_job, matches, random_events, table, write_files
from tests.support.commands import SPARK_PACE, called, environment, message_of, spark_pace

pytestmark = pytest.mark.integration

FILES = 16  # two and more for each run but the last
LONG_S = 300  # a start takes ten seconds, on a busy machine a hundred

Process = subprocess.Popen[str]


@contextmanager
def running(job: Path) -> Iterator[Process]:
    command = [sys.executable, str(ROOT / "jobs" / "run.py"), str(job)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes, env=environment(), start_new_session=True) as process:
        try:
            yield process
        finally:
            process.kill()


@contextmanager
def in_the_middle(job: Path) -> Iterator[Process]:
    """A run that has written two batches, and so has committed one; the job is not done when it has ended."""
    with running(job) as process:
        assert process.stdout is not None
        for _ in range(2):
            next(line for line in process.stdout if "Z batch " in line)
        yield process
        process.wait(LONG_S)
    assert table(read_job(job), "metrics").num_rows < FILES


def jvm_of(process: Process) -> psutil.Process:
    return next(child for child in psutil.Process(process.pid).children() if child.name() == "java")


@pytest.mark.long
def test_a_job_interrupted_again_and_again_ends_as_an_unbroken_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a chain: what one run leaves behind is what the next one begins with."""
    job = make_job(tmp_path)
    events = random_events(20, 10 * FILES)
    write_files(tmp_path, events, FILES)
    a_signal_to_all_its_processes_stops_it(job)
    a_second_process_is_refused_and_the_end_of_its_jvm_is_told_in_one_line(job)
    temporary = tmp_path / "temporary files"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    jvm = a_jvm_that_outlives_it_keeps_others_out(job, temporary)
    answer = called(SPARK_PACE, "run", job, env=environment())
    assert (answer.returncode, answer.stderr) == (0, "")
    *batches, end = message_of(answer.stdout).splitlines()  # nothing of Spark's start is there
    assert [line for line in batches if not re.match(r"batch \d+: 10 events, ", line)] == []
    assert re.match(rf"finished: {10 * len(batches)} events in ", end)
    assert 0 < len(batches) < FILES  # the rest only
    assert not jvm.is_running()
    assert list(temporary.iterdir()) == [temporary / "spark-pace-sessions"]
    spec = read_job(job)
    assert matches(spec) == in_core(spec).matches.to_pylist()
    metrics = table(spec, "metrics").sort_by("batch_id")
    assert metrics["batch_id"].to_pylist() == list(range(FILES))
    assert metrics["events"].to_pylist() == [10] * FILES


def a_signal_to_all_its_processes_stops_it(job: Path) -> None:
    with in_the_middle(job) as process:
        os.killpg(process.pid, signal.SIGTERM)
        _, errors = process.communicate(timeout=LONG_S)
        assert (process.returncode, errors) == (143, "")


def a_second_process_is_refused_and_the_end_of_its_jvm_is_told_in_one_line(job: Path) -> None:
    with in_the_middle(job) as first:
        first.send_signal(signal.SIGSTOP)  # or it may be done before the second has begun
        second = spark_pace("run", job)
        assert second.returncode == 1
        assert (
            f"must be used by one job at a time; got a second while process {first.pid} runs" in second.stderr
        )
        assert "Traceback" not in second.stderr
        jvm_of(first).kill()
        first.send_signal(signal.SIGCONT)
        _, errors = first.communicate(timeout=LONG_S)
        assert first.returncode == 1
        assert "Traceback" not in errors
        assert message_of(errors.splitlines()[-1]).startswith(
            "Spark's JVM — must run as long as the job; got its end"
        )


def a_jvm_that_outlives_it_keeps_others_out(job: Path, temporary: Path) -> psutil.Process:
    """Until it finds that nobody is there any more. The job leaves temporary files behind, and alone does."""
    checkpoint = Checkpoint(Path(read_job(job).checkpoint_path))
    with in_the_middle(job) as process:
        jvm = jvm_of(process)
        jvm.suspend()
        process.kill()
        process.wait()
        try:
            (left,) = temporary.iterdir()
            assert [path.name for path in left.iterdir()] == ["tmp"]
            assert any(path.name.startswith("blockmgr-") for path in (left / "tmp").iterdir())
            (temporary / "spark-pace-sessions").mkdir()
            message = f"got a second while the JVM of a job that was killed, process {jvm.pid}, runs"
            with pytest.raises(SetupError, match=message), checkpoint_lock(checkpoint, 0.5):
                pass
        finally:
            jvm.resume()
    return jvm
