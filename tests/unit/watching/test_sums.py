"""Sums over a table that grows are those over all of it, however it was read and rewritten."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable, write_deltalake

from spark_pace.errors import StateError
from spark_pace.io.query import Tables, read_table
from spark_pace.watching import facts, seen
from spark_pace.watching.facts import LATE, QUARANTINED
from spark_pace.watching.seen import Summing, Sums

SCHEMAS = {
    "late": pa.schema(
        {"source": pa.string(), "lateness_us": pa.int64(), "event_time": pa.timestamp("us", "UTC")}
    ),
    "quarantine": pa.schema(
        {name: pa.string() for name in ("kind", "rule", "reason", "source")} | {"offset": pa.int64()}
    ),
}
VALUES = {"source": ["s", "t", None], "kind": ["bad record", "failed"], "rule": [None, "r"]}


def append(folder: Path, name: str, numbers: range, by: str | None = None) -> None:
    def value(field: pa.Field, number: int) -> object:
        if field.name == "reason":
            return f"{'long ' * 100}{number % 5}" if number % 2 else f"reason {number % 3}"
        return VALUES[field.name][number % len(VALUES[field.name])] if field.name in VALUES else number

    added = [{field.name: value(field, number) for field in SCHEMAS[name]} for number in numbers]
    write_deltalake(folder / name, pa.Table.from_pylist(added, SCHEMAS[name]), mode="append", partition_by=by)


@pytest.mark.parametrize("summing", [LATE, QUARANTINED], ids=lambda summing: summing.table)
def test_each_file_is_read_once_until_some_are_put_together(
    tmp_path: Path, summing: Summing, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    rows_of = Tables.rows_of

    def noted(tables: Tables, name: str, files: dict[str, dict[str, Any]], columns: list[str]) -> pa.Table:
        read.extend(files)
        return rows_of(tables, name, files, columns)

    monkeypatch.setattr(Tables, "rows_of", noted)
    monkeypatch.setattr(seen, "_FILES_AT_ONCE", 2)
    name, growing = summing.table, Sums(summing)
    for step in range(4):
        read.clear()
        append(tmp_path, name, range(7 * step, 7 * step + 7))
        append(tmp_path, name, range(100, 103))
        if step == 3:
            DeltaTable(tmp_path / name).optimize.compact()
        tables = Tables(tmp_path, [name])
        found = growing.of(tables, lambda: None)
        assert len(read) == (1 if step == 3 else 2)
        whole = summing.of_rows(read_table(tmp_path, name).cast(SCHEMAS[name]))
        by = [(one, "ascending") for one in found.column_names]
        assert found.sort_by(by) == whole.cast(found.schema).sort_by(by)
        assert pc.sum(found["events" if name == "late" else "rows"]).as_py() == 10 * (step + 1)


def test_a_table_that_somebody_has_partitioned_is_added_up_too(tmp_path: Path) -> None:
    append(tmp_path, "quarantine", range(30))
    append(tmp_path / "by kind", "quarantine", range(30), "kind")
    found = (
        Sums(QUARANTINED).of(Tables(out, ["quarantine"]), lambda: None)
        for out in (tmp_path, tmp_path / "by kind")
    )
    whole, parts = (rows.sort_by([("kind", "ascending"), ("reason", "ascending")]) for rows in found)
    assert parts == whole and whole.num_rows > 3


def test_a_lost_file_is_told(tmp_path: Path) -> None:
    append(tmp_path, "late", range(3))
    tables = Tables(tmp_path, ["late"])
    [file] = tables.files("late")
    (tmp_path / "late" / file).unlink()
    with pytest.raises(StateError, match="the table late — must have all its files as they were written"):
        Sums(LATE).of(tables, lambda: None)


def test_reasons_that_all_differ_take_bounded_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(facts, "_MOST_REASONS", 3)
    append(tmp_path, "quarantine", range(30))
    assert Sums(QUARANTINED).of(Tables(tmp_path, ["quarantine"]), lambda: None).num_rows == 3
