"""Tables that have lost something, or that another checkpoint writes: refused before a query starts."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Barrier
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from spark_pace import read_table
from spark_pace.errors import StateError
from spark_pace.io.delta_tables import PROPERTIES, DeltaTables

SCHEMA = pa.schema([("n", pa.int64())])
NAMES = ("matches", "late")


def tables(folder: Path, app_id: str = "ours") -> DeltaTables:
    return DeltaTables(str(folder), app_id)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three batches of matches, of late events one."""
    ours = tables(tmp_path)
    ours.prepare(dict.fromkeys(NAMES, SCHEMA))
    for batch in range(3):
        ours.append("matches", pa.table({"n": [batch]}, SCHEMA), batch)
    ours.append("late", pa.table({"n": [7]}, SCHEMA), 1)
    return tmp_path


def newest(folder: Path, pattern: str) -> Path:
    return max(folder.glob(pattern), key=lambda path: (path.stat().st_mtime_ns, path.name))


def test_the_last_batch_of_each_table_that_is_there_is_known(folder: Path) -> None:
    assert tables(folder).written([*NAMES, "metrics"]) == {"matches": 2, "late": 1}
    newest(folder / "matches", "_delta_log/*.json").unlink()
    assert tables(folder).written(NAMES) == {"matches": 1, "late": 1}


