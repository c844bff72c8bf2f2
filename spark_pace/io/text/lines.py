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
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from spark_pace import ways
from spark_pace.io.text.scan import Bytes, Ints

_NEWLINE, _SPACE = b"\n "
_IS_SPACE = np.isin(
    np.arange(256), np.frombuffer(b" \t\n\r\x0b\x0c", np.uint8)
)  # the bytes that Python's `strip` removes


def parts_of(chunk: bytes, most: int) -> Iterator[bytes]:
    """Cut a chunk into parts of at most `most` lines, without the newlines between the parts."""
    start = 0
    if len(chunk) >= most:
        ends = np.flatnonzero(np.frombuffer(chunk, np.uint8) == _NEWLINE)
        for end in ends[most - 1 :: most].tolist():
            yield chunk[start:end]
            start = end + 1
    yield chunk[start:]


def filled_lines(chunk: bytes) -> tuple[Ints, Ints]:
    """Find the lines that are not blank.

    Returns:
        int64[2, n], where each begins and ends; int64[n], its number among all lines.
    """
    text = np.frombuffer(chunk, np.uint8)
    if not len(text) or chunk.isspace():
        return np.empty((2, 0), np.int64), np.empty(0, np.int64)
    newlines = np.flatnonzero(text == _NEWLINE)
    bounds = np.empty((2, len(newlines) + 1), np.int64)
    bounds[0, 0], bounds[0, 1:] = 0, newlines + 1
    bounds[1, :-1], bounds[1, -1] = newlines, len(text)
    numbers = np.arange(bounds.shape[1])
    empty = bounds[0] == bounds[1]
    if empty.any():
        bounds, numbers = np.ascontiguousarray(bounds[:, ~empty]), numbers[~empty]
    first_letters = text[bounds[0]]
    spaced = np.flatnonzero(first_letters <= _SPACE)  # other control characters do no harm here
    if len(spaced):
        letters = ~_IS_SPACE[text]
        # pairs: the letters in a line, and the letters between it and the next, which are dropped
        counts = np.add.reduceat(np.append(letters, False), bounds[:, spaced].T.ravel(), dtype=np.int64)[::2]
        filled = np.ones(len(numbers), np.bool_)
        filled[spaced] = counts > 0
        bounds, numbers = np.ascontiguousarray(bounds[:, filled]), numbers[filled]
    return bounds, numbers


def lines_at(text: Bytes, bounds: Ints) -> pa.BinaryArray:
    """The lines of a text that begin and end at `bounds`, int64[2, n]; none may be empty."""
    edges = np.zeros(len(text) + 1, np.int8)
    edges[bounds[0]], edges[bounds[1]] = 1, -1
    inside = np.cumsum(edges[:-1], dtype=np.int8).view(np.bool_)
    ends = np.append(0, np.cumsum(bounds[1] - bounds[0])).astype(np.int32)
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(text[inside])]
    return pa.BinaryArray.from_buffers(pa.binary(), bounds.shape[1], buffers)


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

Parse = Callable[[bytes], pa.Table]  # raises `pa.ArrowInvalid` if a line is wrong
Line = tuple[int, bytes]  # the line's number, and its record


@dataclass(frozen=True)
class Check:
    """One demand on lines: its text for the reason, and a parser that fails if a line does not meet it."""

    must: str
    parse: Parse


class LineParser(Protocol):
    """A reader of lines of one format."""

    def plain(self, chunk: bytes) -> PartlyParsed | None:
        """Read what compiled code can read; None if there is no such code for this format or these types."""

    def plain_rows(self, chunk: bytes) -> int | None:
        """The number of lines, if a quick look shows that each is one record; else None."""

    def parse(self, chunk: bytes) -> pa.Table:
        """Parse lines into columns; raises `pa.ArrowInvalid` if a line is wrong."""

    def records(self, lines: pa.BinaryArray) -> pa.BinaryArray:
        """The records in lines, none of which is blank."""

    def objections(self, records: list[bytes]) -> Objections:
        """Check the outer form of records, before `parse` sees them."""

    def checks(self) -> Sequence[Check]:
        """The demands of `parse` on lines; the reason for a bad line is the first that it does not meet."""

    def misfit(self, error: pa.ArrowInvalid) -> str:
        """The reason why `parse` refused a line that passes all checks."""


