"""Checkpoints in the log of a Delta table: which one counts, and both versions of Delta's. No Spark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from spark_pace.errors import StateError
from spark_pace.io.delta_log import DeltaLog, last_checkpoint
from spark_pace.spark.sources.manifest import file_of
from tests.unit.io.test_delta_log import append, commits_of, forget_commits


def as_version_2(table: Path, form: str) -> None:
    """Write the last checkpoint anew as Delta's version 2 has it, with what it says of files beside it."""
    log = table / "_delta_log"
    (classic,) = log.glob("*.checkpoint.parquet")
    rows = pq.read_table(classic)
    classic.unlink()
    (log / "_sidecars").mkdir()
    told = {"path": "of%20files.parquet", "sizeInBytes": 1, "modificationTime": 1}
    files = rows.select(["add", "remove"]).filter(pc.is_valid(rows["add"]))
    pq.write_table(files, log / "_sidecars" / "of files.parquet")
    actions: list[dict[str, Any]] = [{"checkpointMetadata": {"version": 2}}, {"sidecar": told}]
    for kind in ("protocol", "metaData"):
        actions += [{kind: value} for value in rows[kind].drop_null().to_pylist()]
    top = log / f"{2:020d}.checkpoint.00000000-0000-4000-8000-00000000000a.{form}"
    if form == "parquet":
        pq.write_table(pa.Table.from_pylist([dict.fromkeys(("sidecar", *rows.column_names)), *actions]), top)
    else:
        for action in actions:
            if "metaData" in action:
                action["metaData"] |= {"configuration": {}, "format": {}}
        top.write_text("".join(f"{json.dumps(action)}\n" for action in actions))


@pytest.mark.parametrize("form", ["json", "parquet"])
def test_a_checkpoint_of_version_2_is_read_with_its_sidecars(tmp_path: Path, form: str) -> None:
    for value in range(3):
        append(tmp_path, value, partition_by=["x"])
    log = DeltaLog(tmp_path)
    whole, table_id = log.files(2), log.metadata().table_id
    forget_commits(tmp_path, 0)
    as_version_2(tmp_path, form)
    assert [(file.path, file.partition) for file in log.files(2)] == [(f.path, f.partition) for f in whole]
    assert log.metadata().table_id == table_id
    found = commits_of(tmp_path, [], 1).new()
    assert [file_of(entry).version for entry in found] == [1, 2]
    (tmp_path / "_delta_log" / "_sidecars" / "of files.parquet").unlink()
    with pytest.raises(StateError, match=r"version 2 — must have a log that can be read; got FileNotFound"):
        log.files(2)


def test_a_part_of_a_checkpoint_in_another_folder_is_refused(tmp_path: Path) -> None:
    for value in range(3):
        append(tmp_path, value)
    forget_commits(tmp_path, 0)
    as_version_2(tmp_path, "json")
    (top,) = (tmp_path / "_delta_log").glob("*.checkpoint.*.json")
    top.write_text(top.read_text().replace("of%20files", "s3://bucket/of%20files"))
    with pytest.raises(StateError, match=r"got ValueError: a part of a checkpoint in another folder, s3://b"):
        DeltaLog(tmp_path).metadata()


def test_of_the_checkpoints_in_a_log_the_last_whole_one_counts() -> None:
    unique = "00000000-0000-4000-8000-00000000000a"
    names = [
        *(f"{4:020d}.json", f"{4:020d}.checkpoint.parquet.crc", f"{1:020d}.checkpoint.parquet"),
        *(f"{2:020d}.checkpoint.{part:010d}.{2:010d}.parquet" for part in (2, 1)),
        *(f"{3:020d}.checkpoint.{part:010d}.{3:010d}.parquet" for part in (1, 3)),
    ]
    assert last_checkpoint(names) == (2, sorted(names[3:5]))
    assert last_checkpoint([f"{4:020d}.json"]) is None
    for form in ("json", "parquet"):
        names.append(f"{4:020d}.checkpoint.{unique}.{form}")
        found = last_checkpoint(names)
        assert found is not None
        assert found[0] == 4
