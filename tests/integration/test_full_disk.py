"""A full disk for the checkpoint or the tables ends the job in one line; with room again, it goes on."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from spark_pace.job_file import read_job
from spark_pace.spark.checkpoint import files
from spark_pace.spark.checkpoint.chunks import ChunkFiles
from tests.spark.jobs import (
    ROOT,
    RULES,
    WAITING,
    environment,
    in_core,
    make_job,
    matches,
    random_events,
    table,
    waiting_events,
    write_files,
)

pytestmark = pytest.mark.integration

FILES = 8
# KiB: enough for some batches, not for all; on the last disk there is nothing but files of what waits
ROOM = {"checkpoint": 300, "out": 100, "checkpoint/waiting": 1400}

# Anybody can mount a small file system in a name space of his own, which lives as long as this script.
SCRIPT = """
mount -t tmpfs -o size=$2k tmpfs "$1" || exit 97
"$3" jobs/run.py "$4"
echo "ended with $?" >&2
cp -a "$1" "$1.full"
mount -o remount,size=16m "$1" || exit 98
"$3" jobs/run.py "$4"
code=$?
cp -a "$1" "$1.kept"
exit $code
"""


@pytest.mark.parametrize("part", ROOM)
def test_a_full_disk_ends_the_job_in_one_line_and_room_lets_it_go_on(tmp_path: Path, part: str) -> None:
    waiting = part == "checkpoint/waiting"
    job_file = make_job(tmp_path, rules=WAITING if waiting else RULES)
    write_files(tmp_path, waiting_events() if waiting else random_events(40, 4000), FILES)
    small = tmp_path / part
    small.mkdir(parents=True)
    space = ["unshare", "--user", "--map-root-user", "--mount"]
    command = [*space, "sh", "-c", SCRIPT, "sh", small, str(ROOM[part]), sys.executable, job_file]
    answer = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=500, env=environment()
    )
    assert answer.returncode == 0, answer.stderr
    said = answer.stderr.split("ended with 1\n")
    assert len(said) == 2, answer.stderr
    assert [line for line in said[0].splitlines() if " — " in line] == [
        "the disk — must have room for the tables, the checkpoint and Spark's own files; "
        "got a full one. Make room and start the job again."
    ]
    assert "Traceback" not in answer.stderr
    assert "\tat " not in answer.stderr
    full = small.with_name(f"{small.name}.full")
    if waiting:
        there = files.names(full)
        assert there
        ChunkFiles(full).require_whole(there)
    small.rmdir()
    small.with_name(f"{small.name}.kept").rename(small)
    spec = read_job(job_file)
    assert matches(spec) == in_core(spec).matches.to_pylist()
    assert table(spec, "metrics").sort_by("batch_id")["batch_id"].to_pylist() == list(range(FILES))
