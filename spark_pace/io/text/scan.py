"""Reads plain records of JSON in one pass over their bytes, as machine code.

A record is plain if it is certain that pyarrow's reader takes it, and what values that reads: one object, no
escapes in texts, each attribute once and written as its type is. What is not plain is left to that reader.

Numbers and times are computed here only where the result is exact; of other floating-point numbers the digits
are kept, for pyarrow to convert. As plain Python this does not read the same: sums of one byte wrap around.

A place is the index of a byte. What begins at the place `at` is read. Whatever gives a place gives that
behind what it has read, or `_NOWHERE` if that is not plain. None looks behind the brace that ends the record:
every loop over letters stops there too. `cell` says where a value goes: the column (an attribute, or a row of
`Columns.texts`), and the record's row.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spark_pace.machine_code.kernel import Kernel, inlined

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

INTEGER, DOUBLE, BOOLEAN, TIME, DATE, TEXT = range(6)  # kinds of attributes
NULL, NUMBER, DIGITS = range(3)  # states of values: null; read; kept among the texts, as digits
_NOWHERE = -1
_QUOTE, _COMMA, _MINUS, _PLUS, _POINT, _COLON, _BACKSLASH = b'",-+.:\\'
_SPACE, _ZERO, _NINE, _TAB, _NEWLINE, _RETURN = b" 09\t\n\r"
A, E, F, L, N, R, S, T, U, _ZULU, _TIME_MARK = b"aeflnrstuZT"
_EXACT_POWER = 22  # powers of ten up to this one are doubles
_POWERS = np.array([10.0**power for power in range(_EXACT_POWER + 1)])
_MOST = 922_337_203_685_477_579  # with any digit behind it, it is still an int64
_MOST_LETTERS = 64  # of a number
_DAYS_BEFORE = np.array([0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365])
_FIRST_YEAR, _LAST_YEAR = 1900, 2199
_DAYS_TO_1970 = 134_774  # since 1601
_DAY_US, _HOUR_US, _MINUTE_US, _SECOND_US = 86_400_000_000, 3_600_000_000, 60_000_000, 1_000_000
_NONE = -1_000_000  # in place of a number that two characters do not write


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
def _word_end(text: Bytes, at: int) -> int:
    """The place behind ``true``, ``false`` or ``null``."""
    if text[at] == T and text[at + 1] == R and text[at + 2] == U and text[at + 3] == E:
        return at + 4
    if text[at] == N and text[at + 1] == U and text[at + 2] == L and text[at + 3] == L:
        return at + 4
    if text[at] == F and text[at + 1] == A and text[at + 2] == L and text[at + 3] == S:
        return at + 5 if text[at + 4] == E else _NOWHERE
    return _NOWHERE


@inlined
def _digits(text: Bytes, at: int, number: int) -> tuple[int, int]:
    """The place behind digits, and `number` with these digits appended; -1 if that is too large."""
    while _ZERO <= text[at] <= _NINE:
        number = number * 10 + (text[at] - _ZERO) if 0 <= number <= _MOST else -1
        at += 1
    return at, number


@inlined
def _number_at(text: Bytes, at: int) -> tuple[int, int, int]:
    """The place behind a number, its digits as an integer without the sign, and their power of ten.

    The power is 0 for an integer, negative for digits behind a point. The digits are -1 if there are too many
    for an integer, or if the number has an exponent.
    """
    begin = at
    at += text[at] == _MINUS
    first = at
    at, digits = _digits(text, at, 0)
    if at == first or (text[first] == _ZERO and at > first + 1):
        return _NOWHERE, 0, 0
    power = 0
    if text[at] == _POINT:
        point = at
        at, digits = _digits(text, at + 1, digits)
        power = point + 1 - at
        if power == 0:
            return _NOWHERE, 0, 0
    if text[at] == E or text[at] == E - 32:
        at += 1
        at += text[at] == _MINUS or text[at] == _PLUS
        first = at
        at, _ = _digits(text, at, 0)
        digits = -1
        if not 1 <= at - first <= 2:
            return _NOWHERE, 0, 0
    return (at, digits, power) if at - begin <= _MOST_LETTERS else (_NOWHERE, 0, 0)


@inlined
def _two(text: Bytes, at: int) -> int:
    """The number that two digits write; one far below 0 if the two characters are no digits."""
    tens, ones = text[at] - _ZERO, text[at + 1] - _ZERO
    return tens * 10 + ones if 0 <= tens <= 9 and 0 <= ones <= 9 else _NONE


@inlined
def _days_at(text: Bytes, at: int) -> tuple[int, int]:
    """The days since 1970 of a date such as ``2013-01-31``, and its year; both 0 if it is not plain."""
    year, month, day = _two(text, at) * 100 + _two(text, at + 2), _two(text, at + 5), _two(text, at + 8)
    if not (_FIRST_YEAR <= year <= _LAST_YEAR and 1 <= month <= 12):
        return 0, 0
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    most = _DAYS_BEFORE[month] - _DAYS_BEFORE[month - 1] + (leap and month == 2)
    if not (1 <= day <= most and text[at + 4] == _MINUS and text[at + 7] == _MINUS):
        return 0, 0
    years = year - 1601
    before = years * 365 + years // 4 - years // 100 + years // 400 - _DAYS_TO_1970
    return before + _DAYS_BEFORE[month - 1] + (leap and month > 2) + day - 1, year


@inlined
def _fraction(text: Bytes, at: int) -> tuple[int, int]:
    """The place behind the fraction of a second, and its microseconds; without a point `at` and 0.

    `_NOWHERE` if no digit follows the point, or more than nine. What is behind the sixth is cut off.
    """
    if text[at] != _POINT:
        return at, 0
    begin, micros, unit = at + 1, 0, _SECOND_US
    at = begin
    while _ZERO <= text[at] <= _NINE:
        unit //= 10
        micros += (text[at] - _ZERO) * unit
        at += 1
    return (at, micros) if 1 <= at - begin <= 9 else (_NOWHERE, 0)


@inlined
def _zone(text: Bytes, at: int, last: int) -> tuple[int, int]:
    """The place behind the zone, and the microseconds by which its clock is ahead of UTC; without one 0."""
    if text[at] == _QUOTE:
        return at, 0
    if text[at] == _ZULU:
        return at + 1, 0
    if at + 6 > last:
        return _NOWHERE, 0
    sign = (text[at] == _PLUS) - (text[at] == _MINUS)
    hours, minutes = _two(text, at + 1), 0
    if sign == 0 or not 0 <= hours <= 14:
        return _NOWHERE, 0
    at += 3
    if text[at] != _QUOTE:
        at += text[at] == _COLON
        minutes = _two(text, at)
        at += 2
    valid = 0 <= minutes <= 59
    return (at, sign * (hours * _HOUR_US + minutes * _MINUTE_US)) if valid else (_NOWHERE, 0)


@inlined
def _time_at(text: Bytes, at: int, last: int) -> tuple[int, int]:
    """The place behind a time such as ``2013-01-01T00:00:00``, and its microseconds since 1970, UTC."""
    if at + 20 > last:
        return _NOWHERE, 0
    date, year = _days_at(text, at)
    hour, minute, second = _two(text, at + 11), _two(text, at + 14), _two(text, at + 17)
    inside = 0 <= hour <= 23 and 0 <= minute <= 59 and 0 <= second <= 59
    marks = text[at + 13] == _COLON and text[at + 16] == _COLON
    if not (year and inside and marks and (text[at + 10] == _TIME_MARK or text[at + 10] == _SPACE)):
        return _NOWHERE, 0
    at, micros = _fraction(text, at + 19)
    if at < 0:
        return _NOWHERE, 0
    at, before = _zone(text, at, last)
    clock = hour * _HOUR_US + minute * _MINUTE_US + second * _SECOND_US
    return at, date * _DAY_US + clock + micros - before


@inlined
def _passed(text: Bytes, at: int) -> int:
    """The first place, from `at` on, that holds no white space."""
    while text[at] <= _SPACE and (
        text[at] == _SPACE or text[at] == _TAB or text[at] == _NEWLINE or text[at] == _RETURN
    ):
        at += 1
    return at


@inlined
def _text_end(record: Record, at: int) -> int:
    """The place behind a text without escapes and its quotation mark; its first letter is at `at`."""
    while at < record.last and record.text[at] != _QUOTE:
        if record.text[at] < _SPACE or record.text[at] == _BACKSLASH:
            return _NOWHERE
        at += 1
    return at + 1 if at < record.last else _NOWHERE


@inlined
def _is_name(record: Record, at: int, wanted: Wanted, column: int) -> bool:
    """Tell whether the name of the attribute `column` stands at `at`, with a quotation mark behind it."""
    begin, end = wanted.bounds[column], wanted.bounds[column + 1]
    if at + end - begin >= record.last or record.text[at + end - begin] != _QUOTE:
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
    return _passed(text, at + 1) if text[at] == _COLON else _NOWHERE


@inlined
def _copied(record: Record, begin: int, end: int, columns: Columns, cell: tuple[int, int]) -> None:
    """Append the bytes from `begin` to `end` to the texts of a column."""
    texts, row = cell
    to = columns.ends[texts, row]
    for at in range(begin, end):
        columns.texts[texts, to + at - begin] = record.text[at]
    columns.ends[texts, row + 1] = to + end - begin


@inlined
def _read_number(record: Record, begin: int, wanted: Wanted, columns: Columns, cell: tuple[int, int]) -> int:
    """Read a BIGINT or a DOUBLE; returns the place behind it."""
    column, row = cell
    at, digits, power = _number_at(record.text, begin)
    if at < 0:
        return _NOWHERE
    minus = record.text[begin] == _MINUS
    columns.states[column, row] = NUMBER
    if wanted.kinds[column] == INTEGER:
        if power < 0 or digits < 0 or (minus and digits == 0):
            return _NOWHERE
        columns.numbers[column, row] = -digits if minus else digits
    elif 0 <= digits <= _EXACT and power >= -_EXACT_POWER:
        number = digits / _POWERS[-power]
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
        end = _text_end(record, at)
        if end >= 0:
            _copied(record, at, end - 1, columns, (wanted.places[column], row))
        return end
    if wanted.kinds[column] == TIME:
        at, columns.numbers[column, row] = _time_at(record.text, at, record.last)
    elif wanted.kinds[column] == DATE and at + 10 <= record.last:
        columns.numbers[column, row], year = _days_at(record.text, at)
        at = at + 10 if year > 0 else _NOWHERE
    else:
        return _NOWHERE
    return at + 1 if at >= 0 and record.text[at] == _QUOTE else _NOWHERE


@inlined
def _read_value(record: Record, at: int, wanted: Wanted, columns: Columns, cell: tuple[int, int]) -> int:
    """Read the value of an attribute; returns the place behind it."""
    column, row = cell
    letter, kind = record.text[at], wanted.kinds[column]
    if letter == _QUOTE:
        return _read_quoted(record, at + 1, wanted, columns, cell)
    end = _word_end(record.text, at)
    if letter == N:
        return end
    if kind == BOOLEAN:
        columns.states[column, row] = NUMBER
        columns.numbers[column, row] = letter == T
        return end
    if kind in (INTEGER, DOUBLE):
        return _read_number(record, at, wanted, columns, cell)
    return _NOWHERE


@inlined
def _single_end(record: Record, at: int) -> int:
    """The place behind a value that is neither a list nor an object."""
    if record.text[at] == _QUOTE:
        return _text_end(record, at + 1)
    end = _word_end(record.text, at)
    return end if end >= 0 else _number_at(record.text, at)[0]


@inlined
def _behind_name(record: Record, at: int) -> int:
    """The place of the value behind a name that nobody asks for, whose quotation mark is at `at`."""
    end = _text_end(record, at + 1) if record.text[at] == _QUOTE else _NOWHERE
    return _behind_colon(record.text, end) if end >= 0 else _NOWHERE


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
        if record.text[at] == _COMMA:
            at = _passed(record.text, at + 1)
            return (_behind_name(record, at) if inside & 1 else at), inside
        if at >= record.last or record.text[at] != (_CLOSE if inside & 1 else _CLOSE_LIST):
            return _NOWHERE, inside
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
                return _NOWHERE
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
    while record.text[at] == _QUOTE:
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
        if record.text[at] != _COMMA:
            return at == record.last
        at = _passed(record.text, at + 1)
    return False


@inlined
def _read_record(text: Bytes, bounds: tuple[int, int], wanted: Wanted, columns: Columns, row: int) -> bool:
    """Read the record between two places into a row; returns whether it is plain."""
    begin, end = bounds
    while end > begin and text[end - 1] in (_SPACE, _TAB, _NEWLINE, _RETURN):
        end -= 1
    if begin == end or text[end - 1] != _CLOSE:
        return False
    begin = _passed(text, begin)
    if text[begin] != _OPEN:
        return False
    for column in range(len(wanted.kinds)):
        columns.states[column, row], columns.seen[column] = NULL, -1
    for texts in range(len(columns.ends)):
        columns.ends[texts, row + 1] = columns.ends[texts, row]
    return _read_members(Record(text, end - 1), begin + 1, wanted, columns, row)


@Kernel
def scan(text: Bytes, bounds: Ints, wanted: Wanted, columns: Columns, plain: Bytes) -> None:
    """Read plain records into the first rows of columns.

    Args:
        text: the text that holds n records.
        bounds: int64[2, n], where each begins and ends.
        wanted: the attributes.
        columns: where their values go.
        plain: uint8[n], to which is written 1 for each record that was read, 0 for the others.
    """
    row = 0
    for index in range(len(plain)):
        was_read = _read_record(text, (bounds[0, index], bounds[1, index]), wanted, columns, row)
        plain[index] = was_read
        row += was_read


_BYTES, _INTS = np.zeros((1, 1), np.uint8), np.zeros((1, 1), np.int64)
NOTHING = (  # no records: arguments that are laid out as those of every text
    *(_BYTES[0, :0], _INTS[:, :0], Wanted(_BYTES[0], _INTS[0], _INTS[0], _INTS[0])),
    *(Columns(_INTS, _INTS.view(np.float64), _BYTES, _BYTES, _INTS, _INTS[0], _INTS[0]), _BYTES[0, :0]),
)
