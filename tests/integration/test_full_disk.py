"""A full disk for the checkpoint or the tables ends the job in one line; with room again, it goes on."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from spark_pace.io.files import files
from spark_pace.job_file import read_job
from spark_pace.spark.checkpoint.checkpoint import ChunkFiles
from tests.spark.jobs import ROOT, WAITING, in_core, make_job, matches, table, waiting_events, write_files
from tests.support.commands import environment, message_of

pytestmark = pytest.mark.integration

FILES = 8
TOLD = (
    " — must have room for the tables, the checkpoint and Spark's own files; "
    "got a full one. Make room and start the job again."
)


@pytest.mark.long
def test_a_full_disk_ends_the_job_in_one_line_and_room_lets_it_go_on(tmp_path: Path) -> None:
    """That of what waits, then that of the rest of the checkpoint, then that of the tables."""
    job_file = make_job(tmp_path, rules=WAITING)
    write_files(tmp_path, waiting_events(), FILES)
    space = ["unshare", "--user", "--map-root-user", "--mount"]
    command = [*space, sys.executable, "-m", "tests.support.full_disks", job_file]
    answer = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=500, env=environment()
    )
    assert answer.returncode == 0, answer.stderr
    *full, rest = answer.stderr.split("ended with 1\n")
    assert rest.endswith("ended with 0\n"), answer.stderr
    waiting, checkpoint, tables = (
        [message_of(line).rstrip() for line in said.splitlines() if " — " in line] for said in full
    )
    assert waiting == [f"the disk of {tmp_path}/checkpoint/waiting{TOLD}"]
    assert len(checkpoint) == 1
    assert re.fullmatch(rf"the disk of (the checkpoint )?{tmp_path}/checkpoint.*{TOLD}", checkpoint[0])
    assert [re.sub(r"/out/\w+ ", "/out/TABLE ", line) for line in tables] == [
        f"the disk of {tmp_path}/out/TABLE{TOLD}"
    ]
    assert "Traceback" not in answer.stderr
    assert "\tat " not in answer.stderr
    there = files.names(tmp_path / "full")
    assert there
    ChunkFiles(tmp_path / "full").require_whole(there)
    (tmp_path / "out").rmdir()
    (tmp_path / "kept").rename(tmp_path / "out")
    spec = read_job(job_file)
    assert matches(spec) == in_core(spec).matches.to_pylist()
    assert table(spec, "metrics").sort_by("batch_id")["batch_id"].to_pylist() == list(range(FILES))
