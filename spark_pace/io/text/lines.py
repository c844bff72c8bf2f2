"""Reads text in chunks of whole lines and parses each chunk into columns.

A chunk that fails is parsed in quarters, and these again, until the bad lines are found. A call of the parser
costs as much as a hundred lines, so a flood of bad lines must not take many calls: of a few lines that fail,
one column after the other is looked through, which takes one or two calls for each bad line.

One record is one line. Blank lines are no records, but they count in the row numbers.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from spark_pace import ways

CHUNK_BYTES = 4 << 20
MOST_RECORD_BYTES = 16 << 20
KEPT_BYTES = 64 << 10  # so much of a record that is too long is kept
_REASON_CHARACTERS = 300


Parse = Callable[[bytes], pa.Table]  # raises `pa.ArrowInvalid` if any of the lines is wrong
Line = tuple[int, bytes]  # its number, and the record in it


@dataclass(frozen=True)
class Check:
    """One demand on lines: in words, and as a parser that reads no more than it needs to see it."""

    must: str
    parse: Parse


class LineParser(Protocol):
    """Reads the lines of one format."""

    def plain(self, chunk: bytes) -> PartlyParsed | None:
        """The records that compiled code has read; None if there is none for this format or these types."""

    def plain_rows(self, chunk: bytes) -> int | None:
        """The number of lines, if a glance shows that each can only be one record; else None."""

    def parse(self, chunk: bytes) -> pa.Table:
        """Lines as columns; raises `pa.ArrowInvalid` if any of them is wrong."""

    def record(self, line: bytes) -> bytes:
        """The record in a line; nothing for a blank line."""

    def objection(self, line: bytes) -> str | None:
        """What is wrong with the outer form of a line, checked before `parse` sees it."""

    def checks(self) -> Sequence[Check]:
        """What `parse` demands of lines; of a line that fails several demands, the first is told."""

    def misfit(self, error: pa.ArrowInvalid) -> str:
        """Why `parse` refused a line that passes all checks."""


@dataclass(frozen=True)
class ParsedLines:
    """The records of a chunk.

    Attributes:
        table: the good ones as columns.
        rows: for each row of `table` the number of its line in the chunk, from 0.
        refused: (number of the line, reason) of each bad one.
    """

    table: pa.Table
    rows: npt.NDArray[np.int64]
    refused: list[tuple[int, str]]


@dataclass(frozen=True)
class PartlyParsed:
    """Some records of a text.

    Attributes:
        table: those that have been read, as columns.
        rows: int64; the number of each.
        left: int64, the numbers of those that `LineParser.parse` must read.
        bounds: int64[2, n], where each record begins and ends.
    """

    table: pa.Table
    rows: npt.NDArray[np.int64]
    left: npt.NDArray[np.int64]
    bounds: npt.NDArray[np.int64]

    def with_left(self, parse: Callable[[npt.NDArray[np.int64]], ParsedLines]) -> ParsedLines:
        """All records; `parse` reads those of these numbers, and counts them from 0."""
        if not len(self.left):
            return ParsedLines(self.table, self.rows, [])
        read = parse(self.left)
        rows = np.concatenate([self.rows, self.left[read.rows]])
        order = np.argsort(rows)
        table = pa.concat_tables([self.table, read.table]).take(pa.array(order))
        return ParsedLines(table, rows[order], [(int(self.left[row]), why) for row, why in read.refused])


@dataclass(frozen=True)
class TooLong:
    """A line that is too long for a record: its beginning, and its length in bytes."""

    raw: bytes
    length: int


def too_long(length: int) -> str:
    """The reason why a record of so many bytes is refused."""
    return f"the record — must be at most {MOST_RECORD_BYTES >> 20} MiB; got {length} bytes, cut here"


def chunks(stream: pa.NativeFile) -> Iterator[bytes | TooLong]:
    """The stream's bytes in pieces of about `CHUNK_BYTES` that end where a line ends.

    Memory is bounded, whatever the stream holds: a line longer than `MOST_RECORD_BYTES` is cut.
    """
    rest, length = [b""], 0  # a line whose end has not come yet
    while piece := stream.read(CHUNK_BYTES):
        first, last = piece.find(b"\n"), piece.rfind(b"\n")
        if first < 0:
            if length <= MOST_RECORD_BYTES:
                rest.append(piece)
            length += len(piece)
            continue
        if length + first > MOST_RECORD_BYTES:
            yield TooLong(b"".join([*rest, piece[:first]])[:KEPT_BYTES], length + first)
            if first < last:
                yield piece[first + 1 : last]
        else:
            yield b"".join([*rest, memoryview(piece)[:last]])
        tail = piece[last + 1 :]
        rest, length = [tail], len(tail)
    if length > MOST_RECORD_BYTES:
        yield TooLong(b"".join(rest)[:KEPT_BYTES], length)
    elif length:
        yield b"".join(rest)


def parse_lines(chunk: bytes, parser: LineParser) -> ParsedLines:
    """The records of the lines in `chunk`; what compiled code does not read is read by the parser."""
    plain = parser.plain(chunk)
    if plain is None:
        return parse_all(chunk, parser)
    bounds = plain.bounds

    def parse_left(left: npt.NDArray[np.int64]) -> ParsedLines:
        lines = (chunk[begin:end] for begin, end in bounds[:, left].T.tolist())
        return parse_all(b"\n".join(lines), parser)

    return plain.with_left(parse_left)


def parse_all(chunk: bytes, parser: LineParser) -> ParsedLines:
    """The records of the lines, by the parser alone.

    A chunk that cannot be parsed is looked through line by line.
    """
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
    """The records of a chunk in which lines may be bad."""
    candidates: list[Line] = []
    refused: list[tuple[int, str]] = []
    for row, line in enumerate(chunk.split(b"\n")):
        record = parser.record(line)
        objection = parser.objection(record) if record else None
        if objection:
            refused.append((row, objection))
        elif record:
            candidates.append((row, record))
    good: list[tuple[list[Line], pa.Table]] = []
    for lines, read in _parsed(candidates, parser.parse, ways.FEW_LINES):
        if isinstance(read, pa.Table):
            good.append((lines, read))
        else:
            good += _sieve(lines, parser, refused)
    numbers = itertools.chain.from_iterable((row for row, _ in lines) for lines, _ in good)
    rows = np.fromiter(numbers, dtype=np.int64)
    tables = [table for _, table in good]
    return ParsedLines(pa.concat_tables(tables) if tables else parser.parse(b""), rows, sorted(refused))


def _sieve(
    lines: list[Line], parser: LineParser, refused: list[tuple[int, str]]
) -> Iterator[tuple[list[Line], pa.Table]]:
    """The good ones of a few lines, in parts with a table each; the reasons of the others go to `refused`."""
    for check in parser.checks():
        passed: list[Line] = []
        for some, read in _parsed(lines, check.parse, 1, records=False):
            if isinstance(read, pa.Table):
                passed += some
            else:
                refused.append((some[0][0], short(f"{check.must}; got: {read}")))
        lines = passed
    for some, read in _parsed(lines, parser.parse, 1):
        if isinstance(read, pa.Table):
            yield some, read
        else:
            refused.append((some[0][0], parser.misfit(read)))


def _parsed(
    lines: list[Line], parse: Parse, few: int, records: bool = True
) -> Iterator[tuple[list[Line], pa.Table | pa.ArrowInvalid]]:
    """The lines in parts: a part that can be parsed comes with its table, another with the error.

    A part that cannot be parsed has at most `few` lines. With `records`, each line must hold exactly one
    record.
    """
    if not lines:
        return
    read: pa.Table | pa.ArrowInvalid
    try:
        read = parse(b"\n".join(line for _, line in lines))
        if records and read.num_rows != len(lines):
            read = pa.ArrowInvalid("a line must hold one record; it holds several")
    except pa.ArrowInvalid as error:
        read = error
    if isinstance(read, pa.Table) or len(lines) <= few:
        yield lines, read
        return
    step = -(-len(lines) // 4)
    for start in range(0, len(lines), step):
        yield from _parsed(lines[start : start + step], parse, few, records)


def short(reason: str) -> str:
    """The reason on one line, without the row number, which counts from the start of some chunk."""
    return re.sub(r"\s+", " ", re.sub(r"\s*in row \d+$", "", reason))[:_REASON_CHARACTERS]
