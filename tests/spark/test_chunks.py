"""A carry too large for the state: its chunks are files, written before they are named, and never trusted."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spark_pace.errors import StateError
from spark_pace.job import run_job
from spark_pace.job_file import JobSpec, read_job
from spark_pace.spark.checkpoint.batch_begin import read_begin
from spark_pace.spark.checkpoint.checkpoint import Checkpoint
from spark_pace.ways import SMALL
from tests.spark.jobs import KEYS, WAITING, in_core, job, matches, stop_at, table, waiting_events, write_files

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]

FILES = 4


def checkpoint_of(spec: JobSpec) -> Checkpoint:
    return Checkpoint(Path(spec.checkpoint_path))


def chunk_files(spec: JobSpec) -> list[str]:
    return sorted(path.name for path in (checkpoint_of(spec).path / "waiting").iterdir())


def named(spec: JobSpec, batch_id: int) -> list[str]:
    begin = read_begin(checkpoint_of(spec), batch_id)
    assert begin is not None
    return begin.chunks


@pytest.fixture(scope="module")
def first_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a job with three batches done and one to do."""
    folder = tmp_path_factory.mktemp("job")
    spec = job(folder, finish=False, rules=WAITING)
    write_files(folder, waiting_events(), FILES)
    (folder / "in" / "003.json").rename(folder / "003.json")
    run_job(spec)
    return folder


@pytest.fixture
def half_done(first_run: Path, tmp_path: Path) -> JobSpec:
    """The job in a copy of that folder, with its last file."""
    shutil.copytree(first_run, tmp_path, dirs_exist_ok=True)
    (tmp_path / "003.json").rename(tmp_path / "in" / "003.json")
    return read_job(tmp_path / "job.yaml")


def finished(spec: JobSpec) -> list[dict[str, Any]]:
    """Run the job on to the end of its input."""
    path = Path(spec.sink_path).parent / "job.yaml"
    path.write_text(path.read_text().replace("finish: false", "finish: true"))
    run_job(read_job(path))
    return matches(spec)


def test_a_large_carry_is_in_files_and_the_state_stays_small(half_done: JobSpec) -> None:
    assert named(half_done, 3)
    assert (
        set(named(half_done, 3))
        <= set(chunk_files(half_done))
        <= {*named(half_done, 3), *named(half_done, 2)}
    )
    metrics = table(half_done, "metrics").sort_by("batch_id").to_pylist()
    assert metrics[-1]["carry"] > 1.5 * SMALL
    assert metrics[-1]["state_bytes"] < 2 * SMALL * 40  # two slots with chunks that are small
    assert finished(half_done) == in_core(half_done).matches.to_pylist()
    assert len(matches(half_done)) > KEYS // 30


def test_a_batch_that_is_done_again_writes_the_same_chunks(
    half_done: JobSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = []
    for name in ("matches", "metrics"):
        with monkeypatch.context() as patch, pytest.raises(Exception, match="the disk is full"):
            stop_at(patch, name, batch_id=3)
            run_job(half_done)
        tried.append(named(half_done, 4))
        assert set(tried[-1]) <= set(chunk_files(half_done))
    assert finished(half_done) == in_core(half_done).matches.to_pylist()
    assert tried == [named(half_done, 4)] * 2


def a_chunk(spec: JobSpec) -> Path:
    return checkpoint_of(spec).path / "waiting" / named(spec, 3)[0]


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def change(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (cut, r"waiting/\w+ — must be as this program wrote it; got another content than its checksum is of"),
        (
            change,
            r"waiting/\w+ — must be as this program wrote it; got another content than its checksum is of",
        ),
        (
            Path.unlink,
            r"waiting/\w+ — must be as this program wrote it; got no file\. Restore the whole",
        ),
    ],
)
def test_a_damaged_chunk_is_refused_in_one_line(
    half_done: JobSpec, damage: Callable[[Path], None], message: str
) -> None:
    damage(a_chunk(half_done))
    before = table(half_done, "metrics").num_rows
    with pytest.raises(StateError, match=message) as caught:
        run_job(half_done)
    assert "\n" not in str(caught.value)
    assert table(half_done, "metrics").num_rows == before


def test_what_a_killed_batch_has_left_is_removed(half_done: JobSpec) -> None:
    folder = a_chunk(half_done).parent
    (folder / "0123").write_text("a chunk of a batch that was never done")
    (folder / f".{a_chunk(half_done).name}.77.tmp").write_text("a part of one")
    kept = set(named(half_done, 3))
    assert finished(half_done) == in_core(half_done).matches.to_pylist()
    assert set(chunk_files(half_done)) <= {*kept, *named(half_done, 4)}


def test_chunks_of_a_rule_that_is_taken_out_are_removed(half_done: JobSpec) -> None:
    path = Path(half_done.sink_path).parent / "rules.yaml"
    path.write_text(path.read_text().replace("name: waits", "name: others"))
    spec = read_job(path.with_name("job.yaml"))
    run_job(spec)
    write_files(path.parent, waiting_events()[-10:], 1, first=4)
    run_job(spec)
    assert chunk_files(spec) == named(spec, 5) == []


def test_pending_events_of_a_long_delay_are_in_files_too(tmp_path: Path) -> None:
    spec = job(tmp_path, finish=False, rules=WAITING, events="delay: 2 h")
    write_files(tmp_path, waiting_events(), FILES)
    run_job(spec)
    metrics = table(spec, "metrics").sort_by("batch_id").to_pylist()
    assert metrics[-1]["pending"] > SMALL
    assert metrics[-1]["carry"] < metrics[-1]["pending"]
    assert metrics[-1]["state_bytes"] < 2 * SMALL * 40
    assert set(named(spec, FILES)) <= set(chunk_files(spec))
    assert finished(spec) == in_core(spec).matches.to_pylist()
