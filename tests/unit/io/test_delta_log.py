"""The log of a Delta table: what it has, what commits append, and what is refused. No Spark."""

from __future__ import annotations

import json
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from spark_pace.core.expr import TypeName
from spark_pace.core.plan.rule import EventSchema, Field
from spark_pace.errors import ConfigError, EventError, StateError
from spark_pace.io.delta_log import DeltaLog, TableFile
from spark_pace.io.event_files import read_table_file, require_columns
from spark_pace.io.files.files import read_json, write_json
from spark_pace.spark.sources.manifest import Manifest, TableCommits, file_of

PLAIN = EventSchema((Field("time", "BIGINT"), Field("x", "BIGINT")), "time", "s")


def append(table: Path, *values: int, **options: Any) -> None:
    rows = pa.table({"time": pa.array(values, pa.int64()), "x": pa.array(values, pa.int64())})
    write_deltalake(table, rows, mode="append", **options)


def rewrite(table: Path, version: int, kind: str, **changes: Any) -> None:
    """Change what a commit says."""
    path = table / "_delta_log" / f"{version:020d}.json"
    actions = [json.loads(line) for line in path.read_text().splitlines()]
    for action in actions:
        if kind in action:
            action[kind].update(changes)
    path.write_text("".join(f"{json.dumps(action)}\n" for action in actions))


def commits_of(
    table: Path,
    entries: list[str],
    from_version: int | None = None,
    position: dict[str, Any] | None = None,
) -> TableCommits:
    return TableCommits(table, DeltaLog(table).metadata().table_id, from_version, entries, position)


def forget_commits(table: Path, *versions: int) -> None:
    """Let a checkpoint take the place of commits."""
    DeltaTable(table).create_checkpoint()
    for version in versions:
        (table / "_delta_log" / f"{version:020d}.json").unlink()


def test_each_look_finds_what_was_appended_since(tmp_path: Path) -> None:
    append(tmp_path, 1)
    append(tmp_path, 2)
    commits = commits_of(tmp_path, [])
    found = commits.new()
    assert commits.new() == []
    append(tmp_path, 3)
    DeltaTable(tmp_path).optimize.compact()
    append(tmp_path, 4)
    found += commits.new()
    assert found == sorted(found)
    assert [file_of(entry).version for entry in found] == [0, 1, 2, 4]
    assert commits_of(tmp_path, found[:2]).new() == found[2:]
    assert commits_of(tmp_path, found[:3]).new() == found[2:]  # a crash may have cut the entries of commit 2
    assert commits_of(tmp_path, [], 1).new()[1:] == found[2:]
    assert commits_of(tmp_path, [], 5).new() == []


def test_a_log_that_has_lost_only_what_was_read_is_read_on(tmp_path: Path) -> None:
    for value in range(3):
        append(tmp_path, value)
    commits = commits_of(tmp_path, [])
    found = commits.new()
    assert commits_of(tmp_path, found[:2], 0, commits.position(3)).new() == []  # the manifest is an older one
    append(tmp_path, 3)
    DeltaTable(tmp_path).optimize.compact()  # a commit that adds nothing has no entry
    found += commits.new()
    write_json(tmp_path / "log.json", commits.position(len(found)) or {}, "one")
    position = read_json(tmp_path / "log.json", "one")
    forget_commits(tmp_path, 0, 1, 2, 3)
    assert commits_of(tmp_path, found, None, position).new() == []
    append(tmp_path, 5)
    assert [file_of(entry).version for entry in commits_of(tmp_path, found, None, position).new()] == [5]
    assert [file_of(entry).version for entry in commits.new()] == [5]
    with pytest.raises(StateError, match="version 3 — must have the commits that were not read yet"):
        commits_of(tmp_path, found).new()  # nothing tells that all of commit 3 is known
    append(tmp_path, 6)
    forget_commits(tmp_path, 5)
    with pytest.raises(StateError, match="version 5 — must have the commits that were not read yet"):
        commits_of(tmp_path, found, None, position).new()


def test_a_table_that_is_made_anew_is_noticed_though_the_commit_that_was_read_last_is_gone(
    tmp_path: Path,
) -> None:
    for value in range(2):
        append(tmp_path / "a", value)
    commits = commits_of(tmp_path / "a", [])
    found = commits.new()
    known = DeltaLog(tmp_path / "a").metadata().table_id
    for value in range(4):
        append(tmp_path / "b", value)
    forget_commits(tmp_path / "b", 0, 1)
    (tmp_path / "a").rename(tmp_path / "gone")
    (tmp_path / "b").rename(tmp_path / "a")
    for reader in (commits, TableCommits(tmp_path / "a", known, None, found, commits.position(len(found)))):
        with pytest.raises(StateError, match="must be the table that the checkpoint has read"):
            reader.new()


