"""The newest rows of a table, whatever files they are in, and what is read for them."""

from __future__ import annotations

import random
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from spark_pace.core.tables import UTC_TIME
from spark_pace.io.query import Tables
from spark_pace.watching import facts
from spark_pace.watching.facts import MOST_MATCHES, latest_matches
from tests.support.alerts import job_tables, match_rows
from tests.support.watched import BEGAN

LATE = pa.schema({
    "batch_id": pa.int64(), "source": pa.string(), "lateness_us": pa.int64(),
    "event_time": pa.timestamp("us", "UTC"),
})  # fmt: skip
SCHEMA = pa.schema([("at", UTC_TIME), ("number", pa.int64())])


def rows(chance: random.Random, about: int) -> list[dict[str, Any]]:
    times = [BEGAN + timedelta(milliseconds=about + chance.randint(0, 3_000)) for _ in range(3)]
    return [{"at": at, "number": chance.randint(0, 99)} for at in times[: chance.randint(1, 3)]]


@pytest.mark.parametrize("seed", range(5))
def test_the_newest_rows_are_those_of_the_whole_table(tmp_path: Path, seed: int) -> None:
    chance, written = random.Random(seed), list[dict[str, Any]]()
    for number in range(12):
        more = rows(chance, 1_000 * number)
        written += more
        write_deltalake(tmp_path / "late", pa.Table.from_pylist(more, SCHEMA), mode="append")
    tables = Tables(tmp_path, ["late"])
    ordered = sorted(written, key=lambda row: (row["at"], row["number"]), reverse=True)
    for most in (1, 7, len(written)):
        assert tables.newest("late", ["at", "number"], most).to_pylist() == ordered[:most]


def test_of_a_table_without_rows_there_are_none(tmp_path: Path) -> None:
    job_tables(tmp_path)
    assert latest_matches(Tables(tmp_path, ["matches"])) == []


def test_the_latest_matches_have_the_fields_that_are_filled(tmp_path: Path) -> None:
    tables = job_tables(tmp_path)
    for batch in range(4):
        tables.append("matches", match_rows(("kept", range(20 * batch, 20 * batch + 20))), batch)
    latest = latest_matches(Tables(tmp_path, ["matches"]))
    assert len(latest) == MOST_MATCHES and latest[0]["out_seq"] == 79 and latest[0]["fields"] == "x=79"


def test_of_many_rows_the_last_ones_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(facts, "_MOST_COUNTED", 6)
    kinds = {name: pa.string() for name in ("kind", "rule", "reason", "source")}
    quarantine = pa.schema({**kinds, "offset": pa.int64(), "batch_id": pa.int64()})
    for batch in (11, 9, 10, 12):
        late = [(batch, source, 1_000_000 * batch, BEGAN) for source in ("s", None, "t")]
        write_deltalake(tmp_path / "late", table_of(late, LATE), mode="append")
        bad = [("record", None, reason, None, batch) for reason in ("no JSON", "long " * 100, "no JSON")]
        rows = table_of([(*row, batch) for row in bad], quarantine)
        write_deltalake(tmp_path / "quarantine", rows, mode="append")
    told = facts.late_events(Tables(tmp_path, ["late"]))
    assert {(one["source"], one["events"], one["most_seconds"]) for one in told["by_source"]} == {
        (source, 2, 12.0) for source in ("s", None, "t")
    }
    assert len(told["newest"]) == 12 and told["newest"][0]["batch_id"] == 12
    most, other = facts.reasons(Tables(tmp_path, ["quarantine"]))
    assert (most["rows"], most["reason"], most["at"]) == (4, "no JSON", ":11")
    assert (other["rows"], other["reason"]) == (2, ("long " * 100)[:300])


def table_of(rows: list[tuple[Any, ...]], schema: pa.Schema) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema)
