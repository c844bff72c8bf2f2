"""Processes of a job that are killed: the job goes on or ends in one line that says which ended."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest

from spark_pace.job import run_job
from spark_pace.job_file import read_job
from tests.spark.jobs import ROOT, in_core, make_job, matches, random_events, write_files
from tests.support.commands import RUNS, environment, message_of

pytestmark = pytest.mark.integration

LONG_S = 300
NOT_STARTED = "Spark — must start; got: Java's end "
WORKERS = (
    "Spark's Python workers — must run as long as the job; got the end of one (killed, or out of memory). If "
    "it lacked memory, use fewer cores; start the job again: it goes on where it stopped."
)

KILLS_ITS_JVM = """
import sys

import psutil

from jobs import run
from spark_pace.spark import queries, start

set_limits = queries.set_limits


def set_in_a_killed_jvm(*given):
    for child in psutil.Process().children():
        child.kill()
        child.wait()
    set_limits(*given)


queries.set_limits = set_in_a_killed_jvm
start._FIRST_CAPS["files"] = 1
sys.exit(run.main(sys.argv[1:]))
"""


@contextmanager
def running(command: list[object]) -> Iterator[subprocess.Popen[str]]:
    words = [str(word) for word in command]
    with subprocess.Popen(
        words, cwd=ROOT, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def below(process: subprocess.Popen[str], word: str) -> list[psutil.Process]:
    """The processes that a process has started, and those that these have, with a word in their command."""
    found = []
    with suppress(psutil.NoSuchProcess):
        for child in psutil.Process(process.pid).children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                found += [child] if word in " ".join(child.cmdline()) else []
    return found


@pytest.mark.parametrize(
    ("command", "main", "after_s"),
    [
        ("spark-pace", "org.apache.spark.launcher.Main", 0),
        pytest.param("jobs/run.py", "-Xmx2g", 0, marks=pytest.mark.long),
        pytest.param("spark-pace", "-Xmx2g", 0.3, marks=pytest.mark.long),
    ],
)
def test_a_jvm_that_is_killed_while_it_starts_is_told_in_one_line(
    tmp_path: Path, command: str, main: str, after_s: float
) -> None:
    job = make_job(tmp_path)
    with running([*RUNS[command], job]) as process:
        while not below(process, main):
            assert process.poll() is None, process.communicate()
        threading.Event().wait(after_s)
        for java in below(process, "org.apache.spark"):
            java.kill()
        output, errors = process.communicate(timeout=LONG_S)
    assert (process.returncode, output) == (1, "")
    (told,) = message_of(errors).splitlines()
    assert told.startswith(NOT_STARTED)


@pytest.mark.long
def test_a_jvm_that_is_killed_while_it_is_told_how_much_to_read_is_told_in_one_line(tmp_path: Path) -> None:
    job = make_job(tmp_path)
    job.write_text(job.read_text().replace(", max_files_per_trigger: 1", ""))
    write_files(tmp_path, random_events(18), 4)
    with running([sys.executable, "-c", KILLS_ITS_JVM, job]) as process:
        output, errors = process.communicate(timeout=LONG_S)
    assert process.returncode == 1
    assert "Z batch 0: " in output
    (told,) = message_of(errors).splitlines()
    assert told.startswith("Spark's JVM — must run as long as the job; got its end")


@pytest.mark.long
@pytest.mark.usefixtures("spark")
def test_the_end_of_all_python_workers_is_told_in_one_line(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    job = make_job(tmp_path)
    write_files(tmp_path, random_events(17, 800), 8)
    with running([*RUNS["jobs/run.py"], job]) as process:
        assert process.stdout is not None
        assert "Z batch " in process.stdout.readline(), process.communicate()
        threading.Event().wait(0.3)  # a batch has begun by then
        workers = [child for child in below(process, "") if child.name() != "java"]
        for worker in workers:
            with suppress(psutil.NoSuchProcess):
                worker.kill()
        told = message_of(process.communicate(timeout=LONG_S)[1]).splitlines()
    assert workers
    assert told != []
    assert [line for line in told if not line.startswith(WORKERS)] == []
    spec = read_job(job)
    capfd.readouterr()
    run_job(spec)
    assert capfd.readouterr().err == ""
    assert matches(spec) == in_core(spec).matches.to_pylist() != []