def test_a_line_of_a_commit_ends_with_a_line_feed_only(tmp_path: Path) -> None:
    for value in ("a\u2028b", "a\x85b"):
        rows = pa.table({"k": [value], "x": [1]})
        write_deltalake(tmp_path, rows, mode="append", partition_by=["k"])
    assert [file.partition["k"] for file in DeltaLog(tmp_path).files(1)] == ["a\u2028b", "a\x85b"]


def test_rows_that_were_joined_stand_where_the_first_of_them_stood(tmp_path: Path) -> None:
    append(tmp_path, 1)
    append(tmp_path, 2)
    DeltaTable(tmp_path).optimize.compact()
    append(tmp_path, 3)
    log = DeltaLog(tmp_path)
    assert [file.version for file in log.files(3)] == [0, 3]
    assert [file.version for file in log.files(1)] == [0, 1]


def test_a_log_that_begins_with_a_checkpoint_has_the_same_files(tmp_path: Path) -> None:
    for value in range(3):
        append(tmp_path, value)
    log = DeltaLog(tmp_path)
    whole, table_id = log.files(2), log.metadata().table_id
    DeltaTable(tmp_path).create_checkpoint()
    append(tmp_path, 3)
    (tmp_path / "_delta_log" / f"{0:020d}.json").unlink()
    files = log.files(3)
    assert [file.path for file in files[:3]] == [file.path for file in whole]
    assert [file.version for file in files] == [2, 2, 2, 3]
    assert log.metadata().table_id == table_id


def write_in_turn(table: Path, version: int, turns: str) -> None:
    """Let the files of a commit, with x = 1, 2 and 3, be written in an order of their own."""
    path = table / "_delta_log" / f"{version:020d}.json"
    actions = [json.loads(line) for line in path.read_text().splitlines()]
    for add in (action["add"] for action in actions if "add" in action):
        add["modificationTime"] = 10 * version + turns.index(add["path"][2])
    path.write_text("".join(f"{json.dumps(action)}\n" for action in actions))


def test_files_have_one_order_whether_commits_or_a_checkpoint_name_them(tmp_path: Path) -> None:
    table = tmp_path / "in"
    for version in range(2):
        rows = pa.table({"time": [1, 2, 3], "x": [1, 2, 3]})
        write_deltalake(table, rows, mode="append", partition_by=["x"])
        write_in_turn(table, version, "231")
    looks = [commits_of(table, [], 0).new(), commits_of(table, []).new()]
    DeltaTable(table).create_checkpoint()
    (table / "_delta_log" / f"{0:020d}.json").unlink()
    looks.append(commits_of(table, []).new())
    for number, found in enumerate(looks):
        manifest = Manifest(tmp_path / f"manifest {number}")
        manifest.add(found[:4])
        manifest.add(found)
        assert manifest.entries == found
        assert [file_of(entry).path[:3] for entry in found] == ["x=2", "x=3", "x=1"] * 2


def test_a_table_that_is_made_anew_while_it_is_read_is_refused(tmp_path: Path) -> None:
    append(tmp_path / "a", 1)
    append(tmp_path / "a", 2)
    commits = commits_of(tmp_path / "a", [])
    commits.new()
    for value in range(3):
        append(tmp_path / "b", value)
    (tmp_path / "a").rename(tmp_path / "gone")
    with pytest.raises(StateError, match="must be a Delta table that is there as long as it is read"):
        commits.new()
    (tmp_path / "b").rename(tmp_path / "a")
    with pytest.raises(StateError, match="must be the table that the checkpoint has read"):
        commits.new()