@dataclass(frozen=True)
class Objections:
    """bool[n], the refused records, and the reason for all of them."""

    refused: npt.NDArray[np.bool_]
    reason: str


@dataclass(frozen=True)
class Refused:
    """Lines that are no records.

    Attributes:
        rows: int64[n], their numbers, ascending.
        reasons: the reasons for the first of them, as many as were asked for.
    """

    rows: Ints
    reasons: list[str]

    def moved(self, numbers: Ints) -> Refused:
        """Renumber the lines: line i becomes line `numbers[i]`."""
        return replace(self, rows=numbers[self.rows])


@dataclass(frozen=True)
class ParsedLines:
    """The records of a chunk.

    Attributes:
        table: the good records as columns.
        rows: int64[n], the number of each good record's line in the chunk, from 0.
        refused: the bad records.
        ignored: how many lines are no records.
    """

    table: pa.Table
    rows: Ints
    refused: Refused
    ignored: int = 0


@dataclass(frozen=True)
class PartlyParsed:
    """The records of a text, of which compiled code has read some.

    Attributes:
        table: the records that were read, as columns.
        rows: int64[m], the number of each of them.
        left: int64[n], the numbers of the records that `LineParser.parse` must read.
        bounds: int64[2, n], where each of these begins and ends in the text.
        ignored: how many lines are no records, and left to nobody.
    """

    table: pa.Table
    rows: Ints
    left: Ints
    bounds: Ints
    ignored: int = 0

    def with_left(self, parse: Callable[[PartlyParsed], ParsedLines]) -> ParsedLines:
        """Complete the records: `parse` reads those that are left, and numbers them from 0."""
        if not len(self.left):
            return ParsedLines(self.table, self.rows, NONE_REFUSED, self.ignored)
        read = parse(self)
        rows = np.concatenate([self.rows, self.left[read.rows]])
        order = np.argsort(rows)
        table = pa.concat_tables([self.table, read.table]).take(pa.array(order))
        return ParsedLines(table, rows[order], read.refused.moved(self.left), self.ignored)


NONE_REFUSED = Refused(np.empty(0, np.int64), [])


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


def parse_lines(chunk: bytes, parser: LineParser, most: int | None = None) -> ParsedLines:
    """Read the records of a chunk; the parser reads what compiled code leaves.

    Args:
        chunk: whole lines.
        parser: the parser of their format.
        most: for how many bad lines a reason is needed; None: for all.
    """
    plain = parser.plain(chunk)
    if plain is None:
        return parse_all(chunk, parser, most)

    def parse_left(plain: PartlyParsed) -> ParsedLines:
        lines = (chunk[begin:end] for begin, end in plain.bounds.T.tolist())
        return parse_all(b"\n".join(lines), parser, most)

    return plain.with_left(parse_left)


def parse_all(chunk: bytes, parser: LineParser, most: int | None = None) -> ParsedLines:
    """Read the records of a chunk by the parser alone, and line by line if the whole cannot be parsed."""
    rows = parser.plain_rows(chunk)
    if rows is not None:
        try:
            table = parser.parse(chunk)
        except pa.ArrowInvalid:
            table = None
        if table is not None and table.num_rows == rows:
            return ParsedLines(table, np.arange(rows, dtype=np.int64), NONE_REFUSED)
    return _search(chunk, parser, most)


def _search(chunk: bytes, parser: LineParser, most: int | None) -> ParsedLines:
    """Read a chunk in which lines may be bad; each different line is parsed once."""
    bounds, numbers = filled_lines(chunk)
    if not len(numbers):
        return ParsedLines(parser.parse(b""), numbers, NONE_REFUSED)
    lines = parser.records(lines_at(np.frombuffer(chunk, np.uint8), bounds)).dictionary_encode()
    found = _judged(lines.dictionary.to_pylist(), parser, most)
    places = found.places[lines.indices.to_numpy()]
    good = places >= 0
    table = found.table if len(lines.dictionary) == len(lines) else found.table.take(pa.array(places[good]))
    bad = np.flatnonzero(~good)
    told = lines.indices.take(pa.array(bad[:most])).to_pylist()
    return ParsedLines(table, numbers[good], Refused(numbers[bad], [found.reasons[line] for line in told]))


