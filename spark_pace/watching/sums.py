"""Sums over the rows of a table that grows, for which each of its files is read once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from spark_pace.io.query import Tables

_FILES_AT_ONCE = 200


@dataclass(frozen=True)
class Summing:
    """What is added up.

    Attributes:
        table: the name of the table.
        columns: those that are read.
        of_rows: gives the sums of some rows, in a table.
        of_sums: gives the sums of sums that stand in one table below each other.
    """

    table: str
    columns: tuple[str, ...]
    of_rows: Callable[[pa.Table], pa.Table]
    of_sums: Callable[[pa.Table], pa.Table]


class Sums:
    """The sums of a table's rows so far.

    A table that has lost files, because somebody has put them together or deleted rows, is read anew.
    """

    def __init__(self, summing: Summing) -> None:
        """Read nothing yet."""
        self._summing = summing
        self._read: frozenset[str] = frozenset()
        self._sums: pa.Table | None = None

    def of(self, tables: Tables, require_running: Callable[[], None]) -> pa.Table:
        """The sums of the table as it is in `tables`.

        Args:
            tables: with the table.
            require_running: called between the files; what it raises ends the look, which is then forgotten.

        Raises:
            StateError: the table has lost a file.
        """
        table, columns = self._summing.table, self._summing.columns
        there = tables.files(table)
        known, sums = self._read, self._sums
        if sums is None or not known <= there.keys():
            known, sums = frozenset(), self._summing.of_rows(tables.rows_of(table, {}, columns))
        new = [file for file in there if file not in known]
        for start in range(0, len(new), _FILES_AT_ONCE):
            require_running()
            some = {file: there[file] for file in new[start : start + _FILES_AT_ONCE]}
            rows = self._summing.of_rows(tables.rows_of(table, some, columns))
            sums = self._summing.of_sums(pa.concat_tables([sums, rows]))
        self._read, self._sums = frozenset(there), sums  # all of it or, after an error, nothing
        return sums
