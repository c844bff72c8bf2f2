"""Reads text in chunks of whole lines and parses each chunk into columns.

The lines are found by operations on whole arrays, so that a flood of blank lines costs little. In a chunk
that fails, each different line is parsed once, so a flood of equal lines costs little. The lines are parsed
in quarters, and the failing quarters in quarters again, until few lines are left. A call of the parser costs
as much as a hundred lines, so a flood of bad lines must not take many calls: a few failing lines are parsed
column by column, which takes one or two calls for each bad line.

Each line is one record. Blank lines are no records, but count in the row numbers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Protocol, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_pace import ways
from spark_pace.core.plan.rule import Field
from spark_pace.core.tables import Ints

_NEWLINE, _SPACE = b"\n "


def _line_ends(chunk: bytes) -> Ints:
    """int64[n + 1], where each of n lines ends; before these -1."""
    return np.concatenate([[-1], np.flatnonzero(np.frombuffer(chunk, np.uint8) == _NEWLINE), [len(chunk)]])


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
        return _line_ends(self.chunk)

    def line(self, row: int) -> bytes:
        """The bytes of line `row`."""
        return self.chunk[self._ends[row] + 1 : self._ends[row + 1]]


def parts_of(chunk: bytes, most: int) -> Iterator[bytes]:
    """Cut a chunk into parts of at most `most` lines, without the newlines between the parts."""
    start = 0
    if len(chunk) >= most:
        for end in _line_ends(chunk)[most:-1:most].tolist():
            yield chunk[start:end]
            start = end + 1
    yield chunk[start:]


def filled_lines(chunk: bytes) -> tuple[Ints, Ints]:
    """Find the lines that are not blank.

    Returns:
        int64[2, n], where each begins and ends; int64[n], its number among all lines.
    """
    if not chunk or chunk.isspace():
        return np.empty((2, 0), np.int64), np.empty(0, np.int64)
    text, ends = np.frombuffer(chunk, np.uint8), _line_ends(chunk)
    bounds, numbers = np.stack([ends[:-1] + 1, ends[1:]]), np.arange(len(ends) - 1)
    empty = bounds[0] == bounds[1]
    if empty.any():
        bounds, numbers = np.ascontiguousarray(bounds[:, ~empty]), numbers[~empty]
    spaced = np.flatnonzero(text[bounds[0]] <= _SPACE)
    if len(spaced):
        filled = np.ones(len(numbers), np.bool_)
        places = zip(*bounds[:, spaced].tolist(), strict=True)
        filled[spaced] = [not chunk[begin:end].isspace() for begin, end in places]
        bounds, numbers = np.ascontiguousarray(bounds[:, filled]), numbers[filled]
    return bounds, numbers


def lines_at(chunk: bytes, numbers: Ints) -> pa.BinaryArray:
    """The lines of a chunk that have these numbers, ascending."""
    lines = pc.split_pattern(pa.array([chunk], pa.binary()), b"\n").values
    return lines if len(lines) == len(numbers) else lines.take(pa.array(numbers))


CHUNK_BYTES = 4 << 20
MOST_RECORD_BYTES = 16 << 20
KEPT_BYTES = 64 << 10  # kept of a record that is too long
_REASON_CHARACTERS = 300
_AROUND_A_VALUE = (
    (re.compile(r"JSON parse error: Column\(.*\) changed from \w+ to (\w+)"), r"a JSON \1"),
    (re.compile(r"JSON parse error: "), ""),
    (re.compile(r"Failed to convert JSON to \w+, couldn't parse:"), ""),
    (re.compile(r"In CSV column #\d+: (Row #\d+: )?CSV conversion error to .*?: invalid value "), ""),
    (re.compile(r"CSV parse error: .*?Expected \d+ columns, got (\d+): .*", re.DOTALL), r"\1 values"),
    (re.compile(r"got: 1 values$"), "got: 1 value"),
    (re.compile(r"In CSV column #\d+: .*?CSV conversion error to .*: invalid UTF8 data"), "no UTF-8"),
    (re.compile(r"The string ('.*') is not a valid decimal\d+ number", re.DOTALL), r"\1"),
    (re.compile(r"Failed to parse value: (.*)", re.DOTALL), r"'\1'"),
    (re.compile(r"Column\(.*\) was specified twice"), "two members of that name"),
    (re.compile(r"Failed to parse string: ('.*') as a scalar of type \S+", re.DOTALL), r"\1"),
)  # fmt: skip

Item = TypeVar("Item")
Read = TypeVar("Read")
_Good = tuple[Sequence[int], pa.Table]  # the numbers of good lines, and their records


@dataclass(frozen=True)
class ParsedLines:
    """The records of a chunk.

    Attributes:
        table: the good records as columns.
        rows: int64[n], the number of each good record's line in the chunk, from 0.
        refused: int64[m], the numbers of the lines that are bad records, ascending.
        reason: gives the reason for one of these by its index among the m.
        ignored: how many lines are no records.
    """

    table: pa.Table
    rows: Ints
    refused: Ints
    reason: Callable[[int], str]
    ignored: int = 0


def all_good(table: pa.Table, rows: Ints) -> ParsedLines:
    """The records of lines of which none is bad."""
    return ParsedLines(table, rows, np.empty(0, np.int64), str)


class LineParser(Protocol):
    """A reader of lines of one format."""

    def read(self, chunk: bytes) -> ParsedLines:
        """Read the records of a chunk of whole lines."""


class RecordParser(Protocol):
    """What `read_lines` must be told of a format.

    Attributes:
        fields: the attributes.
        must: the demand on a record, whatever its attributes are.
        refusal: the reason for the records that `refuses` tells.
    """

    fields: tuple[Field, ...]
    must: str
    refusal: str

    def plain_rows(self, chunk: bytes) -> int | None:
        """The number of lines, if a quick look shows that each is one record; else None."""

    def records(self, lines: pa.BinaryArray) -> pa.BinaryArray:
        """The records in lines, none of which is blank."""

    def refuses(self, records: list[bytes]) -> Iterable[bool]:
        """Tell of each record whether its outer form is wrong; `parse` sees the others only."""

    def parse(self, chunk: bytes, fields: tuple[Field, ...] | None = None) -> pa.Table:
        """Parse records into columns: all attributes, or these; raises `pa.ArrowInvalid` if one is wrong."""


@dataclass(frozen=True)
class TooLong:
    """A line that is too long for a record: its first bytes, and its length in bytes."""

    raw: bytes
    length: int


def too_long(length: int) -> str:
    """The reason for refusing a record of this many bytes."""
    return f"the record — must be at most {MOST_RECORD_BYTES >> 20} MiB; got {length} bytes, cut here"


def chunks(stream: pa.NativeFile) -> Iterator[bytes | TooLong]:
    """Yield the stream in chunks of about `CHUNK_BYTES` that end at the end of a line.

    Memory is bounded for any stream, because a line longer than `MOST_RECORD_BYTES` is cut.
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


