"""Reads plain JSON by compiled code, and leaves all other records to pyarrow's reader.

`spark_pace.io.text.scan` says which records are plain. Loading the code takes some milliseconds and llvmlite:
a process does so once it has read enough for that to pay. Spark's workers are forked from a process that has
loaded it. Where there is none, a process that reads very much has it made. Until then pyarrow reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from itertools import accumulate

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from spark_pace import ways
from spark_pace.core.expr import ARROW_TYPES, TypeName
from spark_pace.core.plan.rule import Field
from spark_pace.io.text.column_types import has_infinite
from spark_pace.io.text.lines import PartlyParsed, filled_lines
from spark_pace.io.text.scan import (
    BOOLEAN,
    DATE,
    DIGITS,
    DOUBLE,
    INTEGER,
    LEFT,
    NOTHING,
    NULL,
    READ,
    TEXT,
    TIME,
    Bytes,
    Columns,
    Ints,
    Wanted,
    scan,
)


class CompiledReader:
    """The compiled reader of a process, loaded once it pays."""

    def __init__(self) -> None:
        """Start without the reader."""
        self._read_bytes = 0
        self._is_ready = False

    def is_ready_for(self, size: int) -> bool:
        """True if `scan` can read `size` bytes more; False while loading it does not pay."""
        self._read_bytes += size
        if not self._is_ready and ways.is_loaded(self._read_bytes):
            self.load(ways.is_worth_compiling(self._read_bytes))
        return self._is_ready

    def load(self, is_made_now: bool = False) -> None:
        """Load the compiled reader now, for this process and processes forked from it, if it can be had."""
        self._is_ready = scan.is_ready(NOTHING, is_made_now)


@cache
def compiled_reader() -> CompiledReader:
    """The compiled reader of this process."""
    return CompiledReader()


_KINDS: dict[TypeName, int] = {
    "BIGINT": INTEGER,
    "DOUBLE": DOUBLE,
    "BOOLEAN": BOOLEAN,
    "TIMESTAMP": TIME,
    "DATE": DATE,
    "STRING": TEXT,
}
_WITH_TEXTS = (DOUBLE, TEXT)
_MOST_BYTES = 1 << 30  # the most text at a time, because Arrow's offsets have 32 bits
_GUESSED = 256  # members of a record whose order is remembered
_END_OF_ASCII = 128


class PlainReader:
    """A reader of plain records with certain attributes."""

    def __init__(self, fields: Sequence[Field]) -> None:
        """Read records with these attributes, for which `reads` must be True."""
        self.fields = fields
        names = [field.name.encode() for field in fields]
        self.kinds = np.array([_KINDS[field.type] for field in fields], np.int64)
        self.names = np.frombuffer(b"".join(names), np.uint8)
        self.bounds = np.array([0, *accumulate(map(len, names))], np.int64)
        has_texts = np.isin(self.kinds, _WITH_TEXTS)
        self.places: Ints = np.cumsum(has_texts) - has_texts
        self.text_columns = int(has_texts.sum())

    @staticmethod
    def reads(fields: Sequence[Field], paths: dict[str, tuple[str, ...]]) -> bool:
        """True if compiled code reads these attributes: each `is_plain`, and stands at the top of the record.

        False if there are none.
        """
        return bool(fields) and all(field.is_plain and len(paths[field.name]) == 1 for field in fields)

    def lines(self, chunk: bytes) -> PartlyParsed | None:
        """Read those lines of a chunk that are plain.

        Returns:
            The events, their lines, and the lines that are left to pyarrow's reader. None if pyarrow must
            read all of the chunk: compiled code is not loaded, too few lines are plain, or the chunk is no
            UTF-8 or too long.
        """
        if not compiled_reader().is_ready_for(len(chunk)):
            return None
        bounds, numbers = filled_lines(chunk)
        read = self._read(np.frombuffer(chunk, np.uint8), bounds)
        return read and replace(read, rows=numbers[read.rows], left=numbers[read.left])

    def records(self, text: Bytes, bounds: Ints) -> PartlyParsed | None:
        """Read the records at `bounds`, int64[2, n], of a text; return the same as `lines`."""
        return self._read(text, bounds) if compiled_reader().is_ready_for(len(text)) else None

    def _read(self, text: Bytes, bounds: Ints) -> PartlyParsed | None:
        if len(text) > _MOST_BYTES or not _is_utf8(text):
            return None
        columns = _Columns(self, text, bounds)
        rows = columns.scanned()
        left = np.flatnonzero(columns.outcome == LEFT)
        if ways.is_read_by_columns(rows, rows + len(left)):
            return None
        table = pa.table({field.name: columns.column(at, rows) for at, field in enumerate(self.fields)})
        doubles = [field.name for field in self.fields if field.type == "DOUBLE"]
        if (columns.states[:, :rows] == DIGITS).any() and any(has_infinite(table[name]) for name in doubles):
            return None  # a number is too large: the parser finds the record
        return PartlyParsed(table, np.flatnonzero(columns.outcome == READ), left, bounds[:, left])


class _Columns:
    """The arrays that the compiled reader writes to."""

    def __init__(self, reader: PlainReader, text: Bytes, bounds: Ints) -> None:
        attributes, records = len(reader.fields), bounds.shape[1]
        self.reader = reader
        self.text, self.bounds = text, bounds
        self.numbers = np.empty((attributes, records), np.int64)
        self.states = np.empty((attributes, records), np.uint8)
        self.texts = np.empty((reader.text_columns, len(text)), np.uint8)
        self.ends = np.zeros((reader.text_columns, records + 1), np.int64)
        self.outcome = np.empty(records, np.uint8)

    def scanned(self) -> int:
        """Run the compiled reader; return the number of records that were read."""
        reader, read = self.reader, np.zeros(1, np.int64)
        seen, guess = np.empty(len(reader.fields), np.int64), np.full(_GUESSED, -1, np.int64)
        wanted = Wanted(reader.names, reader.bounds, reader.kinds, reader.places)
        floats = self.numbers.view(np.float64)
        columns = Columns(self.numbers, floats, self.states, self.texts, self.ends, seen, guess)
        arguments = (self.text, self.bounds, wanted, columns, self.outcome, read)
        assert scan.is_ready(arguments, False), "as plain Python it reads otherwise"
        scan(*arguments)
        return int(read[0])

    def column(self, at: int, rows: int) -> pa.Array:
        """The first `rows` values of an attribute, in the type of the core."""
        kind, states = self.reader.kinds[at], self.states[at, :rows]
        target = ARROW_TYPES[self.reader.fields[at].type]
        valid = _bits(states != NULL) if (states == NULL).any() else None
        if kind == TEXT:
            return pa.Array.from_buffers(target, rows, [valid, *self._texts(at, rows)])
        numbers = self.numbers[at, :rows]
        if kind == DOUBLE and (told := states == DIGITS).any():
            texts = pa.Array.from_buffers(pa.string(), rows, [None, *self._texts(at, rows)])
            floats = texts.filter(pa.array(told)).cast(pa.float64())
            numbers.view(np.float64)[told] = floats.to_numpy()
        if kind == BOOLEAN:
            return pa.Array.from_buffers(target, rows, [valid, _bits(numbers != 0)])
        values = numbers.astype(np.int32) if kind == DATE else numbers
        return pa.Array.from_buffers(target, rows, [valid, pa.py_buffer(values)])

    def _texts(self, at: int, rows: int) -> tuple[pa.Buffer, pa.Buffer]:
        place = int(self.reader.places[at])
        ends = self.ends[place, : rows + 1].astype(np.int32)
        return pa.py_buffer(ends), pa.py_buffer(self.texts[place, : ends[-1]])


def _bits(flags: npt.NDArray[np.bool_]) -> pa.Buffer:
    return pa.py_buffer(np.packbits(flags, bitorder="little"))


def _is_utf8(text: Bytes) -> bool:
    if text.max(initial=0) < _END_OF_ASCII:
        return True
    try:
        str(text.data, "utf-8")
    except UnicodeDecodeError:
        return False
    return True
