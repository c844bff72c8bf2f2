"""Checkpoints that lost or spoilt a part: refused in one line that names it, never gone on with."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from deltalake import DeltaTable

from spark_pace.errors import SparkPaceError
from spark_pace.job import run_job
from spark_pace.job_file import JobSpec
from tests.spark.jobs import in_core, job, matches, random_events, write_files

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]


def cut(path: Path) -> None:
    """As a file system leaves a file that it had no time to write."""
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def state_files(checkpoint: Path) -> list[Path]:
    return sorted(path for path in (checkpoint / "state").rglob("*") if path.is_file() and path.suffix in (".changelog", ".zip"))


def without_tables(checkpoint: Path) -> None:
    shutil.rmtree(checkpoint.parent / "out")


def without_the_last_batch(checkpoint: Path) -> None:
    """As an older copy of the checkpoint would be."""
    for path in ("offsets/2", "commits/2"):
        (checkpoint / path).unlink()


def spoil_state(checkpoint: Path) -> None:
    for path in state_files(checkpoint):
        cut(path)


def versions(spec: JobSpec) -> dict[str, int]:
    """Of the tables: each append makes a new one, and an empty table has version 0."""
    paths = [f"{spec.sink_path}/{name}" for name in ("matches", "late", "quarantine", "metrics")]
    return {path: DeltaTable(path).version() if DeltaTable.is_deltatable(path) else 0 for path in paths}


DAMAGES: dict[str, tuple[Callable[[Path], None], str]] = {
    "layout cut": (lambda c: cut(c / "layout.json"), r"layout\.json — must be as this program wrote it; got damaged text"),
    "numbers cut": (lambda c: cut(c / "sequence" / "3.json"), r"sequence/3\.json — must be as this program wrote it; got damaged text"),
    "numbers spoilt": (lambda c: (c / "sequence" / "3.json").write_text("{}"), r"sequence/3\.json — must hold out_seq and frontier_us; got \{\}"),
    "numbers missing": (lambda c: (c / "sequence" / "3.json").unlink(), r"sequence — must hold the numbers that batch 3 goes on from; got no 3\.json"),
    "manifest spoilt": (lambda c: (c / "manifest.jsonl").write_text("x\ny\nz\n"), r"manifest\.jsonl:1 — must be the name of a file, in quotes; got b'x'"),
    "manifest lost": (lambda c: (c / "manifest.jsonl").unlink(), r"manifest\.jsonl — must know the 3 files that were read; got 0"),
    "last offsets missing": (lambda c: (c / "offsets" / "2").unlink(), r"must know the offsets of each batch .* got offsets up to batch 1, done up to 2"),
    "other offsets missing": (lambda c: (c / "offsets" / "1").unlink(), r"offsets — must have a file for each batch; got none for batch 1"),
    "offsets cut": (lambda c: cut(c / "offsets" / "2"), r"offsets/2 — must be as Spark wrote it; got damaged text"),
    "commit cut": (lambda c: cut(c / "commits" / "2"), r"commits/2 — must be as Spark wrote it; got another content"),
    "older than its tables": (without_the_last_batch, r"must be as old as its tables; got batch 1 here, batch 2 there"),
    "without its tables": (without_tables, r"must be as old as its tables; got batch 2 here, batch -1 there"),
    "without its matches": (lambda c: shutil.rmtree(c.parent / "out" / "matches"), r"checkpoint — must have all its tables; got none named matches"),
    "state cut": (spoil_state, r"state/0/\d/\d\.changelog — must be as Spark wrote it; got another content"),
    "state missing": (lambda c: shutil.rmtree(c / "state"), r"state — must be as Spark wrote it; got"),
}


@pytest.fixture
def half_done(tmp_path: Path) -> JobSpec:
    """A job with three batches done and one to do."""
    spec = job(tmp_path, finish=False)
    events = random_events(30)
    write_files(tmp_path, events[:150], 3)
    run_job(spec)
    write_files(tmp_path, events[150:], 1, first=3)
    return spec


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_checkpoint_is_refused_in_one_line(half_done: JobSpec, name: str) -> None:
    damage, message = DAMAGES[name]
    damage(Path(half_done.checkpoint_path))
    before = versions(half_done)
    with pytest.raises(SparkPaceError, match=message) as caught:
        run_job(half_done)
    assert "\n" not in str(caught.value)
    assert versions(half_done) == before


def test_a_checkpoint_that_is_whole_goes_on(half_done: JobSpec) -> None:
    run_job(replace(half_done, finish=True))
    assert matches(half_done) == in_core(half_done).matches.to_pylist() != []