@dataclass(frozen=True)
class _Judged:
    """The result for n different lines.

    Attributes:
        table: the good lines as columns, in their order.
        places: int64[n], each line's row of `table`; -1 for a bad line.
        reasons: the reasons for the first bad lines, by number, as many as were asked for.
    """

    table: pa.Table
    places: Ints
    reasons: dict[int, str]


def _judged(lines: list[bytes], parser: LineParser, most: int | None) -> _Judged:
    objections = parser.objections(lines)
    objected = np.flatnonzero(objections.refused)
    reasons = dict.fromkeys(objected[:most].tolist(), objections.reason)
    numbers = np.flatnonzero(~objections.refused)
    if len(objected):
        lines = [lines[number] for number in numbers.tolist()]
    good: list[tuple[Ints, pa.Table]] = []
    wanted = len(lines) if most is None else most
    for first, some, read in _parsed(lines, parser.parse, ways.FEW_LINES):
        those = numbers[first : first + len(some)]
        if isinstance(read, pa.Table):
            good.append((those, read))
        else:
            refused: list[tuple[int, str]] = []
            good += _sieve(list(zip(those.tolist(), some, strict=True)), parser, refused)
            if wanted > 0:  # lines come in their order
                reasons.update(refused)
                wanted -= len(refused)
    places = np.full(len(objections.refused), -1)
    rows = np.concatenate([np.empty(0, np.int64), *(those for those, _ in good)])
    places[rows] = np.arange(len(rows))
    tables = [table for _, table in good]
    table = pa.concat_tables(tables) if tables else parser.parse(b"")
    return _Judged(table, places, reasons)


def _sieve(
    lines: list[Line], parser: LineParser, refused: list[tuple[int, str]]
) -> Iterator[tuple[Ints, pa.Table]]:
    """Yield the good lines among a few, as (numbers, table); the reasons for the others go to `refused`."""
    for check in parser.checks():
        passed: list[Line] = []
        for first, some, read in _parsed([line for _, line in lines], check.parse, 1, records=False):
            if isinstance(read, pa.Table):
                passed += lines[first : first + len(some)]
            else:
                refused.append((lines[first][0], short(f"{check.must}; got: {read}")))
        lines = passed
    for first, some, read in _parsed([line for _, line in lines], parser.parse, 1):
        if isinstance(read, pa.Table):
            yield np.array([number for number, _ in lines[first : first + len(some)]], np.int64), read
        else:
            refused.append((lines[first][0], parser.misfit(read)))


def _parsed(
    lines: list[bytes], parse: Parse, few: int, records: bool = True, first: int = 0
) -> Iterator[tuple[int, list[bytes], pa.Table | pa.ArrowInvalid]]:
    """Yield the lines in parts: the number of the first line, the lines, and their table or the error.

    A part with an error has at most `few` lines. With `records`, each line must hold exactly one record.
    """
    if not lines:
        return
    read: pa.Table | pa.ArrowInvalid
    try:
        read = parse(b"\n".join(lines))
        if records and read.num_rows != len(lines):
            read = pa.ArrowInvalid("a line must hold one record; it holds several")
    except pa.ArrowInvalid as error:
        read = error
    if isinstance(read, pa.Table) or len(lines) <= few:
        yield first, lines, read
        return
    step = -(-len(lines) // 4)
    for start in range(0, len(lines), step):
        yield from _parsed(lines[start : start + step], parse, few, records, first + start)


def short(reason: str) -> str:
    """Reduce a message of pyarrow's to one line with the value that it is about.

    Its row numbers are dropped, because they count from the start of some chunk.
    """
    reason = re.sub(r"\s*in row \d+$", "", reason)
    for words, value in _AROUND_A_VALUE:
        reason = words.sub(value, reason)
    return re.sub(r"\s+", " ", reason)[:_REASON_CHARACTERS]
