"""Checkpoints of earlier releases, kept in `tests/fixtures/checkpoints`, one for each version of the format.

``python -m tests.support.checkpoints`` makes a new one: its job has read two files, and every rule has open
selections.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from spark_pace.job import run_job
from spark_pace.job_file import read_job
from spark_pace.spark.checkpoint.layout import LAYOUT_VERSION
from tests.spark.jobs import make_job, random_events, write_files

FIXTURES = Path(__file__).parents[1] / "fixtures" / "checkpoints"
FILES = 4


def write_input(folder: Path, first: int, last: int) -> None:
    """Some of the files that the job of the kept checkpoints reads."""
    events = random_events(20, 80)
    for number in range(first, last):
        write_files(folder, events[20 * number : 20 * (number + 1)], 1, first=number)


def keep_checkpoint() -> Path:
    """Run the job over the first half of its files, and keep what that leaves."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = make_job(folder, finish=False, slots=2, buckets=2)
        write_input(folder, 0, FILES // 2)
        run_job(read_job(path))
        kept = FIXTURES / f"version_{LAYOUT_VERSION}"
        shutil.rmtree(kept, ignore_errors=True)
        shutil.copytree(folder, kept, ignore=shutil.ignore_patterns("*.crc", ".lock*"))
    return kept


if __name__ == "__main__":
    print(keep_checkpoint())
