"""A job on disks that are full, one after the other: ``python -m tests.support.full_disks JOB``.

It runs in a name space of mounts of its own, in which anybody can mount small file systems. The runs of the
job share a session of Spark. There is always room for something; on the first disk, for some batches.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import click

from jobs import run
from spark_pace.spark.session import build_session

ROOMY_KIB = 16384


def mount(disk: Path, room_kib: int, *options: str) -> None:
    """Mount a file system in memory, or give it another size."""
    size = ",".join([*options, f"size={room_kib}k"])
    subprocess.run(["mount", "-t", "tmpfs", "-o", size, "tmpfs", str(disk)], check=True)


def resize(disk: Path, room_kib: int) -> None:
    mount(disk, room_kib, "remount")


def used_kib(disk: Path) -> int:
    return shutil.disk_usage(disk).used // 1024


def run_once(job: Path) -> None:
    print(f"ended with {run.main([str(job)])}", file=sys.stderr, flush=True)


@click.command()
@click.argument("job", type=click.Path(path_type=Path))
def main(job: Path) -> None:
    """Run the JOB on full disks; copies what it leaves on the first into `full`, its tables into `kept`."""
    folder = job.parent
    checkpoint, waiting, out = folder / "checkpoint", folder / "checkpoint" / "waiting", folder / "out"
    for disk, room_kib in ((checkpoint, ROOMY_KIB), (waiting, 1400), (out, ROOMY_KIB)):
        disk.mkdir()
        mount(disk, room_kib)
    session = build_session("disks", {"spark.master": "local[2]"}, quick=True)
    run_once(job)
    shutil.copytree(waiting, folder / "full")
    resize(waiting, ROOMY_KIB)
    resize(checkpoint, used_kib(checkpoint) + 60)
    run_once(job)
    resize(checkpoint, ROOMY_KIB)
    resize(out, used_kib(out) + 8)
    run_once(job)
    resize(out, ROOMY_KIB)
    run_once(job)
    shutil.copytree(out, folder / "kept")
    session.stop()


if __name__ == "__main__":
    main()