def read_lines(chunk: bytes, parser: RecordParser) -> ParsedLines:
    """Read the records of a chunk, line by line if the whole cannot be parsed."""
    rows = parser.plain_rows(chunk)
    if rows is not None:
        try:
            table = parser.parse(chunk)
        except pa.ArrowInvalid:
            table = None
        if table is not None and table.num_rows == rows:
            return all_good(table, np.arange(rows, dtype=np.int64))
    _, numbers = filled_lines(chunk)
    if not len(numbers):
        return all_good(parser.parse(b""), numbers)
    if numbers[-1] >= len(numbers):  # blank lines are between them
        read = read_lines(b"\n".join(lines_at(chunk, numbers).to_pylist()), parser)
        return replace(read, rows=numbers[read.rows], refused=numbers[read.refused])
    lines = parser.records(lines_at(chunk, numbers)).dictionary_encode()
    table, places, reasons = _judged(lines.dictionary.to_pylist(), parser)
    of_lines = lines.indices.to_numpy()
    good = places[of_lines] >= 0
    if len(places) < len(of_lines):
        table = table.take(pa.array(places[of_lines[good]]))
    bad = np.flatnonzero(~good)
    return ParsedLines(table, numbers[good], numbers[bad], lambda index: reasons[int(of_lines[bad[index]])])


