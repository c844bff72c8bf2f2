"""Reads plain records of JSON in one pass over their bytes, compiled by numba.

A record is plain if it is certain that pyarrow's reader takes it, and what values that reads: one object, no
escapes in texts, each attribute once and written as its type is. What is not plain is left to that reader.

Numbers and times are computed here only where the result is exact; of other floating-point numbers the digits
are kept, for pyarrow to convert.

A place is the index of a byte. Whatever gives a place gives `NOWHERE` if what it reads is not plain. `cell`
says where a value goes: the column (an attribute, or a row of `Columns.texts`), and the record's row.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numba
from numba import types

from spark_pace.io.text import scan_values as values
from spark_pace.io.text.blocks import (
    BLANK,
    BOOLEAN,
    DATE,
    DIGITS,
    DOUBLE,
    INTEGER,
    LEFT,
    NULL,
    NUMBER,
    READ,
    TEXT,
    TIME,
    Bytes,
    Columns,
    Floats,
    Ints,
    Wanted,
)
from spark_pace.io.text.scan_values import NOWHERE, QUOTE, compiled

_UNKNOWN = -1  # in place of an attribute, for a member that is none
_OPEN, _CLOSE, _OPEN_LIST, _CLOSE_LIST = b"{}[]"
_EXACT = 1 << 53  # every integer up to it is a double
_MOST_DEPTH = 60  # of lists and objects inside each other in a value that is passed over


class Record(NamedTuple):
    """The text that holds a record, and the place of its last brace, before which all else of it ends."""

    text: Bytes
    last: int


@compiled
def _passed(text: Bytes, at: int) -> int:
    """The first place, from `at` on, that holds no white space."""
    while text[at] <= values.SPACE and (
        text[at] == values.SPACE
        or text[at] == values.TAB
        or text[at] == values.NEWLINE
        or text[at] == values.RETURN
    ):
        at += 1
    return at


@compiled
def _text_end(record: Record, at: int) -> int:
    """The place behind a text without escapes and its quotation mark; its first letter is at `at`."""
    while at < record.last and record.text[at] != QUOTE:
        if record.text[at] < values.SPACE or record.text[at] == values.BACKSLASH:
            return NOWHERE
        at += 1
    return at + 1 if at < record.last else NOWHERE


@compiled
def _is_name(record: Record, at: int, wanted: Wanted, column: int) -> bool:
    """Tell whether the name of the attribute `column` stands at `at`, with a quotation mark behind it."""
    begin, end = wanted.bounds[column], wanted.bounds[column + 1]
    if at + end - begin >= record.last or record.text[at + end - begin] != QUOTE:
        return False
    place = begin
    while place < end and record.text[at + place - begin] == wanted.names[place]:
        place += 1
    return bool(place == end)


@compiled
def _attribute(record: Record, at: int, wanted: Wanted, guessed: int) -> tuple[int, int]:
    """The attribute whose name begins at `at`, else `_UNKNOWN`; and the place behind its quotation mark.

    The attribute `guessed` is tried first, if it is one.
    """
    if guessed >= 0 and _is_name(record, at, wanted, guessed):
        return guessed, at + wanted.bounds[guessed + 1] - wanted.bounds[guessed] + 1
    end = _text_end(record, at)
    if end >= 0:
        for column in range(wanted.attributes):
            if end - at - 1 == wanted.bounds[column + 1] - wanted.bounds[column] and _is_name(
                record, at, wanted, column
            ):
                return column, end
    return _UNKNOWN, end


@compiled
def _behind_colon(text: Bytes, at: int) -> int:
    """The place of the value behind the colon that follows a name, which ends before `at`."""
    at = _passed(text, at)
    return _passed(text, at + 1) if text[at] == values.COLON else NOWHERE


@compiled
def _copied(record: Record, begin: int, end: int, columns: Columns, cell: tuple[int, int]) -> None:
    """Append the bytes from `begin` to `end` to the texts of a column."""
    texts, row = cell
    ends = texts * (columns.rows + 1) + row
    to = columns.ends[ends]
    for at in range(begin, end):
        columns.texts[texts * columns.text_bytes + to + at - begin] = record.text[at]
    columns.ends[ends + 1] = to + end - begin


@compiled
def _copied_text(record: Record, at: int, columns: Columns, texts: int, row: int) -> int:
    """Append the text that begins at `at` to row `texts` of `Columns.texts`; returns the place behind it."""
    ends, first = texts * (columns.rows + 1) + row, texts * columns.text_bytes
    to = columns.ends[ends] + first
    while at < record.last and record.text[at] != QUOTE:
        if record.text[at] < values.SPACE or record.text[at] == values.BACKSLASH:
            return NOWHERE
        columns.texts[to] = record.text[at]
        at, to = at + 1, to + 1
    columns.ends[ends + 1] = to - first
    return at + 1 if at < record.last else NOWHERE


@compiled
def _read_number(record: Record, begin: int, wanted: Wanted, columns: Columns, cell: tuple[int, int]) -> int:
    """Read a BIGINT or a DOUBLE; returns the place behind it."""
    column, row = cell
    at, digits, power = values.number(record.text, begin)
    if at < 0:
        return NOWHERE
    minus = record.text[begin] == values.MINUS
    columns.states[column * columns.rows + row] = NUMBER
    if wanted.kinds[column] == INTEGER:
        if power < 0 or digits < 0 or (minus and digits == 0):
            return NOWHERE
        columns.numbers[column * columns.rows + row] = -digits if minus else digits
    elif 0 <= digits <= _EXACT and power >= -values.EXACT_POWER:
        number = digits / values.POWERS[-power]
        columns.floats[column * columns.rows + row] = -number if minus else number
    else:
        columns.states[column * columns.rows + row] = DIGITS
        _copied(record, begin, at, columns, (wanted.places[column], row))
    return at


@compiled
def _read_quoted(record: Record, at: int, wanted: Wanted, columns: Columns, cell: tuple[int, int]) -> int:
    """Read a STRING, a TIMESTAMP or a DATE from behind its quotation mark on; returns the place behind it."""
    column, row = cell
    columns.states[column * columns.rows + row] = NUMBER
    if wanted.kinds[column] == TEXT:
        return _copied_text(record, at, columns, wanted.places[column], row)
    if wanted.kinds[column] == TIME:
        at, columns.numbers[column * columns.rows + row] = values.time(record.text, at, record.last)
    elif wanted.kinds[column] == DATE and at + 10 <= record.last:
        columns.numbers[column * columns.rows + row], year = values.days(record.text, at)
        at = at + 10 if year > 0 else NOWHERE
    else:
        return NOWHERE
    return at + 1 if at >= 0 and record.text[at] == QUOTE else NOWHERE


@compiled
def _read_value(record: Record, at: int, wanted: Wanted, columns: Columns, cell: tuple[int, int]) -> int:
    """Read the value of an attribute; returns the place behind it."""
    column, row = cell
    letter, kind = record.text[at], wanted.kinds[column]
    if letter == QUOTE:
        return _read_quoted(record, at + 1, wanted, columns, cell)
    end = values.word_end(record.text, at)
    if letter == values.N:
        return end
    if kind == BOOLEAN:
        columns.states[column * columns.rows + row] = NUMBER
        columns.numbers[column * columns.rows + row] = letter == values.T
        return end
    if kind in (INTEGER, DOUBLE):
        return _read_number(record, at, wanted, columns, cell)
    return NOWHERE


@compiled
def _single_end(record: Record, at: int) -> int:
    """The place behind a value that is neither a list nor an object."""
    if record.text[at] == QUOTE:
        return _text_end(record, at + 1)
    end = values.word_end(record.text, at)
    return end if end >= 0 else values.number(record.text, at)[0]


@compiled
def _behind_name(record: Record, at: int) -> int:
    """The place of the value behind a name that nobody asks for, whose quotation mark is at `at`."""
    end = _text_end(record, at + 1) if record.text[at] == QUOTE else NOWHERE
    return _behind_colon(record.text, end) if end >= 0 else NOWHERE


@compiled
def _closed(record: Record, at: int, inside: int) -> tuple[int, int]:
    """Pass over the brackets and braces that close at `at`, behind a value.

    `inside` says in which lists and objects that value lies: a 1, then from outside to inside a bit for each,
    1 for an object, 0 for a list.

    Returns:
        the place of the next value if a comma comes, else the place behind all; and what `inside` is there.
    """
    while inside > 1:
        at = _passed(record.text, at)
        if record.text[at] == values.COMMA:
            at = _passed(record.text, at + 1)
            return (_behind_name(record, at) if inside & 1 else at), inside
        if at >= record.last or record.text[at] != (_CLOSE if inside & 1 else _CLOSE_LIST):
            return NOWHERE, inside
        at, inside = at + 1, inside >> 1
    return at, inside


@compiled
def _value_end(record: Record, at: int) -> int:
    """The place behind a value that nobody asks for, with all that is inside it."""
    inside = 1
    while at >= 0:
        letter = record.text[at]
        if letter in (_OPEN, _OPEN_LIST):
            inside = inside * 2 + (letter == _OPEN)
            at = _passed(record.text, at + 1)
            if inside >> _MOST_DEPTH:
                return NOWHERE
            if record.text[at] != (_CLOSE if letter == _OPEN else _CLOSE_LIST):
                at = _behind_name(record, at) if letter == _OPEN else at
                continue
        else:
            at = _single_end(record, at)
        if at >= 0:
            at, inside = _closed(record, at, inside)
        if inside == 1:
            return at
    return at


@compiled
def _read_members(record: Record, at: int, wanted: Wanted, columns: Columns, row: int) -> bool:
    """Read the members of an object, from behind its brace on; returns whether it is plain."""
    member = 0
    at = _passed(record.text, at)
    if at == record.last:
        return True
    while record.text[at] == QUOTE:
        column, at = _attribute(record, at + 1, wanted, columns.guess[member])
        at = _behind_colon(record.text, at) if at >= 0 else at
        if at < 0:
            return False
        columns.guess[member] = column
        member = min(member + 1, columns.members - 1)
        if column == _UNKNOWN:
            at = _value_end(record, at)
        else:
            if columns.seen[column] == row:
                return False
            columns.seen[column] = row
            at = _read_value(record, at, wanted, columns, (column, row))
        if at < 0:
            return False
        at = _passed(record.text, at)
        if record.text[at] != values.COMMA:
            return at == record.last
        at = _passed(record.text, at + 1)
    return False


@compiled
def _read_record(text: Bytes, bounds: tuple[int, int], wanted: Wanted, columns: Columns, row: int) -> int:
    """Read the record between two places into a row; returns what became of it, such as `READ`."""
    begin, end = bounds
    while end > begin and text[end - 1] in (values.SPACE, values.TAB, values.NEWLINE, values.RETURN):
        end -= 1
    if begin == end:
        return BLANK
    if text[end - 1] != _CLOSE:
        return LEFT
    begin = _passed(text, begin)
    if text[begin] != _OPEN:
        return LEFT
    for column in range(wanted.attributes):
        columns.states[column * columns.rows + row], columns.seen[column] = NULL, -1
    for texts in range(columns.texts_columns):
        place = texts * (columns.rows + 1) + row
        columns.ends[place + 1] = columns.ends[place]
    plain = _read_members(Record(text, end - 1), begin + 1, wanted, columns, row)
    return READ if plain else LEFT


def scan(sizes: Ints, bytes_: list[Bytes], ints: list[Ints], floats: Floats) -> int:
    """Read records into the first rows of columns.

    Args:
        sizes: n records, k attributes, t columns of texts, the bytes of each such column, m members.
        bytes_: the text; of `Wanted` names; of `Columns` states and texts; uint8[n], what became of records.
        ints: int64[2, n], where each record begins and ends in the text; of `Wanted` bounds, kinds and
            places; of `Columns` numbers, ends, seen and guess.
        floats: of `Columns`.

    Returns:
        how many records have been read.
    """
    text, names, states, texts, outcome = bytes_[0], bytes_[1], bytes_[2], bytes_[3], bytes_[4]
    wanted = Wanted(names, ints[1], ints[2], ints[3], sizes[1])
    columns = Columns(
        ints[4], floats, states, texts, ints[5], ints[6], ints[7], sizes[0], sizes[2], sizes[3], sizes[4]
    )
    row, bounds = 0, ints[0]
    for index in range(sizes[0]):
        became = _read_record(text, (bounds[index], bounds[sizes[0] + index]), wanted, columns, row)
        outcome[index] = became
        row += became == READ
    return row


_pointer: Callable[[Any], Any] = types.CPointer
_BYTES, _INTS, _FLOATS = (_pointer(kind) for kind in (types.uint8, types.int64, types.float64))
scan_compiled = numba.cfunc(types.int64(_INTS, _pointer(_BYTES), _pointer(_INTS), _FLOATS))(scan)
