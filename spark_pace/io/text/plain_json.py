"""Reads plain JSON by compiled code, and leaves all other records to pyarrow's reader.

`spark_pace.io.text.scan` says which records are plain. Loading the code takes some milliseconds and llvmlite:
a process does so once it has read enough for that to pay. Spark's workers are forked from a process that has
loaded it. Where there is none, a process that reads very much has it made. Until then pyarrow reads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
from spark_pace.io.text.lines import ParsedLines, all_good, filled_lines
from spark_pace.io.text.scan import (
    BOOLEAN,
    DATE,
    DIGITS,
    DOUBLE,
    INTEGER,
    NOTHING,
    NULL,
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
_MOST_BYTES = 1 << 30  # the most text at a time, because Arrow's offsets have 32 bits
_GUESSED = 256  # members of a record whose order is remembered


class PlainReader:
    """A reader of plain records with certain attributes."""

    def __init__(self, fields: Sequence[Field]) -> None:
        """Read records with these attributes, for which `reads` must be True."""
        self.fields = fields
        names = [field.name.encode() for field in fields]
        kinds = np.array([_KINDS[field.type] for field in fields], np.int64)
        has_texts = np.isin(kinds, (DOUBLE, TEXT))
        bounds = np.array([0, *accumulate(map(len, names))], np.int64)
        places: Ints = np.cumsum(has_texts) - has_texts
        self._wanted = Wanted(np.frombuffer(b"".join(names), np.uint8), bounds, kinds, places)
        self._text_columns = int(has_texts.sum())

    @staticmethod
    def reads(fields: Sequence[Field], paths: dict[str, tuple[str, ...]]) -> bool:
        """True if compiled code reads these attributes: each `is_plain`, and stands at the top of the record.

        False if there are none.
        """
        return bool(fields) and all(field.is_plain and len(paths[field.name]) == 1 for field in fields)

    def lines(self, chunk: bytes, parse: Callable[[bytes], ParsedLines]) -> ParsedLines:
        """Read those lines of a chunk that are plain; `parse` reads the others.

        It reads all lines where compiled code is not loaded or too few are plain, and where the chunk is no
        UTF-8 or too long.
        """
        if not compiled_reader().is_ready_for(len(chunk)) or len(chunk) > _MOST_BYTES or not is_utf8(chunk):
            return parse(chunk)
        bounds, numbers = filled_lines(chunk)
        columns, plain = self._scanned(np.frombuffer(chunk, np.uint8), bounds)
        rows, left = np.flatnonzero(plain), np.flatnonzero(plain == 0)
        table = None if ways.is_read_by_columns(len(rows), len(numbers)) else self._table(columns, len(rows))
        if table is None:
            return parse(chunk)
        if not len(left):
            return all_good(table, numbers[rows])
        places = zip(*bounds[:, left].tolist(), strict=True)
        rest = parse(b"\n".join(chunk[begin:end] for begin, end in places))
        all_rows = np.append(rows, left[rest.rows])
        order = np.argsort(all_rows)
        table = pa.concat_tables([table, rest.table]).take(pa.array(order))
        return replace(rest, table=table, rows=numbers[all_rows[order]], refused=numbers[left[rest.refused]])

    def _scanned(self, text: Bytes, bounds: Ints) -> tuple[Columns, Bytes]:
        """Run the compiled reader: what it has read, and 1 for each record that was plain."""
        attributes, records = len(self.fields), bounds.shape[1]
        numbers = np.empty((attributes, records), np.int64)
        columns = Columns(
            numbers,
            numbers.view(np.float64),
            states=np.empty((attributes, records), np.uint8),
            texts=np.empty((self._text_columns, len(text)), np.uint8),
            ends=np.zeros((self._text_columns, records + 1), np.int64),
            seen=np.empty(attributes, np.int64),
            guess=np.full(_GUESSED, -1, np.int64),
        )
        plain = np.empty(records, np.uint8)
        arguments = (text, bounds, self._wanted, columns, plain)
        assert scan.is_ready(arguments, False), "as plain Python it reads otherwise"
        scan(*arguments)
        return columns, plain

    def _table(self, columns: Columns, rows: int) -> pa.Table | None:
        """The first `rows` records; None if a number is too large, whose record the parser finds."""
        table = pa.table(
            {field.name: self._column(columns, at, rows) for at, field in enumerate(self.fields)}
        )
        doubles = [field.name for field in self.fields if field.type == "DOUBLE"]
        told = (columns.states[:, :rows] == DIGITS).any()
        return None if told and any(has_infinite(table[name]) for name in doubles) else table

    def _column(self, columns: Columns, at: int, rows: int) -> pa.Array:
        """The first `rows` values of an attribute, in the type of the core."""
        kind, states, numbers = self._wanted.kinds[at], columns.states[at, :rows], columns.numbers[at, :rows]
        target = ARROW_TYPES[self.fields[at].type]
        valid = _bits(states != NULL) if (states == NULL).any() else None
        texts = _texts(columns, int(self._wanted.places[at]), rows) if kind in (DOUBLE, TEXT) else ()
        if kind == TEXT:
            return pa.Array.from_buffers(target, rows, [valid, *texts])
        if kind == DOUBLE and (told := states == DIGITS).any():
            digits = pa.Array.from_buffers(pa.string(), rows, [None, *texts])
            columns.floats[at, :rows][told] = digits.filter(pa.array(told)).cast(pa.float64()).to_numpy()
        if kind == BOOLEAN:
            return pa.Array.from_buffers(target, rows, [valid, _bits(numbers != 0)])
        values = numbers.astype(np.int32) if kind == DATE else numbers
        return pa.Array.from_buffers(target, rows, [valid, pa.py_buffer(values)])


def _texts(columns: Columns, place: int, rows: int) -> tuple[pa.Buffer, pa.Buffer]:
    """The buffers of the texts in a row of `Columns.texts`."""
    ends = columns.ends[place, : rows + 1].astype(np.int32)
    return pa.py_buffer(ends), pa.py_buffer(columns.texts[place, : ends[-1]])


def _bits(flags: npt.NDArray[np.bool_]) -> pa.Buffer:
    return pa.py_buffer(np.packbits(flags, bitorder="little"))


def is_utf8(text: bytes) -> bool:
    """True if bytes are text."""
    try:
        return text.isascii() or bool(text.decode())
    except UnicodeDecodeError:
        return False
