"""Which checkpoints are whole. No Spark; `spark/test_damaged_checkpoints.py` tests the others in jobs."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from spark_pace.core.frames import let_go
from spark_pace.errors import StateError
from spark_pace.io.query import TABLES
from spark_pace.spark.checkpoint.batch_begin import Begin, Begins, read_begin, write_begin
from spark_pace.spark.checkpoint.checkpoint import Checkpoint, ChunkFiles, is_behind
from spark_pace.spark.checkpoint.lock import claim
from spark_pace.spark.start import require_whole


def checkpoint(folder: Path, begun: Iterable[int], done: Iterable[int], following: int) -> Checkpoint:
    for name, numbers in (("offsets", begun), ("commits", done), ("sequence", ())):
        (folder / name).mkdir()
        for number in numbers:
            note = 'v1\n{"nextBatchWatermarkMs":0}'
            (folder / name / str(number)).write_text(f"{note}\n{number}" if name == "offsets" else note)
    last = dict.fromkeys(TABLES, following - 1) | {"late": 3}
    made = Checkpoint(folder)
    write_begin(made, following, Begin({"rule": 17}, 1_000_000, last, made.offsets_digest(following - 1)))
    return made


def written(batch: int, **others: int) -> dict[str, int]:
    """The last batch in each table."""
    return dict.fromkeys(TABLES, batch) | {"late": 3} | others


def test_a_stop_while_old_batches_are_removed_leaves_a_whole_checkpoint(tmp_path: Path) -> None:
    """Spark removes them in the order in which the file system lists them: 10 before 9."""
    require_whole(checkpoint(tmp_path, [8, 9, *range(11, 22)], [9, *range(11, 21)], 21), written(20), TABLES)


@pytest.mark.parametrize("log", ["offsets", "commits"])
@pytest.mark.parametrize("first", [4, 7])
def test_the_batch_before_the_last_must_be_there(tmp_path: Path, log: str, first: int) -> None:
    whole = checkpoint(tmp_path, range(first, 9), range(first, 9), 9)
    (whole.path / log / "7").unlink()
    with pytest.raises(
        StateError, match=rf"{log} — must have a file for each batch; got none for batch 7\. Restore"
    ):
        require_whole(whole, written(8), TABLES)


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        (
            written(20, matches=19),
            r"must be as old as its tables; "
            r"got batch 20 as the last of matches here, batch 19 there\. Restore",
        ),
        (written(20, late=-1), r"got batch 3 as the last of late here, batch -1 there"),
        (written(20, quarantine=22), r"got batch 20 as the last of quarantine here, batch 22 there"),
        (
            {name: batch for name, batch in written(20).items() if name != "late"},
            r"must have all its tables; got none named late\. Restore",
        ),
        (written(19), r"got batch 20 as the last of metrics here, batch 19 there\. Restore"),
    ],
)
def test_each_table_must_have_the_batches_that_the_checkpoint_says(
    tmp_path: Path, tables: dict[str, int], message: str
) -> None:
    whole = checkpoint(tmp_path, range(11, 22), range(11, 21), 21)
    require_whole(whole, written(20), TABLES)
    require_whole(whole, written(20, late=21, matches=21), TABLES)  # batch 21 was being written
    with pytest.raises(StateError, match=message):
        require_whole(whole, tables, TABLES)


def test_an_unwritten_checkpoint_needs_no_tables(tmp_path: Path) -> None:
    require_whole(Checkpoint(tmp_path), {}, TABLES)
    require_whole(Checkpoint(tmp_path), dict.fromkeys(TABLES, -1), TABLES)


@pytest.mark.parametrize("done", [range(0), range(1)])
def test_offsets_of_an_unfinished_batch_with_one_other_digit_are_refused(tmp_path: Path, done: range) -> None:
    """As far as it has come to its tables: what it has written must come again."""
    begun = len(done)
    whole = checkpoint(tmp_path, range(begun + 1), done, begun + 1)
    if done:
        write_begin(whole, 1, Begin({}, 0, offsets=whole.offsets_digest(0)))
    tables = written(begun) | {"late": begun}
    require_whole(whole, tables, TABLES)
    whole.offsets_of(begun).write_text(whole.offsets_of(begun).read_text()[:-1] + "7")
    with pytest.raises(
        StateError, match=rf"offsets/{begun} — must be as Spark wrote it; got another content"
    ):
        require_whole(whole, tables, TABLES)


@pytest.mark.parametrize("number", [7, 6])
def test_offsets_that_read_nothing_new_are_refused(tmp_path: Path, number: int) -> None:
    """Before the batch has come to its tables nothing says yet what it has read."""
    whole = checkpoint(tmp_path, range(4, 9), range(4, 8), 8)
    require_whole(whole, written(7), TABLES)
    whole.offsets_of(8).write_text(whole.note_of(number).decode())
    with pytest.raises(StateError, match=r"offsets/8 — must be as Spark wrote it; got another content"):
        require_whole(whole, written(7), TABLES)


def test_offsets_are_those_that_the_tasks_of_a_batch_have_begun_with(tmp_path: Path) -> None:
    whole = checkpoint(tmp_path, range(4, 9), range(4, 8), 8)
    assert claim(whole, 8, lambda _: None) == claim(whole, 8, lambda _: None) == whole.note_of(8)
    require_whole(whole, written(7), TABLES)
    whole.offsets_of(8).write_text(whole.note_of(8).decode() + "0")
    with pytest.raises(StateError, match=r"offsets/8 — must be as Spark wrote it; got another content"):
        require_whole(whole, written(7), TABLES)


def test_the_claim_of_a_batch_whose_note_was_lost_keeps_no_later_start_out(tmp_path: Path) -> None:
    """A machine that stops may lose Spark's note, which is not synced, and keep the claim."""
    whole = checkpoint(tmp_path, range(4, 9), range(4, 8), 8)
    claim(whole, 8, lambda _: None)
    whole.offsets_of(8).write_text(whole.note_of(8).decode() + "0")  # as the batch was planned anew
    assert claim(whole, 8, lambda _: None) == whole.note_of(8)
    require_whole(whole, written(7), TABLES)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ([{"t": {"0": 5, "1": 7}}, {"rows": 0}], [{"t": {"0": 5, "1": 8, "2": 0}}, {"rows": 0}], True),
        ([{"t": {"0": 5, "1": 7}}, {"rows": 0}], [{"t": {"0": 4, "1": 8}}, {"rows": 0}], False),
        ([{"t": {"0": 5}}, {"rows": 0, "tick_us": 9}], [{"t": {"0": 5}}, {"rows": 0, "tick_us": 8}], False),
        ([{"entries": 3, "bytes": 10}], [{"entries": 4}], True),  # without admission from now on
        ([{"entries": 3}], [{"entries": 3}, {"rows": 0}], False),
    ],
)
def test_offsets_go_on_where_no_number_is_less(before: list[Any], after: list[Any], expected: bool) -> None:
    assert is_behind(after, before) == expected


