"""A job's tables on a mounted file system: appended to once, whatever becomes of their files. No Spark."""

from __future__ import annotations

import json
import math
import os
import shutil
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from spark_pace import read_table
from spark_pace.errors import StateError
from spark_pace.io.delta_tables import QUARANTINE_SCHEMA, DeltaTables
from spark_pace.io.query import Tables

SCHEMA = pa.schema([("number", pa.int64()), ("text", pa.string())])
BATCHES = 130
TWO_DAYS = 2 * 24 * 3600


def rows(batch: int) -> pa.Table:
    return pa.table({"number": [2 * batch, 2 * batch + 1], "text": ["a", "b"]}, SCHEMA)


def tables(folder: Path) -> DeltaTables:
    made = DeltaTables(str(folder), "app")
    made.prepare({"matches": SCHEMA})
    return made


@pytest.fixture
def written(tmp_path: Path) -> Path:
    job = tables(tmp_path)
    for batch in range(BATCHES):
        job.append("matches", rows(batch), batch)
    return tmp_path / "matches"


def numbers(path: Path) -> list[int]:
    return sorted(read_table(path.parent, path.name)["number"].to_pylist())


def test_a_batch_done_again_changes_nothing_after_files_were_joined(written: Path) -> None:
    DeltaTable(written).optimize.compact()
    assert len(DeltaTable(written).file_uris()) == 1
    job = tables(written.parent)
    for batch in (0, 99, 100, 101, BATCHES - 1):
        job.append("matches", rows(batch), batch)
    assert numbers(written) == list(range(2 * BATCHES))


def test_the_table_that_could_not_be_written_is_known(tmp_path: Path) -> None:
    writer = tables(tmp_path)
    writer.append("matches", rows(0), 0)
    assert writer.writing is None
    shutil.rmtree(tmp_path / "matches" / "_delta_log")
    with pytest.raises(DeltaError):
        writer.append("matches", rows(1), 1)
    assert writer.writing == str(writer.place("matches"))


def test_the_transactions_outlive_the_log(written: Path) -> None:
    """After a day Delta cuts its log: then Delta's checkpoint alone says which batches were written."""
    log = written / "_delta_log"
    for file in log.iterdir():
        os.utime(file, (file.stat().st_mtime - TWO_DAYS,) * 2)
    before = len(list(log.glob("*.json")))
    DeltaTable(written).cleanup_metadata()
    assert len(list(log.glob("*.json"))) < before - 90
    assert DeltaTable(written).transaction_version("app") == BATCHES - 1
    test_a_batch_done_again_changes_nothing_after_files_were_joined(written)


def test_new_columns_are_added_and_those_of_others_stay(tmp_path: Path) -> None:
    job = tables(tmp_path)
    job.append("matches", rows(0), 0)
    wider = pa.schema(
        [("number", pa.int64()), ("total", pa.float64()), ("list", pa.list_(pa.struct([("x", pa.int64())])))]
    )
    job.prepare({"matches": wider})
    job.append("matches", pa.table({"number": [2], "total": [0.5], "list": [[{"x": 1}]]}, wider), 1)
    job.prepare({"matches": SCHEMA})
    job.append("matches", rows(2), 2)
    found = read_table(tmp_path, "matches").sort_by("number").to_pylist()
    assert found[2] == {"number": 2, "text": None, "total": 0.5, "list": [{"x": 1}]}
    assert [(row["number"], row["text"], row["total"]) for row in found if row["number"] != 2] == [
        (number, text, None) for number, text in ((0, "a"), (1, "b"), (4, "a"), (5, "b"))
    ]


@pytest.mark.parametrize(
    "name", ["a b", "#1", "what?", "é日", 'it\'s "it"', "`", "100%, %zz", "a:b;c&d=e+f,g@h!~$", "{a}(b)<c>*"]
)
def test_a_folder_may_have_any_characters_in_its_name(tmp_path: Path, name: str) -> None:
    job = tables(tmp_path / name)
    job.append("matches", rows(0), 0)
    tables(tmp_path / name).append("matches", rows(1), 1)
    assert tables(tmp_path / name).last_batch("matches") == 1
    assert numbers(tmp_path / name / "matches") == [0, 1, 2, 3]
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (
            ("number", pa.string()),
            "must have a column number of type STRING; got number of type BIGINT. "
            "Give what is emitted another name, or choose",
        ),
        (("Number", pa.int64()), "must have a column Number of type BIGINT; got number of type BIGINT"),
    ],
)
def test_a_column_of_another_type_or_spelling_is_refused(
    tmp_path: Path, column: tuple[str, pa.DataType], message: str
) -> None:
    job = tables(tmp_path)
    with pytest.raises(StateError, match=message):
        job.prepare({"matches": pa.schema([column])})
    assert DeltaTable(tmp_path / "matches").version() == 0


