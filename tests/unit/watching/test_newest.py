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
from spark_pace.watching.facts import MOST_MATCHES, latest_matches
from tests.support.alerts import job_tables, match_rows
from tests.support.watched import BEGAN

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
    assert latest_matches(Tables(tmp_path, ["matches"]), None) == []


def test_the_fields_of_a_rule_that_the_job_does_not_know_are_read_too(tmp_path: Path) -> None:
    tables = job_tables(tmp_path)
    for batch in range(4):
        tables.append("matches", match_rows(("kept", range(20 * batch, 20 * batch + 20))), batch)
    known = latest_matches(Tables(tmp_path, ["matches"]), {"kept": ["y"]})
    assert len(known) == MOST_MATCHES and known[0]["out_seq"] == 79 and known[0]["fields"] == ""
    others = latest_matches(Tables(tmp_path, ["matches"]), {"another": []})
    assert others[0]["fields"] == "x=79" and others == latest_matches(Tables(tmp_path, ["matches"]), None)
