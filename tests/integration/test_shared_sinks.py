"""Two jobs with one sink and a checkpoint each: one of them writes, the other ends in one line."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spark_pace.errors import SparkPaceError, StateError
from spark_pace.job import run_job
from spark_pace.job_file import read_job
from spark_pace.spark.stages.merger import MergerHost
from tests.spark.jobs import ROOT, in_core, make_job, matches, random_events, table, write_files
from tests.support.commands import environment

pytestmark = pytest.mark.integration

FILES = 3
LONG_S = 300
REFUSED = (
    "out — must be written by this checkpoint alone; got the mark of another one, _owner. Go on with that "
    "checkpoint, choose another sink, or remove the tables and the checkpoint together."
)


def jobs_on_one_sink(folder: Path, sink: str) -> list[Path]:
    first = make_job(folder)
    text = first.read_text().replace("path: out", f"path: {sink}")
    first.write_text(text)
    second = folder / "other.yaml"
    second.write_text(text.replace("checkpoint: checkpoint", "checkpoint: other"))
    return [first, second]


def run_at_once(jobs: list[Path], gate: Path) -> list[tuple[int, str]]:
    """Run two jobs that begin to write at the same moment, the first one here: exit codes and errors."""
    command = [sys.executable, "-m", "tests.support.first_batch", jobs[1], gate]
    pipes: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes, cwd=ROOT, env=environment()) as other:

        def await_other() -> None:
            while not gate.with_name(f"{gate.name}.{other.pid}").exists():
                assert other.poll() is None, other.communicate()
                threading.Event().wait(0.01)
            gate.touch()

        try:
            here = run_here(jobs[0], await_other)
            told = other.communicate(timeout=LONG_S)[1]
        finally:
            other.kill()
    return [here, (other.returncode, told)]


def run_here(job: Path, before_writing: Callable[[], None]) -> tuple[int, str]:
    with pytest.MonkeyPatch.context() as patched:
        write = MergerHost._write

        def waiting(host: MergerHost, *batch: Any) -> Any:
            before_writing()
            return write(host, *batch)

        patched.setattr(MergerHost, "_write", waiting)
        try:
            run_job(read_job(job))
        except SparkPaceError as error:
            return 1, str(error)
    return 0, ""


@pytest.mark.long
@pytest.mark.usefixtures("spark")
def test_of_two_jobs_that_begin_at_the_same_moment_one_writes(tmp_path: Path) -> None:
    """Other jobs can follow in this process."""
    sink = "out"
    jobs = jobs_on_one_sink(tmp_path, sink)
    write_files(tmp_path, random_events(21), FILES)
    ends = run_at_once(jobs, tmp_path / "gate")
    assert sorted(code for code, _ in ends) == [0, 1], ends
    winner, loser = sorted(jobs, key=lambda job: ends[jobs.index(job)][0])
    (told,) = ends[jobs.index(loser)][1].splitlines()
    assert told.endswith(REFUSED)
    assert ends[jobs.index(winner)][1] == ""
    spec = read_job(winner)
    assert matches(spec) == in_core(spec).matches.to_pylist() != []
    assert sorted(table(spec, "metrics")["batch_id"].to_pylist()) == list(range(FILES))
    with pytest.raises(StateError, match="must be written by this checkpoint alone"):
        run_job(read_job(loser))
    loser.write_text(loser.read_text().replace(f"path: {sink}", "path: own"))
    run_job(read_job(loser))
    assert matches(read_job(loser)) == matches(spec)