def test_what_a_batch_finds_besides_what_it_wrote_is_added_once(tmp_path: Path) -> None:
    """Of the table's files only those are read that may hold the rows: the first has gone."""
    job = DeltaTables(str(tmp_path), "app")
    job.prepare({"quarantine": pa.schema([*QUARANTINE_SCHEMA, ("of_later", pa.int64())])})
    for batch in range(3):
        job.append("quarantine", quarantined(10 * batch, 10 * batch + 5), batch)
    path = tmp_path / "quarantine"
    files = pa.table(DeltaTable(path).get_add_actions(flatten=True)).sort_by("min.offset")["path"].to_pylist()
    (path / files[0]).unlink()
    for again in (quarantined(20, 25), quarantined(20, 27), quarantined(20, 27)):
        job.append_missing("quarantine", again, ("kind", "rule", "key", "selection_id", "source", "offset"))
    assert job.last_batch("quarantine") == 2
    left = [file for file in DeltaTable(path).file_uris() if Path(file).exists()]
    found = [
        pq.read_table(file, partitioning=None).select(QUARANTINE_SCHEMA.names).cast(QUARANTINE_SCHEMA)
        for file in left
    ]
    assert (
        pa.concat_tables(found).sort_by("offset").to_pylist()
        == pa.concat_tables([quarantined(10, 15), quarantined(20, 27)]).to_pylist()
    )


def quarantined(first: int, end: int) -> pa.Table:
    """A record or a selection at each offset; of a record rule, key and number are null."""
    selection = {"kind": "selection", "rule": "it's", "key": None, "source": "t/1"}
    record = {"kind": "record", "source": "t/0"}
    rows = [
        {
            **(selection | {"selection_id": offset} if offset % 3 else record),
            "reason": "r",
            "offset": offset,
            "raw": b"\xff%d" % offset,
        }
        for offset in range(first, end)
    ]
    return pa.Table.from_pylist(rows, QUARANTINE_SCHEMA)


def test_the_log_says_between_which_values_a_file_lies(tmp_path: Path) -> None:
    """Delta's readers leave files out by it, and mind that times are cut. NaN is above all numbers."""
    schema = pa.schema([
        *(("n", pa.int64()), ("t", pa.timestamp("us", "UTC")), ("s", pa.string()), ("d", pa.date32())),
        *(("far", pa.date32()), ("x", pa.float64()), ("none", pa.string()), ("ns", pa.list_(pa.int64()))),
    ])  # fmt: skip
    job = DeltaTables(str(tmp_path), "app")
    job.prepare({"matches": schema})
    columns: list[list[Any]] = [[7, None, -3], [1_500_001, -1, None], ["é", "b", "c"], [0, 1, None]]
    columns += [[0, 4_000_000, 0], [1.5, float("nan"), 0.0], [None] * 3, [[1], [], None]]
    made = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    job.append("matches", pa.table(made, schema=schema), 0)
    [log] = [path.read_text("utf-8") for path in tmp_path.glob("matches/_delta_log/*1.json")]
    [add] = [json.loads(line)["add"] for line in log.splitlines() if line.startswith('{"add"')]
    stats = json.loads(add["stats"])
    days = {"d": "1970-01-01", "far": "1970-01-01"}
    assert stats == {
        "numRecords": 3,
        "minValues": {**days, "n": -3, "t": "1969-12-31T23:59:59.999Z", "s": "b"},
        "maxValues": {
            "n": 7,
            "t": "1970-01-01T00:00:01.500Z",
            "s": "é",
            "d": "1970-01-02",
            "far": "+12921-08-18",
        },
        "nullCount": {"n": 1, "t": 1, "s": 0, "d": 1, "far": 0, "none": 3},
    }


@pytest.mark.parametrize("partition_by", [None, ["text"]], ids=["as made", "altered"])
@pytest.mark.parametrize(
    "where",
    ["x > 100", "s['x'] > 100", f"d = {2**53 + 1}", "text = '𠮷'", "t = '1970-01-01T00:00:01.500001Z'"],
)
def test_rows_are_found_by_values_that_bounds_may_miss(
    tmp_path: Path, partition_by: list[str] | None, where: str
) -> None:
    """NaN is in no bounds of Parquet; decimals and letters are misread in a log, and times are cut there."""
    struct, time = pa.struct([("x", pa.float64())]), pa.timestamp("us", "UTC")
    kinds = (pa.string(), pa.float64(), struct, pa.decimal128(38, 0), time)
    schema = pa.schema(list(zip(("text", "x", "s", "d", "t"), kinds, strict=True)))
    if partition_by:
        DeltaTable.create(tmp_path / "matches", schema, partition_by=partition_by)
    job = DeltaTables(str(tmp_path), "app")
    job.prepare({"matches": schema})
    values = {1.5: 2**53 + 1, math.nan: 7, 0.0: 0}
    columns = [["𠮷", "a", "a"], [*values], [{"x": x} for x in values], [*map(Decimal, values.values())]]
    columns.append([1_500_001, 0, 0])
    job.append("matches", pa.table([*map(pa.array, columns, schema.types)], schema=schema), 0)
    found = Tables(tmp_path, ["matches"]).query(f"SELECT d FROM matches WHERE {where}").read_all()
    assert found["d"].to_pylist() == [7 if ">" in where else 2**53 + 1]


def test_a_table_that_somebody_has_altered_is_appended_to(tmp_path: Path) -> None:
    DeltaTable.create(tmp_path / "matches", SCHEMA, partition_by=["text"])
    job = tables(tmp_path)
    for batch in (0, 1, 1):
        job.append("matches", rows(batch), batch)
    assert numbers(tmp_path / "matches") == [0, 1, 2, 3]
    assert {path.parent.name for path in tmp_path.rglob("*.parquet")} == {"text=a", "text=b"}
