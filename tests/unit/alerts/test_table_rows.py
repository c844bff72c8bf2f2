"""The rows of a table, piece by piece, wherever a cursor stands."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from spark_pace.alerts.cursor import Cursor, Failure, Place, Sending, read_cursor, write_cursor
from spark_pace.alerts.table_rows import Piece, TableRows
from spark_pace.core.intake.sift import LATE_SCHEMA
from spark_pace.errors import StateError
from tests.support.alerts import TIME, job_tables, match_rows

BEGIN = Cursor({"matches": Place(1, 0, 0), "late": Place(1, 0, 0)})


def read(rows: TableRows, cursor: Cursor, most: int = 100) -> tuple[Cursor, list[Piece]]:
    """All pieces from a cursor on, and the cursor behind them."""
    found: list[Piece] = []
    while pieces := list(rows.pieces(cursor, most)):
        for piece in pieces:
            numbers = {**cursor.next_out_seq, **piece.next_out_seq}
            cursor = replace(cursor.at(rows.table, piece.behind), next_out_seq=numbers, sending=None)
        found += [piece for piece in pieces if piece.rows.num_rows]
    return cursor, found


def numbers(pieces: list[Piece]) -> list[list[int]]:
    return [piece.rows["out_seq"].to_pylist() for piece in pieces]


def matches_of(folder: Path, rules: tuple[str, ...] | None = None) -> TableRows:
    return TableRows(folder / "matches", "matches", rules)


def test_commits_come_in_order_in_pieces_of_the_wanted_rows(tmp_path: Path) -> None:
    tables = job_tables(tmp_path)
    tables.append("matches", match_rows(("a", range(3)), ("b", range(2))), 0)
    tables.append("matches", match_rows(("a", range(3, 5))), 1)
    cursor, pieces = read(matches_of(tmp_path), BEGIN, 2)
    assert numbers(pieces) == [[0, 1], [2, 0], [1], [3, 4]]
    assert cursor.next_out_seq == {"a": 5, "b": 2}
    assert read(matches_of(tmp_path), cursor)[1] == []
    cursor, pieces = read(matches_of(tmp_path, ("b",)), BEGIN, 2)
    assert numbers(pieces) == [[0, 1]]
    assert cursor.next_out_seq == {"a": 5, "b": 2}


def test_a_cursor_in_the_middle_of_a_commit_goes_on_there(tmp_path: Path) -> None:
    job_tables(tmp_path).append("matches", match_rows(("a", range(10))), 0)
    for row in range(11):
        _, pieces = read(matches_of(tmp_path), BEGIN.at("matches", Place(1, row, 0)), 4)
        assert [*chain(*numbers(pieces))] == list(range(row, 10))
        assert matches_of(tmp_path).waiting(Place(1, row, 0), 1) == 10 - row


def test_rows_that_may_have_been_sent_are_repeats_and_no_others(tmp_path: Path) -> None:
    tables = job_tables(tmp_path)
    tables.append("matches", match_rows(("a", range(1200))), 0)
    tables.append("matches", match_rows(("a", range(1200, 1210))), 1)
    cursor = replace(BEGIN.at("matches", Place(1, 498, 0)), sending=Sending("matches", 503))
    _, pieces = read(matches_of(tmp_path), cursor, 100)
    repeats = [number for piece in pieces if piece.is_repeat for number in piece.rows["out_seq"].to_pylist()]
    assert repeats == [498, 499, 500, 501, 502]
    assert [*chain(*numbers(pieces))] == list(range(498, 1210))


def test_only_wanted_rows_wait(tmp_path: Path) -> None:
    tables = job_tables(tmp_path)
    tables.append("matches", match_rows(("a", range(700)), ("b", range(600))), 0)
    tables.append("matches", match_rows(("b", range(600, 605))), 1)
    assert matches_of(tmp_path).waiting(Place(1, 0, 0), 2) == 1305
    assert matches_of(tmp_path, ("b",)).waiting(Place(1, 0, 0), 2) == 605
    assert matches_of(tmp_path, ("b",)).waiting(Place(1, 750, 0), 2) == 555


def test_commits_that_the_log_has_forgotten_are_read_from_the_files_that_there_are(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tables = job_tables(tmp_path)
    for batch in range(4):
        tables.append("matches", match_rows(("a", range(batch * 3, batch * 3 + 3))), batch)
    cursor, _ = read(matches_of(tmp_path), BEGIN)
    for batch in range(4, 8):
        tables.append("matches", match_rows(("a", range(batch * 3, batch * 3 + 3))), batch)
    DeltaTable(f"{tmp_path}/matches").create_checkpoint()
    for version in range(8):
        (tmp_path / "matches" / "_delta_log" / f"{version:020d}.json").unlink()
    rows = matches_of(tmp_path)
    cursor, pieces = read(rows, cursor)
    assert numbers(pieces) == [[12, 13, 14], [15, 16, 17], [18, 19, 20], [21, 22, 23]]
    assert all(piece.is_repeat for piece in pieces)
    (told,) = caplog.messages
    assert told == (
        f"{tmp_path}/matches — must keep its commits and files until alerts are sent; got a log without "
        "commit 5. What was not sent is read from the files that it has now, and sent with repeat: true."
    )
    tables.append("matches", match_rows(("a", range(24, 25))), 8)
    _, pieces = read(rows, cursor)
    assert (numbers(pieces), pieces[0].is_repeat) == ([[24]], False)


def test_after_a_crash_the_rest_goes_on_with_the_file_that_was_under_way(tmp_path: Path) -> None:
    tables = job_tables(tmp_path)
    for batch in range(4):
        tables.append("matches", match_rows(("a", range(batch * 3, batch * 3 + 3))), batch)
    DeltaTable(f"{tmp_path}/matches").create_checkpoint()
    for version in range(4):
        (tmp_path / "matches" / "_delta_log" / f"{version:020d}.json").unlink()
    cursor = BEGIN
    for piece, _ in zip(matches_of(tmp_path).pieces(cursor, 2), range(5), strict=False):
        cursor = cursor.at("matches", piece.behind)
    _, pieces = read(matches_of(tmp_path), cursor, 2)
    assert numbers(pieces) == [[6, 7], [8], [9, 10], [11]]


def test_files_that_were_joined_and_removed_are_read_as_joined(tmp_path: Path) -> None:
    tables = job_tables(tmp_path)
    tables.append("matches", match_rows(("a", range(3))), 0)
    cursor, _ = read(matches_of(tmp_path), BEGIN)
    tables.append("matches", match_rows(("a", range(3, 5))), 1)
    there = DeltaTable(f"{tmp_path}/matches")
    there.optimize.compact()
    there.vacuum(0, dry_run=False, enforce_retention_duration=False)
    cursor, pieces = read(matches_of(tmp_path), cursor)
    assert numbers(pieces) == [[3, 4]]
    tables.append("matches", match_rows(("a", range(5, 6))), 2)
    assert numbers(read(matches_of(tmp_path), cursor)[1]) == [[5]]


def test_a_commit_that_joins_files_sends_nothing_again(tmp_path: Path) -> None:
    tables = job_tables(tmp_path)
    tables.append("matches", match_rows(("a", range(3))), 0)
    tables.append("matches", match_rows(("a", range(3, 5))), 1)
    DeltaTable(f"{tmp_path}/matches").optimize.compact()
    assert numbers(read(matches_of(tmp_path), BEGIN)[1]) == [[0, 1, 2], [3, 4]]


def test_rows_without_numbers_are_sent_again_where_nothing_tells_them(tmp_path: Path) -> None:
    job_tables(tmp_path)
    late = TableRows(tmp_path / "late", "late", None)

    def append(offset: int) -> None:
        row = {"event_time": TIME, "source": "s", "offset": offset, "reason": "r", "event": "{}"}
        write_deltalake(str(late.log.folder), pa.Table.from_pylist([row], LATE_SCHEMA), mode="append")

    append(0)
    cursor, _ = read(late, BEGIN)
    append(1)
    DeltaTable(str(late.log.folder)).delete("offset = 0")
    append(2)
    _, pieces = read(late, cursor)
    assert [piece.rows["offset"].to_pylist() for piece in pieces] == [[1], [2]]


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
