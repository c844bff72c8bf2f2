"""A clock set back by an hour, under a running job and between two starts: no match or count changes."""

from __future__ import annotations

import shutil
import struct
import subprocess
import sys
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from spark_pace.job import run_job
from spark_pace.job_file import read_job
from tests.spark.jobs import ROOT, in_core, make_job, matches, random_events, table, write_files
from tests.support.commands import environment

pytestmark = [pytest.mark.integration, pytest.mark.long]

FILES = 6
HOUR = 3600


@pytest.mark.usefixtures("spark")
def test_a_clock_set_back_changes_nothing(tmp_path: Path) -> None:
    """Two batches by the true clock; the next start finds it set back, and it is set back while that runs."""
    job_file = make_job(tmp_path)
    events = random_events(50)
    write_files(tmp_path, events[:68], 2)
    run_job(replace(read_job(job_file), finish=False))
    write_files(tmp_path, events[68:], FILES - 2, first=2)
    clock = MovedClock(tmp_path)
    clock.move(-HOUR)
    with clock.started(job_file) as process:
        wait_for(process, "batch 2:")
        clock.move(-2 * HOUR)
        _, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    spec = read_job(job_file)
    assert matches(spec) == in_core(spec).matches.to_pylist()
    metrics = table(spec, "metrics").sort_by("batch_id")
    assert metrics["events"].to_pylist() == [34, 34, *[33] * 4]
    written = metrics["written_at"].to_pylist()
    assert written[2] < written[1] - timedelta(minutes=50), "the clock was not set back"
    assert written[5] < written[2] - timedelta(minutes=50), "the clock was not set back"


class MovedClock:
    """A clock for the processes started here, JVM and workers included; it can be set while they run."""

    def __init__(self, folder: Path) -> None:
        """Nothing is moved yet."""
        self._moved_by = folder / "moved_by"
        self._library = folder / "clock.so"
        self._moved_by.write_bytes(struct.pack("q", 0))
        assert shutil.which("cc"), (
            "a C compiler — must be on the PATH as cc; got none. "
            "Install one: it makes the clock of this test."
        )
        source = ROOT / "tests" / "support" / "clock.c"
        compile_it = ["cc", "-shared", "-fPIC", "-O1", "-o", self._library, source, "-ldl"]
        subprocess.run(compile_it, check=True)

    def move(self, seconds: int) -> None:
        """Set the clock to so many seconds after the true time."""
        with self._moved_by.open("r+b") as file:  # in place: the processes share its page
            file.write(struct.pack("q", seconds))

    def started(self, job_file: Path) -> subprocess.Popen[str]:
        """The job, whose processes all have this clock."""
        moved = {"LD_PRELOAD": str(self._library), "CLOCK_MOVED_BY": str(self._moved_by)}
        command = [sys.executable, str(ROOT / "jobs" / "run.py"), str(job_file)]
        return subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment() | moved
        )


def wait_for(process: subprocess.Popen[str], text: str) -> None:
    assert process.stdout is not None
    assert any(f"Z {text}" in line for line in process.stdout), f"no line with {text}"