def _judged(lines: list[bytes], parser: RecordParser) -> tuple[pa.Table, Ints, dict[int, str]]:
    """Read n different lines.

    Returns:
        The good lines as columns, in their order; int64[n], each line's row there, -1 for a bad one; and the
        reasons for the bad ones, by number.
    """
    refused = np.fromiter(parser.refuses(lines), np.bool_, len(lines))
    reasons = dict.fromkeys(np.flatnonzero(refused).tolist(), parser.refusal)
    good: list[_Good] = []
    parse = partial(_parse, parser, lines, None)
    for some, read in in_quarters(np.flatnonzero(~refused).tolist(), parse, ways.FEW_LINES):
        failed = isinstance(read, pa.ArrowException)
        good += _sieve(parser, lines, some, reasons) if failed else [(some, read)]
    rows = [number for some, _ in good for number in some]
    places = np.full(len(lines), -1)
    places[rows] = np.arange(len(rows))
    return pa.concat_tables([*(table for _, table in good), parser.parse(b"")]), places, reasons


def _sieve(
    parser: RecordParser, lines: list[bytes], few: Sequence[int], reasons: dict[int, str]
) -> list[_Good]:
    """Read the good ones of a few lines. `reasons` gets for each other one the first demand that it fails."""
    demands: list[tuple[str, tuple[Field, ...] | None]] = [(parser.must, ())]
    demands += [(must_be(field), (field,)) for field in parser.fields]
    good: list[_Good] = []
    for must, fields in [*demands, (parser.must, None)]:
        good = []
        for some, read in in_quarters(few, partial(_parse, parser, lines, fields)):
            if isinstance(read, pa.ArrowException):
                reasons[some[0]] = short(f"{must}; got: {read}")
            else:
                good.append((some, read))
        few = [number for some, _ in good for number in some]
    return good


def _parse(
    parser: RecordParser, lines: list[bytes], fields: tuple[Field, ...] | None, some: Sequence[int]
) -> pa.Table:
    """Parse some of the lines; if all attributes are wanted, each must hold exactly one record."""
    read = parser.parse(b"\n".join([lines[number] for number in some]), fields)
    if fields is None and read.num_rows != len(some):
        raise pa.ArrowInvalid("a line must hold one record; it holds several")
    return read


def in_quarters(
    items: Sequence[Item], read: Callable[[Sequence[Item]], Read], few: int = 1
) -> Iterator[tuple[Sequence[Item], Read | pa.ArrowException]]:
    """Read items together and, where that fails, in quarters, and failing quarters in quarters again.

    Yields:
        Some of the items, in their order, with what was read of them; or with the error, if they are at most
        `few`.
    """
    found: Read | pa.ArrowException
    try:
        found = read(items)
    except pa.ArrowException as error:
        found = error
    if not isinstance(found, pa.ArrowException) or len(items) <= few:
        yield items, found
        return
    step = -(-len(items) // 4)
    for start in range(0, len(items), step):
        yield from in_quarters(items[start : start + step], read, few)


def must_be(field: Field) -> str:
    """The demand on an attribute's type, in words."""
    return f"{field.name} — must be {field.type}"


def short(reason: str) -> str:
    """Reduce a message of pyarrow's to one line with the value that it is about.

    Its row numbers are dropped, because they count from the start of some chunk.
    """
    reason = re.sub(r"\s*in row \d+$", "", reason)
    for words, value in _AROUND_A_VALUE:
        reason = words.sub(value, reason)
    return re.sub(r"\s+", " ", reason)[:_REASON_CHARACTERS]