DAMAGES: dict[str, tuple[Callable[[Path], Any], str]] = {
    "a file gone": (
        lambda f: newest(f / "late", "*.parquet").unlink(),
        r"late — must have all its files as they were written; got none or another part-\S+\. Restore",
    ),
    "a file cut short": (
        lambda f: newest(f / "matches", "*.parquet").write_bytes(b"PAR1"),
        r"matches — must have all its files as they were written; got none or another part-\S+\. Restore",
    ),
    "a log entry gone": (
        lambda f: sorted((f / "matches").glob("_delta_log/*.json"))[2].unlink(),
        r"matches — must be a Delta table that can be read; got: .*gap.*\. "
        r"Restore it together with the checkpoint",
    ),
    "a log entry spoilt": (
        lambda f: newest(f / "matches", "_delta_log/*.json").write_text("{"),
        r"matches — must be a Delta table that can be read; got: .*\. "
        r"Restore it together with the checkpoint",
    ),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_table_that_has_lost_something_is_refused(folder: Path, name: str) -> None:
    damage, message = DAMAGES[name]
    damage(folder)
    with pytest.raises(StateError, match=message) as caught:
        tables(folder).written(NAMES)
    assert "\n" not in str(caught.value)


def test_files_that_are_no_part_of_the_table_do_not_count(folder: Path) -> None:
    """As those that OPTIMIZE has joined and VACUUM removes, perhaps at this moment."""
    (folder / "matches" / "joined.parquet").symlink_to("gone")
    assert tables(folder).written(NAMES) == {"matches": 2, "late": 1}


def test_a_table_that_somebody_has_partitioned_is_whole_too(tmp_path: Path) -> None:
    schema = pa.schema([("n", pa.int64()), ("k", pa.string())])
    DeltaTable.create(tmp_path / "matches", schema, partition_by=["k"], configuration=PROPERTIES)
    for batch, k in enumerate(("a b", "x:y", "ä%")):
        tables(tmp_path).append("matches", pa.table({"n": [1], "k": [k]}, schema), batch)
    assert tables(tmp_path).written(["matches"]) == {"matches": 2}
    next((tmp_path / "matches").glob("k=a*/*.parquet")).unlink()
    with pytest.raises(StateError, match="must have all its files as they were written"):
        tables(tmp_path).written(["matches"])


def test_rows_of_another_checkpoint_are_refused(folder: Path) -> None:
    with pytest.raises(
        StateError,
        match=(
            r"matches — must be written by this checkpoint alone; got rows that another one has written\. "
            r"Go on with that"
        ),
    ):
        tables(folder, "others").written(NAMES)


def test_tables_that_nobody_has_written_to_are_taken_over_and_others_are_refused_then(tmp_path: Path) -> None:
    first, second = tables(tmp_path, "first"), tables(tmp_path, "second")
    first.prepare({"matches": SCHEMA})
    assert second.written(["matches"]) == {"matches": -1}
    second.prepare({"matches": SCHEMA})
    second.claim()
    message = (
        f"{tmp_path} — must be written by this checkpoint alone; got the mark of another one, _owner. Go on "
        "with that checkpoint, choose another sink, or remove the tables and the checkpoint together."
    )
    for refused in (first.claim, lambda: first.written(["matches"])):
        with pytest.raises(StateError) as caught:
            refused()
        assert str(caught.value) == message
    second.append("matches", pa.table({"n": [1]}, SCHEMA), 0)
    second.claim()
    again = tables(tmp_path, "second")
    again.claim()
    assert again.written(["matches"]) == {"matches": 0}


def test_of_many_that_claim_a_sink_at_once_one_has_it(tmp_path: Path) -> None:
    names, trials = [f"job {number}" for number in range(4)], 25
    barrier = Barrier(len(names))

    def won(name: str) -> set[int]:
        mine = set()
        for trial in range(trials):
            sink = tables(tmp_path / str(trial), name)
            barrier.wait()
            sink.prepare(dict.fromkeys(NAMES, SCHEMA))
            with suppress(StateError):
                sink.claim()
                sink.append("matches", pa.table({"n": [trial]}, SCHEMA), 0)
                mine.add(trial)
        return mine

    with ThreadPoolExecutor(len(names)) as pool:
        found = [trial for mine in pool.map(won, names) for trial in mine]
    assert sorted(found) == list(range(trials))
    assert [read_table(tmp_path / str(trial), "matches").num_rows for trial in range(trials)] == [1] * trials


def test_a_batch_is_written_beside_another_job_that_only_adds_columns(tmp_path: Path) -> None:
    """It has not found yet that the sink is not its own."""
    ours, others = tables(tmp_path), tables(tmp_path, "others")
    ours.prepare({"matches": SCHEMA})
    ours.claim()
    columns = [
        pa.schema([*SCHEMA, *((f"m{number}", pa.int64()) for number in range(most))]) for most in range(9)
    ]
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(lambda: [others.prepare({"matches": wider}) for wider in columns])
        for batch in range(20):
            ours.append("matches", pa.table({"n": [batch]}, SCHEMA), batch)
        done.result()
    assert sorted(read_table(tmp_path, "matches")["n"].to_pylist()) == list(range(20))


def test_a_job_whose_sink_was_removed_does_not_write_into_what_stands_there_now(tmp_path: Path) -> None:
    ours, others = tables(tmp_path / "out"), tables(tmp_path / "out", "others")
    ours.prepare({"matches": SCHEMA})
    ours.claim()
    shutil.rmtree(tmp_path / "out")
    with pytest.raises(
        StateError, match=r"out/_owner — must stay as long as a job writes to it; got no such"
    ):
        ours.claim()
    others.prepare({"matches": SCHEMA})
    others.claim()
    with pytest.raises(StateError, match="got the mark of another one, _owner"):
        ours.claim()


def test_a_sink_may_have_any_characters_in_its_name(tmp_path: Path) -> None:
    sink = tmp_path / "a b #?'\"`{ä} 100%"
    for _ in range(2):
        tables(sink).claim()
    with pytest.raises(StateError, match="got the mark of another one, _owner"):
        tables(sink, "others").claim()


def test_a_damaged_mark_is_refused(folder: Path) -> None:
    tables(folder).claim()
    newest(folder / "_owner", "*.parquet").write_bytes(b"PAR1")
    message = (
        r"_owner — must be a Delta table that can be read; got: .*\. Restore it, or remove it if no other"
    )
    with pytest.raises(StateError, match=message) as caught:
        tables(folder).written(NAMES)
    assert "\n" not in str(caught.value)


def test_tables_whose_mark_was_removed_are_taken_over_by_who_has_written_them(tmp_path: Path) -> None:
    DeltaTable.create(tmp_path / "matches", SCHEMA, configuration=PROPERTIES)
    tables(tmp_path).append("matches", pa.table({"n": [1]}, SCHEMA), 0)
    with pytest.raises(StateError, match="must be written by this checkpoint alone"):
        tables(tmp_path, "others").written(["matches"])
    assert tables(tmp_path).written(["matches"]) == {"matches": 0}
    tables(tmp_path).prepare({"matches": SCHEMA})
    tables(tmp_path).claim()
    assert tables(tmp_path).written(["matches"]) == {"matches": 0}