REFUSED = {
    "deletion vector": (
        ("add", {"deletionVector": {"storageType": "u"}}),
        r"version 1 — must have no deletion vectors; got one for part-\S+\. Read another table",
    ),
    "column mapping": (
        ("metaData", {"configuration": {"delta.columnMapping.mode": "name"}}),
        "version 0 — must have its columns under their own names; got column mapping by name",
    ),
    "feature": (
        ("protocol", {"minReaderVersion": 3, "readerFeatures": ["timestampNtz", "variantType"]}),
        "version 0 — must have no features that are not known here; got variantType",
    ),
    "protocol": (("protocol", {"minReaderVersion": 4}), "got version 4 of the protocol"),
    "absolute path": (("add", {"path": "file:///etc/passwd"}), "must have its files in its folder"),
    "path upwards": (("add", {"path": "../b/part"}), "must have its files in its folder; got ../b/part"),
    "nothing": (("add", {"path": None}), "must have a log that can be read"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_could_be_misread_is_refused(tmp_path: Path, name: str) -> None:
    (kind, changes), words = REFUSED[name]
    append(tmp_path, 1)
    append(tmp_path, 2)
    rewrite(tmp_path, 1 if kind == "add" else 0, kind, **changes)
    with pytest.raises(StateError, match=words) as caught:
        DeltaLog(tmp_path).files(1)
    assert "\n" not in str(caught.value)


def test_a_known_feature_that_is_not_used_is_no_hindrance(tmp_path: Path) -> None:
    append(tmp_path, 1)
    rewrite(tmp_path, 0, "protocol", minReaderVersion=3, readerFeatures=["deletionVectors", "columnMapping"])
    assert len(DeltaLog(tmp_path).files(0)) == 1


# (attribute, type, value in the log, value)
PARTITIONED: tuple[tuple[str, TypeName, str | None, Any], ...] = (
    ("n", "BIGINT", "7", 7),
    ("f", "DOUBLE", "1.5", 1.5),
    ("ok", "BOOLEAN", "true", True),
    ("s", "STRING", "a b", "a b"),
    ("d", "DATE", "2024-02-29", date(2024, 2, 29)),
    ("at", "TIMESTAMP", "2024-01-01 10:00:00", datetime(2024, 1, 1, 10)),
    ("zoned", "TIMESTAMP", "2024-01-01T10:00:00.5Z", datetime(2024, 1, 1, 10, 0, 0, 500_000)),
    ("amount", "DECIMAL(5,2)", "1.25", Decimal("1.25")),
    ("none", "BIGINT", None, None),
    ("empty", "STRING", "", None),
)


def test_columns_that_partition_a_table_are_attributes(tmp_path: Path) -> None:
    fields = tuple(Field(name, kind) for name, kind, _, _ in PARTITIONED)
    schema = EventSchema((*PLAIN.fields, *fields), "time", "s")
    append(tmp_path, 1, 2)
    (file,) = DeltaLog(tmp_path).files(0)
    texts = {name: text for name, _, text, _ in PARTITIONED} | {"ignored": "x"}
    read = read_table_file(tmp_path, TableFile(12, file.path, texts), schema)
    expected = {name: value for name, _, _, value in PARTITIONED}
    assert read.events.select(list(expected)).to_pylist() == [expected, expected]
    assert read.events["@source"][0].as_py() == f"00000000000000000012/{file.path}"
    assert read.bad_rows == 0


def test_a_column_of_another_type_is_told_with_the_version(tmp_path: Path) -> None:
    append(tmp_path, 1)
    (file,) = DeltaLog(tmp_path).files(0)
    schema = EventSchema((*PLAIN.fields[:1], Field("x", "STRING")), "time", "s")
    words = "version 0: x — must be STRING; got: a column of int64. Declare the attribute as the table"
    with pytest.raises(EventError, match=words):
        read_table_file(tmp_path, file, schema)
    with pytest.raises(
        ConfigError, match=r"events.schema — must declare attributes as .*; got x — must be STRING"
    ):
        require_columns(tmp_path, DeltaLog(tmp_path).metadata(), schema)
    missing = EventSchema((*PLAIN.fields, Field("y", "STRING")), "time", "s")
    with pytest.raises(ConfigError, match=r'must name columns of .*; got "y"\. It has: time, x\.'):
        require_columns(tmp_path, DeltaLog(tmp_path).metadata(), missing)


def test_integers_are_decimals_and_one_that_does_not_fit_is_a_bad_record(tmp_path: Path) -> None:
    append(tmp_path, 1, 1000)
    (file,) = DeltaLog(tmp_path).files(0)
    schema = EventSchema((*PLAIN.fields[:1], Field("x", "DECIMAL(5,2)")), "time", "s")
    require_columns(tmp_path, DeltaLog(tmp_path).metadata(), schema)
    read = read_table_file(tmp_path, file, schema)
    assert read.events["x"].to_pylist() == [Decimal("1.00")]
    assert read.bad["reason"].to_pylist() == ["x — must be DECIMAL(5,2); got: 1000"]


def test_a_file_whose_texts_are_views_is_read(tmp_path: Path) -> None:
    """So the writer of tables in Rust stores what it has computed."""
    schema = EventSchema((*PLAIN.fields, Field("s", "STRING")), "time", "s")
    pq.write_table(pa.table({"time": [1], "s": pa.array(["a"], pa.string_view())}), tmp_path / "part")
    read = read_table_file(tmp_path, TableFile(0, "part"), schema)
    assert read.events["s"].to_pylist() == ["a"]


def test_a_damaged_file_is_one_bad_record(tmp_path: Path) -> None:
    append(tmp_path, 1)
    (file,) = DeltaLog(tmp_path).files(0)
    (tmp_path / file.path).write_bytes(b"no Parquet")
    read = read_table_file(tmp_path, file, PLAIN)
    assert (read.events.num_rows, read.bad_rows) == (0, 1)
