"""The rows of a table, batch by batch, whatever becomes of its files and its log."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from spark_pace.alerts.queue import Cursor, Failure, Place, Sending, TableRows, read_cursor, write_cursor
from spark_pace.core.intake.sift import LATE_SCHEMA
from spark_pace.errors import StateError
from tests.support.alerts import TIME, job_tables, match_rows

BEGIN = Cursor({"matches": Place(1), "late": Place(1)})
RUNS = [(("b", range(2)), ("a", range(3))), (), (("a", range(3, 5)),)]  # of each batch


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """The place of a job's tables."""
    tables = job_tables(tmp_path)
    for batch, runs in enumerate(RUNS):
        if runs:
            tables.append("matches", match_rows(*runs), batch)
    return tmp_path


def numbers(rows: pa.Table) -> list[tuple[str, int]]:
    return list(zip(rows["rule"].to_pylist(), rows["out_seq"].to_pylist(), strict=True))


def joined(out: Path) -> None:
    """Join the files, remove the old ones, and let the log forget the commits."""
    there = DeltaTable(f"{out}/matches")
    there.optimize.compact()
    there.vacuum(0, dry_run=False, enforce_retention_duration=False)
    there.create_checkpoint()
    for version in range(there.version()):
        (out / "matches" / "_delta_log" / f"{version:020d}.json").unlink()


@pytest.mark.parametrize("are_joined", [False, True])
def test_batches_are_counted_and_read_in_parts_in_an_order_that_stays(out: Path, are_joined: bool) -> None:
    if are_joined:
        joined(out)
    every = TableRows(out, "matches", None)
    assert every.counts(0, 2) == [(0, 5), (2, 2)]
    assert every.counts(1, 1) == []
    whole = [("a", 0), ("a", 1), ("a", 2), ("b", 0), ("b", 1)]
    for first in range(6):
        assert numbers(every.rows(0, first, 3)) == whole[first : first + 3]
    assert [numbers(every.rows(batch, 0, 9)) for batch in (1, 2)] == [[], [("a", 3), ("a", 4)]]
    assert [every.waiting(place, 2) for place in (Place(0), Place(0, 4), Place(1), Place(3))] == [7, 3, 2, 0]


def test_only_the_matches_of_wanted_rules_are_there(out: Path) -> None:
    wanted = TableRows(out, "matches", ("b", "it's"))
    assert wanted.counts(0, 2) == [(0, 2)]
    assert numbers(wanted.rows(0, 1, 9)) == [("b", 1)]


def test_other_tables_have_the_rows_of_all_rules(tmp_path: Path) -> None:
    row = {"event_time": TIME, "source": "s", "reason": "r", "event": "{}"}
    rows = [row | {"offset": offset} for offset in (2, 1)]
    job_tables(tmp_path).append("late", pa.Table.from_pylist(rows, LATE_SCHEMA), 7)
    late = TableRows(tmp_path, "late", ("a",))
    assert late.counts(0, 7) == [(7, 2)]
    assert late.rows(7, 0, 9)["offset"].to_pylist() == [1, 2]


def test_a_cursor_is_read_as_it_was_written(tmp_path: Path) -> None:
    assert read_cursor(tmp_path / "c.json", "one") is None
    for cursor in (
        BEGIN,
        replace(BEGIN, sending=Sending("late", 3), failure=Failure("now", "503", over=True)),
    ):
        write_cursor(tmp_path / "c.json", cursor, "one")
        assert read_cursor(tmp_path / "c.json", "one") == cursor
    of_others = []
    for name, checkpoint in (("d.json", "one"), ("c.json", "two")):
        write_cursor(tmp_path / name, BEGIN, checkpoint)
        of_others.append((tmp_path / name).read_text())
    for text in ("{}", "[", '{"places": {}, "checksum": "0"}', *of_others):
        (tmp_path / "c.json").write_text(text)
        with pytest.raises(StateError) as refused:
            read_cursor(tmp_path / "c.json", "one")
        assert str(refused.value) == (
            f"{tmp_path}/c.json — must be as this program wrote it; got another content. "
            "Restore the whole checkpoint, or remove this file: its target then begins as a new one."
        )
