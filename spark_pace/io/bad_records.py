"""Collects records that are no events: a row for each of a file's first ones, one row for all others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import pyarrow as pa

from spark_pace.core.plan.plan import MOST_BAD_RECORDS
from spark_pace.core.tables import Ints
from spark_pace.errors import one_line

BAD_SCHEMA = pa.schema(
    [("source", pa.string()), ("offset", pa.int64()), ("reason", pa.string()), ("raw", pa.binary())]
)
WHOLE_FILE = "the file — "  # begins the reason if a whole file is one bad record
MOST_BAD_BYTES = 64 << 20  # the size of a file's bad records that get a row each

Bad = tuple[int, str, bytes]  # offset, reason, raw
_Tell = Callable[[int], tuple[str, bytes]]  # gives the reason and the bytes of a record by its index
_NEWLINE = ord("\n")


class Raws(Protocol):
    """The bytes of records, by their numbers."""

    def __getitem__(self, row: int) -> bytes:
        """The bytes of record `row`."""


class Lines:
    """The lines of a chunk, by their numbers."""

    def __init__(self, chunk: bytes) -> None:
        """Keep the chunk; lines are sought when the first one is asked for."""
        self.chunk = chunk

    @property
    def count(self) -> int:
        """The number of lines."""
        # five times as fast as `bytes.count`
        return int(np.count_nonzero(np.frombuffer(self.chunk, np.uint8) == _NEWLINE)) + 1

    @cached_property
    def _ends(self) -> Ints:
        ends = np.flatnonzero(np.frombuffer(self.chunk, np.uint8) == _NEWLINE)
        return np.concatenate([[-1], ends, [len(self.chunk)]])

    def __getitem__(self, row: int) -> bytes:
        """The bytes of line `row`."""
        return self.chunk[self._ends[row] + 1 : self._ends[row + 1]]


@dataclass
class _Others:
    """The bad records of a file that share one row."""

    first: Bad
    last: int
    count: int

    def told(self) -> Bad:
        """The row for all these records, with the offset of the first."""
        offset, reason, raw = self.first
        if self.count == 1:
            return self.first
        which = f"{self.count:,} bad records of rows {offset} to {self.last}, of which this is the first"
        return offset, f"{which}: {reason}", raw


class BadRecords:
    """Collects the bad records of a file in bounded memory.

    Attributes:
        count: the number of bad records.
        ignored: the number of lines that are no records.
    """

    def __init__(self, most: int | None = MOST_BAD_RECORDS) -> None:
        """Give the first `most` bad records a row each; None: all of them."""
        self.count = self.ignored = 0
        self._most = most
        self._bytes_left = MOST_BAD_BYTES
        self._told: list[Bad] = []
        self._others: _Others | None = None
        self._found: list[tuple[Ints, _Tell]] = []

    @property
    def most(self) -> int | None:
        """The number of further bad records that may need a reason; None: all."""
        return None if self._most is None else max(0, self._most - len(self._told)) + 1

    def add(self, first: int, rows: Ints, reason: Callable[[int], str], raws: Raws) -> None:
        """Add bad records of the part of the file that is being read.

        Args:
            first: the offset of the part's record 0 in the file.
            rows: int64[n], the numbers of the bad records in the part.
            reason: gives the reason for a record by its index among the n.
            raws: the records of the part.
        """
        if len(rows):
            self._found.append((first + rows, lambda index: (reason(index), raws[int(rows[index])])))

    def add_one(self, offset: int, reason: str, raw: bytes) -> None:
        """Add one bad record."""
        self.add(offset, np.zeros(1, np.int64), lambda _: reason, (raw,))

    def settle(self) -> None:
        """Put the bad records added so far in order; later ones must come from later parts of the file."""
        if not self._found:
            return
        offsets = np.concatenate([some for some, _ in self._found])
        owners = np.repeat(np.arange(len(self._found)), [len(some) for some, _ in self._found])
        places = np.concatenate([np.arange(len(some)) for some, _ in self._found])
        order = np.argsort(offsets, kind="stable")
        self.count += len(order)
        told = 0
        while told < len(order) and self._others is None:
            row = order[told]
            self._tell(int(offsets[row]), *self._found[owners[row]][1](int(places[row])))
            told += 1
        if self._others is not None and told < len(order):
            self._others.last = int(offsets[order[-1]])
            self._others.count += len(order) - told
        self._found = []

    def _tell(self, offset: int, reason: str, raw: bytes) -> None:
        self._bytes_left -= len(raw) if self._most is not None else 0
        bad = (offset, one_line(reason), raw)
        if self._bytes_left < 0 or len(self._told) == self._most:
            self._others = _Others(bad, offset, 1)
        else:
            self._told.append(bad)

    def add_to_first(self, note: str) -> None:
        """Append a note to the reason of the first bad record, which must have a row of its own."""
        offset, reason, raw = self._told[0]
        self._told[0] = offset, one_line(f"{reason}; {note}"), raw

    def rows(self) -> list[Bad]:
        """The rows for the bad records, by offset."""
        self.settle()
        return [*self._told, *([self._others.told()] if self._others else [])]

    def table(self, source: str) -> pa.Table:
        """The rows for the bad records as a table of `BAD_SCHEMA`, with this source."""
        rows = self.rows()
        offsets, reasons, raws = zip(*rows, strict=True) if rows else ((), (), ())
        return pa.table([[source] * len(rows), offsets, reasons, raws], schema=BAD_SCHEMA)
