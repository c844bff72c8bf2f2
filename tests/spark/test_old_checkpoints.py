"""Checkpoints of earlier releases: those of a format that is still read go on, others are refused."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from spark_pace.job import run_job
from spark_pace.job_file import read_job
from spark_pace.spark.checkpoint.layout import READ_VERSIONS
from tests.spark.jobs import in_core, matches, table
from tests.support.checkpoints import FILES, FIXTURES, write_input

pytestmark = pytest.mark.spark


def unpacked(version: int, folder: Path) -> Path:
    """The job file of a kept checkpoint, copied with all that belongs to it."""
    shutil.copytree(FIXTURES / f"version_{version}", folder, dirs_exist_ok=True)
    return folder / "job.yaml"


def files_of(folder: Path) -> dict[str, bytes]:
    """All files below a folder but the locks that every start makes."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.startswith(".lock")
    }


@pytest.mark.parametrize("version", READ_VERSIONS)
@pytest.mark.usefixtures("spark")
def test_a_kept_checkpoint_goes_on_as_if_it_had_never_stopped(tmp_path: Path, version: int) -> None:
    spec = replace(read_job(unpacked(version, tmp_path)), finish=True)
    early = matches(spec)
    write_input(tmp_path, FILES // 2, FILES)
    assert run_job(spec).batches == FILES - FILES // 2
    assert matches(spec) == in_core(spec).matches.to_pylist()
    assert table(spec, "metrics")["records"].to_pylist().count(20) == FILES
    assert {row["rule"] for row in early} == {"pairs", "keyed", "sums"}


def test_a_checkpoint_of_the_first_format_is_refused_in_one_line_and_left_as_it_is(tmp_path: Path) -> None:
    job = unpacked(1, tmp_path)
    before = files_of(tmp_path)
    assert len(before) > 10
    command = [sys.executable, "-c", "from spark_pace.cli import main; main()", "run", str(job)]
    answer = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[2]
    )
    assert answer.stderr == (
        f"{tmp_path}/checkpoint/layout.json — must have format version 2 or 3 or 4 or 5; got 1. "
        "Go on with the release that made it, or start a new checkpoint with a sink of its own.\n"
    )
    assert (answer.returncode, answer.stdout) == (1, "")
    assert files_of(tmp_path) == before
