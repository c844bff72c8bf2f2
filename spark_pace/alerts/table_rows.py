"""Follows a table of the job: the rows that a target is to be sent, piece by piece, in the order of commits.

The log of a table forgets commits after a day (`spark_pace.io.delta_tables`), and its files may be joined. If
a commit was not sent by then, or a file of it is gone, the rows are taken from the files that the table has
now: from those that are not older than what was sent, without the matches whose numbers say that they were
sent. All of these rows are marked as repeats, because it is not known which of them are.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise

import pyarrow as pa
import pyarrow.compute as pc

from spark_pace.alerts.cursor import Cursor, Place
from spark_pace.errors import EventError
from spark_pace.io.delta_log import Commit, DeltaLog, TableFile
from spark_pace.io.files.addresses import AnyPath
from spark_pace.io.table_files import stored_count, stored_pieces

_LOG = logging.getLogger(__name__)
_READ_ROWS = 500
MATCHES = "matches"


@dataclass(frozen=True)
class Piece:
    """Rows that are sent together.

    Attributes:
        rows: the rows that the target wants; perhaps none.
        begin: where they begin in the table.
        behind: where it goes on behind them.
        until: the row of the commit behind them.
        is_repeat: True if they may have been sent before.
        next_out_seq: the number of the next match of each rule that has matches here, wanted or not.
    """

    rows: pa.Table
    begin: Place
    behind: Place
    until: int
    is_repeat: bool = False
    next_out_seq: dict[str, int] = field(default_factory=dict)


class TableRows:
    """The rows of one table for one target."""

    def __init__(self, folder: AnyPath, table: str, rules: Collection[str] | None) -> None:
        """Take the table in `folder`; of its matches, those of `rules` are wanted, or all."""
        self.table = table
        self.log = DeltaLog(folder)
        self._rules = None if rules is None else pa.array(rules, pa.string())
        self._looked_ns = -1
        self._is_lost = False  # True from a commit that cannot be sent as it was, to the end of the rest

    def pieces(self, cursor: Cursor, most_rows: int) -> Iterator[Piece]:
        """The pieces of the next commit behind the cursor; none if there is no further commit.

        Raises:
            StateError: the log cannot be read.
            EventError: the table lacks a file.
        """
        place = cursor.places[self.table]
        if not self._is_lost and (commit := self._commit(place)) is not None:
            try:
                yield from self._pieces(commit, cursor, most_rows)
            except EventError:  # a file is gone
                self._note_lost(f"commit {commit.version} without a file of it")
                yield Piece(_NO_ROWS, place, place, place.row)  # the cursor may have moved: begin anew
        elif self._is_lost:
            yield from self._rest(cursor, most_rows)

    def waiting(self, place: Place, until: int) -> int:
        """How many wanted rows the commits from a place to the commit `until` have, those that there are.

        Raises:
            StateError: the log cannot be read.
        """
        count, before = 0, place.row
        for version in filter(self.log.has, range(place.following, until + 1)):
            for file in self.log.commit(version).added:
                rows = stored_count(self.log.folder, file)
                count += self._count(file, before) if before < rows else 0
                before = max(0, before - rows)
            before = 0
        return count

    def _commit(self, place: Place) -> Commit | None:
        """The next commit; None if there is none, or if the log has forgotten it."""
        if not self.log.has(place.following) and (changed_ns := self.log.changed_ns()) != self._looked_ns:
            last = max(self.log.versions(), default=-1)
            self._looked_ns = changed_ns
            if last > place.following and not self.log.has(place.following):
                self._note_lost(f"a log without commit {place.following}")
        is_there = not self._is_lost and self.log.has(place.following)
        return self.log.commit(place.following) if is_there else None

    def _note_lost(self, got: str) -> None:
        self._is_lost = True
        must = "must keep its commits and files until alerts are sent"
        do = "What was not sent is read from the files that it has now, and sent with repeat: true."
        _LOG.warning("%s — %s; got %s. %s", self.log.folder, must, got, do)

    def _pieces(self, commit: Commit, cursor: Cursor, most_rows: int) -> Iterator[Piece]:
        place, sending = cursor.places[self.table], cursor.sending
        at_risk = sending.until if sending is not None and sending.table == self.table else 0
        row = 0
        for file in commit.added:
            for stored in stored_pieces(self.log.folder, file, _READ_ROWS):
                for first, rows in _parts(stored, row, (place.row, at_risk)):
                    for piece in self._parcels(rows, first, cursor, most_rows) if first >= place.row else ():
                        is_repeat = piece.until <= at_risk or bool(commit.removed)
                        yield replace(piece, is_repeat=is_repeat)
                row += stored.num_rows
        newest = max((file.added_ms for file in commit.added), default=0)
        end = Place(commit.version + 1, 0, max(newest, place.added_ms))
        yield Piece(_NO_ROWS, end, end, 0)

    def _rest(self, cursor: Cursor, most_rows: int) -> Iterator[Piece]:
        """All that was not sent, from the files that the table has now, the older ones first.

        A file that was joined from others may have its matches in any order, so no number tells what is sent
        before all is. After a crash the file that was under way is sent once more.
        """
        place, numbers = cursor.places[self.table], dict[str, int]()
        last = self.log.versions()[-1]
        there = (file for file in self.log.files(last) if file.added_ms >= place.added_ms)
        for file in sorted(there, key=lambda file: (file.added_ms, file.path)):
            place = replace(place, added_ms=file.added_ms)
            for stored in stored_pieces(self.log.folder, file, _READ_ROWS):
                for piece in self._parcels(stored, 0, cursor, most_rows):
                    numbers |= {
                        rule: max(number, numbers.get(rule, 0)) for rule, number in piece.next_out_seq.items()
                    }
                    yield Piece(piece.rows, place, place, place.row, is_repeat=True)
        self._is_lost = False
        end = Place(last + 1, 0, place.added_ms)
        yield Piece(_NO_ROWS, end, end, 0, next_out_seq=numbers)

    def _parcels(self, rows: pa.Table, first: int, cursor: Cursor, most_rows: int) -> Iterator[Piece]:
        """The wanted ones among the rows of a commit that begin with row `first`, `most_rows` at once."""
        place = cursor.places[self.table]
        wanted = pc.indices_nonzero(self._wanted(rows, cursor.next_out_seq)).to_pylist()
        begin = first
        for number in range(0, max(len(wanted), 1), most_rows):
            indices = wanted[number : number + most_rows]
            is_last = number + most_rows >= len(wanted)
            until = first + (rows.num_rows if is_last else indices[-1] + 1)
            numbers = self._numbers(rows.slice(begin - first, until - begin))
            chosen = rows.take(pa.array(indices, pa.int64()))
            yield Piece(
                chosen, replace(place, row=begin), replace(place, row=until), until, next_out_seq=numbers
            )
            begin = until

    def _wanted(self, rows: pa.Table, next_out_seq: dict[str, int]) -> pa.Array:
        if self.table != MATCHES:
            return pa.repeat(True, rows.num_rows)
        rules = rows["rule"].combine_chunks()
        known = pa.array(next_out_seq.keys(), pa.string())
        least = pa.array(next_out_seq.values(), pa.int64()).take(pc.index_in(rules, known))
        wanted = pc.greater_equal(rows["out_seq"].combine_chunks(), pc.fill_null(least, 0))
        return wanted if self._rules is None else pc.and_(wanted, pc.is_in(rules, self._rules))

    def _numbers(self, rows: pa.Table) -> dict[str, int]:
        if self.table != MATCHES:
            return {}
        greatest = rows.group_by("rule").aggregate([("out_seq", "max")]).to_pylist()
        return {one["rule"]: one["out_seq_max"] + 1 for one in greatest}

    def _count(self, file: TableFile, first: int) -> int:
        """How many rows of a file are wanted, from the row `first` on."""
        if self._rules is None or self.table != MATCHES:
            return stored_count(self.log.folder, file) - first
        pieces = stored_pieces(self.log.folder, file, _READ_ROWS)
        parts = (
            part
            for number, piece in enumerate(pieces)
            for part in _parts(piece, number * _READ_ROWS, (first,))
        )
        wanted = (pc.is_in(rows["rule"], self._rules) for row, rows in parts if row >= first)
        return sum(pc.sum(mask).as_py() or 0 for mask in wanted)


def _parts(rows: pa.Table, first: int, bounds: Collection[int]) -> Iterator[tuple[int, pa.Table]]:
    """Cut rows, the first of which has the number `first`, at numbers of rows."""
    inside = {bound for bound in bounds if first < bound < first + rows.num_rows}
    cuts = sorted({first, first + rows.num_rows, *inside})
    for begin, end in pairwise(cuts):
        yield begin, rows.slice(begin - first, end - begin)


_NO_ROWS = pa.table({})
