"""The tables of a job on a mounted file system: appended once, and tidied while they are written. No Spark."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from spark_pace.io.delta import DeltaTables

SCHEMA = pa.schema([("number", pa.int64()), ("text", pa.string())])
BATCHES = 130
TWO_DAYS = 2 * 24 * 3600


def rows(batch: int) -> pa.Table:
    return pa.table({"number": [2 * batch, 2 * batch + 1], "text": ["a", "b"]}, SCHEMA)


def tables(folder: Path) -> DeltaTables:
    made = DeltaTables(cast(Any, None), str(folder), "app")
    made.prepare({"matches": SCHEMA})
    return made


@pytest.fixture
def written(tmp_path: Path) -> Path:
    job = tables(tmp_path)
    for batch in range(BATCHES):
        job.append("matches", rows(batch), batch)
    return tmp_path / "matches"


def numbers(path: Path) -> list[int]:
    return sorted(DeltaTable(path).to_pyarrow_table()["number"].to_pylist())


def test_small_files_are_joined_and_no_row_changes(written: Path) -> None:
    assert len(DeltaTable(written).file_uris()) <= 100 + BATCHES // 100
    assert numbers(written) == list(range(2 * BATCHES))


def test_a_batch_done_again_changes_nothing_after_files_were_joined(written: Path) -> None:
    job = tables(written.parent)
    for batch in (0, 99, 100, 101, BATCHES - 1):
        job.append("matches", rows(batch), batch)
    assert numbers(written) == list(range(2 * BATCHES))


def test_the_transactions_outlive_the_log(written: Path) -> None:
    """The log is cut behind a checkpoint after a day: then the checkpoint alone says which batches were written."""
    log = written / "_delta_log"
    for file in log.glob("*.json"):
        os.utime(file, (file.stat().st_mtime - TWO_DAYS,) * 2)
    before = len(list(log.glob("*.json")))
    DeltaTable(written).cleanup_metadata()
    assert len(list(log.glob("*.json"))) < before - 90
    assert DeltaTable(written).transaction_version("app") == BATCHES - 1
    test_a_batch_done_again_changes_nothing_after_files_were_joined(written)


def test_files_are_kept_for_readers_until_they_are_a_day_old(written: Path) -> None:
    assert len(list(written.glob("*.parquet"))) >= BATCHES
    old = DeltaTable(written, version=90)
    assert sorted(old.to_pyarrow_table()["number"].to_pylist()) == list(range(2 * 90))