def test_where_a_job_began_with_kafka_is_known_once_its_first_batch_comes_to_its_tables(
    tmp_path: Path,
) -> None:
    began = tmp_path / "sources" / "0" / "0"
    began.parent.mkdir(parents=True)
    began.write_text('v1\n{"t":{"0":5}}')
    whole = checkpoint(tmp_path, [0], [], 1)
    require_whole(whole, written(0) | {"late": -1}, TABLES)
    began.write_text('v1\n{"t":{"0":6}}')
    with pytest.raises(StateError, match=r"offsets/0 — must be as Spark wrote it; got another content"):
        require_whole(whole, written(0) | {"late": -1}, TABLES)


def test_numbers_with_one_other_digit_are_refused(tmp_path: Path) -> None:
    whole = checkpoint(tmp_path, range(4, 9), range(4, 9), 9)
    path = whole.sequence(9)
    text = path.read_text()
    for place, letter in enumerate(text):
        path.write_text(text[:place] + ("1" if letter == "0" else "0") + text[place + 1 :])
        with pytest.raises(
            StateError,
            match=r"sequence/9\.json — must (be as this program wrote it|hold out_seq and frontier_us)",
        ):
            read_begin(whole, 9)


@pytest.mark.parametrize("name", ["offsets/8", "commits/8", "sequence/9.json", "metadata", "waiting/c"])
def test_a_folder_in_place_of_a_file_is_named(tmp_path: Path, name: str) -> None:
    whole = checkpoint(tmp_path, range(4, 9), range(4, 9), 9)
    write_begin(whole, 9, replace(Begins(whole).of(9), chunks=["c"]))
    (tmp_path / name).unlink(missing_ok=True)
    (tmp_path / name).mkdir(parents=True)
    with pytest.raises(StateError, match=f"{name} — must be as it was written; got a folder in its place"):
        require_whole(whole, written(8), TABLES)


@pytest.mark.parametrize("name", ["offsets", "commits", "sequence"])
def test_a_file_in_place_of_a_folder_is_named(tmp_path: Path, name: str) -> None:
    whole = checkpoint(tmp_path, range(4, 9), range(4, 9), 9)
    shutil.rmtree(tmp_path / name)
    (tmp_path / name).touch()
    with pytest.raises(StateError, match="must be as it was written; got a file in place of a folder"):
        require_whole(whole, written(8), TABLES)


def test_several_may_write_the_same_chunk_at_once(tmp_path: Path) -> None:
    """Threads have one process id, as processes of several machines may have."""
    chunks = ChunkFiles(tmp_path / "waiting")
    with ThreadPoolExecutor(8) as pool:
        names = set(pool.map(chunks.put, [lambda sink: sink.write(b"0123456789" * 20_000)] * 200))
    chunks.require_whole(names)
    assert [path.name for path in chunks.folder.iterdir()] == list(names)


def test_the_memory_of_a_mapped_chunk_can_be_given_back(tmp_path: Path) -> None:
    chunks, size = ChunkFiles(tmp_path / "waiting"), 1 << 26
    view = chunks.get(chunks.put(lambda sink: sink.write(b"x" * size)))
    pages = np.frombuffer(view, np.uint8)[::4096]
    assert pages.min() == ord("x")
    before = psutil.Process().memory_info().shared
    let_go(view)
    assert before - psutil.Process().memory_info().shared > size // 2
    assert pages.min() == ord("x")


def test_a_claim_stays_where_the_note_of_its_batch_is_missing(tmp_path: Path) -> None:
    whole = checkpoint(tmp_path, range(4, 9), range(4, 9), 9)
    noted = claim(whole, 8, lambda batch_id: None)
    whole.offsets_of(8).unlink()
    with pytest.raises(StateError, match="offsets/8 — must be as Spark wrote it; got no file"):
        claim(whole, 8, lambda batch_id: None)
    assert whole.claim_of(8).read_bytes() == noted
