"""Reads plain records of JSON in one pass over their bytes, as machine code.

A record is plain if it is certain that pyarrow's reader takes it, and what values that reads: one object, no
escapes in texts, each attribute once and written as its type is. What is not plain is left to that reader.

Numbers and times are computed here only where the result is exact; of other floating-point numbers the digits
are kept, for pyarrow to convert. As plain Python this does not read the same: sums of one byte wrap around.

A place is the index of a byte. What begins at the place `at` is read. Whatever gives a place gives that
behind what it has read, or `NOWHERE` if that is not plain. None looks behind the brace that ends the record:
every loop over letters stops there too. `cell` says where a value goes: the column (an attribute, or a row of
`Columns.texts`), and the record's row.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spark_pace.io.text import scan_values as values
from spark_pace.io.text.scan_values import NOWHERE, QUOTE, days_at, number_at, time_at, word_end
from spark_pace.machine_code.kernel import Kernel, inlined

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

INTEGER, DOUBLE, BOOLEAN, TIME, DATE, TEXT = range(6)  # kinds of attributes
NULL, NUMBER, DIGITS = range(3)  # states of values: null; read; kept among the texts, as digits
READ, LEFT, BLANK = range(3)  # a record was read, is left to pyarrow's reader, is blank


class Wanted(NamedTuple):
    """The k attributes that are read from each record.

    Attributes:
        names: uint8[], one name behind the other.
        bounds: int64[k + 1], where each name begins, and where the last one ends.
        kinds: int64[k].
        places: int64[k], the row of each attribute in `Columns.texts`, if it is a DOUBLE or a STRING.
    """

    names: Bytes
    bounds: Ints
    kinds: Ints
    places: Ints


class Columns(NamedTuple):
    """Where the values of n records go.

    Attributes:
        numbers: int64[k, n]: integers, booleans, days or microseconds since 1970.
        floats: float64[k, n], the same memory.
        states: uint8[k, n].
        texts: uint8[t, b], the texts of a column one behind the other.
        ends: int64[t, n + 1]: the text of row i ends at entry i + 1, and begins where the one before ends.
        seen: int64[k], the last row in which the attribute was read.
        guess: int64[m], which attributes the first m members of the record before were; -1: none.
    """

    numbers: Ints
    floats: Floats
    states: Bytes
    texts: Bytes
    ends: Ints
    seen: Ints
    guess: Ints


_UNKNOWN = -1  # in place of an attribute, for a member that is none
_OPEN, _CLOSE, _OPEN_LIST, _CLOSE_LIST = b"{}[]"
_EXACT = 1 << 53  # every integer up to it is a double
_MOST_DEPTH = 60  # of lists and objects inside each other in a value that is passed over


class Record(NamedTuple):
    """The text that holds a record, and the place of its last brace, before which all else of it ends."""

    text: Bytes
    last: int


@inlined
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


@inlined
def _text_end(record: Record, at: int) -> int:
    """The place behind a text without escapes and its quotation mark; its first letter is at `at`."""
    while at < record.last and record.text[at] != QUOTE:
        if record.text[at] < values.SPACE or record.text[at] == values.BACKSLASH:
            return NOWHERE
        at += 1
    return at + 1 if at < record.last else NOWHERE


@inlined
def _is_name(record: Record, at: int, wanted: Wanted, column: int) -> bool:
    """Tell whether the name of the attribute `column` stands at `at`, with a quotation mark behind it."""
    begin, end = wanted.bounds[column], wanted.bounds[column + 1]
    if at + end - begin >= record.last or record.text[at + end - begin] != QUOTE:
        return False
    place = begin
    while place < end and record.text[at + place - begin] == wanted.names[place]:
        place += 1
    return bool(place == end)


@inlined
def _attribute(record: Record, at: int, wanted: Wanted, guessed: int) -> tuple[int, int]:
    """The attribute whose name begins at `at`, else `_UNKNOWN`; and the place behind its quotation mark.

    The attribute `guessed` is tried first, if it is one.
    """
    if guessed >= 0 and _is_name(record, at, wanted, guessed):
        return guessed, at + wanted.bounds[guessed + 1] - wanted.bounds[guessed] + 1
    end = _text_end(record, at)
    if end >= 0:
        for column in range(len(wanted.kinds)):
            if end - at - 1 == wanted.bounds[column + 1] - wanted.bounds[column] and _is_name(
                record, at, wanted, column
            ):
                return column, end
    return _UNKNOWN, end


@inlined
def _behind_colon(text: Bytes, at: int) -> int:
    """The place of the value behind the colon that follows a name, which ends before `at`."""
    at = _passed(text, at)
    return _passed(text, at + 1) if text[at] == values.COLON else NOWHERE


@inlined
def _copied(record: Record, begin: int, end: int, columns: Columns, cell: tuple[int, int]) -> None:
    """Append the bytes from `begin` to `end` to the texts of a column."""
    texts, row = cell
    to = columns.ends[texts, row]
    for at in range(begin, end):
        columns.texts[texts, to + at - begin] = record.text[at]
    columns.ends[texts, row + 1] = to + end - begin


@inlined
def _copied_text(record: Record, at: int, columns: Columns, texts: int, row: int) -> int:
    """Append the text that begins at `at` to row `texts` of `Columns.texts`; returns the place behind it."""
    to = columns.ends[texts, row]
    while at < record.last and record.text[at] != QUOTE:
        if record.text[at] < values.SPACE or record.text[at] == values.BACKSLASH:
            return NOWHERE
        columns.texts[texts, to] = record.text[at]
        at, to = at + 1, to + 1
    columns.ends[texts, row + 1] = to
    return at + 1 if at < record.last else NOWHERE


@inlined
def _read_number(record: Record, begin: int, wanted: Wanted, columns: Columns, cell: tuple[int, int]) -> int:
    """Read a BIGINT or a DOUBLE; returns the place behind it."""
    column, row = cell
    at, digits, power = number_at(record.text, begin)
    if at < 0:
        return NOWHERE
    minus = record.text[begin] == values.MINUS
    columns.states[column, row] = NUMBER
    if wanted.kinds[column] == INTEGER:
        if power < 0 or digits < 0 or (minus and digits == 0):
            return NOWHERE
        columns.numbers[column, row] = -digits if minus else digits
    elif 0 <= digits <= _EXACT and power >= -values.EXACT_POWER:
        number = digits / values.POWERS[-power]
        columns.floats[column, row] = -number if minus else number
    else:
        columns.states[column, row] = DIGITS
        _copied(record, begin, at, columns, (wanted.places[column], row))
    return at


@inlined
def _read_quoted(record: Record, at: int, wanted: Wanted, columns: Columns, cell: tuple[int, int]) -> int:
    """Read a STRING, a TIMESTAMP or a DATE from behind its quotation mark on; returns the place behind it."""
    column, row = cell
    columns.states[column, row] = NUMBER
    if wanted.kinds[column] == TEXT:
        return _copied_text(record, at, columns, wanted.places[column], row)
    if wanted.kinds[column] == TIME:
        at, columns.numbers[column, row] = time_at(record.text, at, record.last)
    elif wanted.kinds[column] == DATE and at + 10 <= record.last:
        columns.numbers[column, row], year = days_at(record.text, at)
        at = at + 10 if year > 0 else NOWHERE
    else:
        return NOWHERE
    return at + 1 if at >= 0 and record.text[at] == QUOTE else NOWHERE


@inlined
def _read_value(record: Record, at: int, wanted: Wanted, columns: Columns, cell: tuple[int, int]) -> int:
    """Read the value of an attribute; returns the place behind it."""
    column, row = cell
    letter, kind = record.text[at], wanted.kinds[column]
    if letter == QUOTE:
        return _read_quoted(record, at + 1, wanted, columns, cell)
    end = word_end(record.text, at)
    if letter == values.N:
        return end
    if kind == BOOLEAN:
        columns.states[column, row] = NUMBER
        columns.numbers[column, row] = letter == values.T
        return end
    if kind in (INTEGER, DOUBLE):
        return _read_number(record, at, wanted, columns, cell)
    return NOWHERE


@inlined
def _single_end(record: Record, at: int) -> int:
    """The place behind a value that is neither a list nor an object."""
    if record.text[at] == QUOTE:
        return _text_end(record, at + 1)
    end = word_end(record.text, at)
    return end if end >= 0 else number_at(record.text, at)[0]


@inlined
def _behind_name(record: Record, at: int) -> int:
    """The place of the value behind a name that nobody asks for, whose quotation mark is at `at`."""
    end = _text_end(record, at + 1) if record.text[at] == QUOTE else NOWHERE
    return _behind_colon(record.text, end) if end >= 0 else NOWHERE


@inlined
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


@inlined
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


@inlined
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
        member = min(member + 1, len(columns.guess) - 1)
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


@inlined
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
    for column in range(len(wanted.kinds)):
        columns.states[column, row], columns.seen[column] = NULL, -1
    for texts in range(len(columns.ends)):
        columns.ends[texts, row + 1] = columns.ends[texts, row]
    plain = _read_members(Record(text, end - 1), begin + 1, wanted, columns, row)
    return READ if plain else LEFT


@Kernel
def scan(text: Bytes, bounds: Ints, wanted: Wanted, columns: Columns, outcome: Bytes, read: Ints) -> None:
    """Read records into the first rows of columns.

    Args:
        text: the text that holds n records.
        bounds: int64[2, n], where each begins and ends.
        wanted: the attributes.
        columns: where their values go.
        outcome: uint8[n], to which is written what became of each record.
        read: int64[1], to which is written how many records have been read.
    """
    row = 0
    for index in range(len(outcome)):
        became = _read_record(text, (bounds[0, index], bounds[1, index]), wanted, columns, row)
        outcome[index] = became
        row += became == READ
    read[0] = row


_BYTES, _INTS = np.zeros((1, 1), np.uint8), np.zeros((1, 1), np.int64)
NOTHING = (  # no records: arguments that are laid out as those of every text
    *(_BYTES[0, :0], _INTS[:, :0], Wanted(_BYTES[0], _INTS[0], _INTS[0], _INTS[0])),
    *(Columns(_INTS, _INTS.view(np.float64), _BYTES, _BYTES, _INTS, _INTS[0], _INTS[0]), _BYTES[0, :0]),
    _INTS[0],
)
