"""Text as chunks of whole lines, parsed as columns; lines that fail are found by halving.

One record is one line. Blank lines are no records, but they count in the row numbers.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

CHUNK_BYTES = 4 << 20
MOST_RECORD_BYTES = 16 << 20
KEPT_BYTES = 64 << 10  # of a record that is too long


class LineParser(Protocol):
    """How one format reads lines."""

    def plain_rows(self, chunk: bytes) -> int | None:
        """The number of lines, if a glance shows that each can only be one record; else None."""

    def parse(self, chunk: bytes) -> pa.Table:
        """Lines as columns; raises `pa.ArrowInvalid` if any of them is wrong."""

    def record(self, line: bytes) -> bytes:
        """The record in a line; nothing for a blank line."""

    def objection(self, line: bytes) -> str | None:
        """What is wrong with the outer form of a line, checked before `parse` sees it."""

    def reason(self, line: bytes, error: pa.ArrowInvalid) -> str:
        """Why `parse` refused this line."""


@dataclass(frozen=True)
class ParsedLines:
    """The records of a chunk.

    `rows` (int64) are the line numbers in the chunk of the rows of `table`; `refused` is (line number, reason).
    """

    table: pa.Table
    rows: npt.NDArray[np.int64]
    refused: list[tuple[int, str]]


@dataclass(frozen=True)
class TooLong:
    """A line that is longer than a record may be: its beginning, and its length in bytes."""

    raw: bytes
    length: int


def too_long(length: int) -> str:
    """What is wrong with a record of so many bytes."""
    return f"the record — must be at most {MOST_RECORD_BYTES >> 20} MiB; got {length} bytes, cut here"


def chunks(stream: pa.NativeFile) -> Iterator[bytes | TooLong]:
    """The stream's bytes in pieces of about `CHUNK_BYTES` that end where a line ends; memory is bounded whatever the stream holds."""
    rest, length = [b""], 0  # a line whose end has not come yet
    while piece := stream.read(CHUNK_BYTES):
        whole, newline, tail = piece.rpartition(b"\n")
        if not newline:
            if length <= MOST_RECORD_BYTES:
                rest.append(piece)
            length += len(piece)
            continue
        end, newline, after = whole.partition(b"\n")
        if length + len(end) > MOST_RECORD_BYTES:
            yield TooLong(b"".join([*rest, end])[:KEPT_BYTES], length + len(end))
            if newline:
                yield after
        else:
            yield b"".join([*rest, whole])
        rest, length = [tail], len(tail)
    if length > MOST_RECORD_BYTES:
        yield TooLong(b"".join(rest)[:KEPT_BYTES], length)
    elif length:
        yield b"".join(rest)


def parse_lines(chunk: bytes, parser: LineParser) -> ParsedLines:
    """The records of the lines in `chunk`; only if it fails is it looked through line by line."""
    rows = parser.plain_rows(chunk)
    if rows is not None:
        try:
            table = parser.parse(chunk)
        except pa.ArrowInvalid:
            table = None
        if table is not None and table.num_rows == rows:
            return ParsedLines(table, np.arange(rows, dtype=np.int64), [])
    return _search(chunk, parser)


def _search(chunk: bytes, parser: LineParser) -> ParsedLines:
    candidates: list[tuple[int, bytes]] = []
    refused: list[tuple[int, str]] = []
    for row, line in enumerate(chunk.split(b"\n")):
        record = parser.record(line)
        objection = parser.objection(record) if record else None
        if objection:
            refused.append((row, objection))
        elif record:
            candidates.append((row, record))
    good: list[tuple[pa.Table, list[int]]] = []
    _halve(candidates, parser, good, refused)
    tables = [table for table, _ in good]
    rows = np.fromiter(itertools.chain.from_iterable(numbers for _, numbers in good), dtype=np.int64)
    return ParsedLines(pa.concat_tables(tables) if tables else parser.parse(b""), rows, sorted(refused))


def _halve(
    lines: list[tuple[int, bytes]],
    parser: LineParser,
    good: list[tuple[pa.Table, list[int]]],
    refused: list[tuple[int, str]],
) -> None:
    """Parse the lines together; where that fails, each half by itself: O(bad * log lines) parses."""
    if not lines:
        return
    error = pa.ArrowInvalid("a line must hold one record; it holds several")
    try:
        table = parser.parse(b"\n".join(line for _, line in lines))
        if table.num_rows == len(lines):
            good.append((table, [row for row, _ in lines]))
            return
    except pa.ArrowInvalid as raised:
        error = raised
    if len(lines) == 1:
        row, line = lines[0]
        refused.append((row, parser.reason(line, error)))
        return
    middle = len(lines) // 2
    _halve(lines[:middle], parser, good, refused)
    _halve(lines[middle:], parser, good, refused)
