"""The kept checkpoint of each format version that is read, in `tests/fixtures/checkpoints`.

``python -m tests.support.checkpoints`` makes that of today's version: its job has read two files, and every
rule has open selections.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import click

from spark_pace.job import run_job
from spark_pace.job_file import read_job
from spark_pace.spark.checkpoint.layout import FORMAT_VERSION
from tests.spark.jobs import make_job, random_events, write_files

KEPT = Path(__file__).parents[1] / "fixtures" / "checkpoints" / f"version_{FORMAT_VERSION}"
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
        shutil.rmtree(KEPT, ignore_errors=True)
        shutil.copytree(folder, KEPT, ignore=shutil.ignore_patterns("*.crc", ".lock*"))
    return KEPT


@click.command()
def main() -> None:
    """Keep a checkpoint of today's format version."""
    print(keep_checkpoint())


if __name__ == "__main__":
    main()
