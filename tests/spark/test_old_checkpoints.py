"""A checkpoint that an earlier build made goes on if its format version is today's; another is refused."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from spark_pace.job import run_job
from spark_pace.job_file import read_job
from spark_pace.spark.checkpoint.file_access import read_json, write_json
from spark_pace.spark.checkpoint.layout import FORMAT_VERSION
from tests.spark.jobs import in_core, matches, table
from tests.support.checkpoints import FILES, KEPT, write_input

pytestmark = pytest.mark.spark


@pytest.fixture
def job(tmp_path: Path) -> Path:
    """The job file of the kept checkpoint, copied with all that belongs to it."""
    shutil.copytree(KEPT, tmp_path, dirs_exist_ok=True)
    return tmp_path / "job.yaml"


def files_of(folder: Path) -> dict[str, bytes]:
    """All files below a folder but the locks that every start makes."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.startswith(".lock")
    }


@pytest.mark.usefixtures("spark")
def test_a_kept_checkpoint_goes_on_as_if_it_had_never_stopped(tmp_path: Path, job: Path) -> None:
    spec = replace(read_job(job), finish=True)
    early = matches(spec)
    write_input(tmp_path, FILES // 2, FILES)
    assert run_job(spec).batches == FILES - FILES // 2
    assert matches(spec) == in_core(spec).matches.to_pylist()
    assert table(spec, "metrics")["records"].to_pylist().count(20) == FILES
    assert {row["rule"] for row in early} == {"pairs", "keyed", "sums"}


@pytest.mark.parametrize("version", [1, FORMAT_VERSION - 1])
def test_a_checkpoint_of_an_older_version_is_refused_in_one_line_and_left_as_it_is(
    tmp_path: Path, job: Path, version: int
) -> None:
    """The first builds wrote no checksums, and no file of what the source is."""
    layout = tmp_path / "checkpoint" / "layout.json"
    older = (read_json(layout) or {}) | {"version": version}
    if version == 1:
        layout.write_text(json.dumps(older))
        (tmp_path / "checkpoint" / "source.json").unlink()
    else:
        write_json(layout, older)
    before = files_of(tmp_path)
    command = [sys.executable, "-c", "from spark_pace.cli import main; main()", "run", str(job)]
    answer = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[2]
    )
    assert answer.stderr == (
        f"{layout} — must have format version {FORMAT_VERSION}; got {version}. "
        "Go on with the release that made it, or start a new checkpoint with a sink of its own.\n"
    )
    assert (answer.returncode, answer.stdout) == (1, "")
    assert files_of(tmp_path) == before
