"""Numbers, dates and times in JSON, as `spark_pace.io.text.scan` reads them.

What begins at the place `at` is read. A function that gives a place gives that behind what it has read, or
`NOWHERE` if that is not plain. None looks behind the brace that ends the record: every loop over letters
stops there too.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spark_pace.machine_code.kernel import inlined

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]

NOWHERE = -1
QUOTE, COMMA, MINUS, PLUS, POINT, COLON, BACKSLASH = b'",-+.:\\'
SPACE, ZERO, NINE, TAB, NEWLINE, RETURN = b" 09\t\n\r"
A, E, F, L, N, R, S, T, U, ZULU, TIME_MARK = b"aeflnrstuZT"
EXACT_POWER = 22  # powers of ten up to this one are doubles
POWERS = np.array([10.0**power for power in range(EXACT_POWER + 1)])
_MOST = 922_337_203_685_477_579  # with any digit behind it, it is still an int64
_MOST_LETTERS = 64  # of a number
_DAYS_BEFORE = np.array([0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365])
_FIRST_YEAR, _LAST_YEAR = 1900, 2199
_NANO_YEAR = 1971  # from here on a time is after the beginning of 1970 in every zone
_DAYS_TO_1970 = 134_774  # since 1601
_DAY_US, _HOUR_US, _MINUTE_US, _SECOND_US = 86_400_000_000, 3_600_000_000, 60_000_000, 1_000_000
_NONE = -1_000_000  # in place of a number that two characters do not write


@inlined
def word_end(text: Bytes, at: int) -> int:
    """The place behind ``true``, ``false`` or ``null``."""
    if text[at] == T and text[at + 1] == R and text[at + 2] == U and text[at + 3] == E:
        return at + 4
    if text[at] == N and text[at + 1] == U and text[at + 2] == L and text[at + 3] == L:
        return at + 4
    if text[at] == F and text[at + 1] == A and text[at + 2] == L and text[at + 3] == S:
        return at + 5 if text[at + 4] == E else NOWHERE
    return NOWHERE


@inlined
def _digits(text: Bytes, at: int, number: int) -> tuple[int, int]:
    """The place behind digits, and `number` with these digits appended; -1 if that is too large."""
    while ZERO <= text[at] <= NINE:
        number = number * 10 + (text[at] - ZERO) if 0 <= number <= _MOST else -1
        at += 1
    return at, number


@inlined
def number_at(text: Bytes, at: int) -> tuple[int, int, int]:
    """The place behind a number, its digits as an integer without the sign, and their power of ten.

    The power is 0 for an integer, negative for digits behind a point. The digits are -1 if there are too many
    for an integer, or if the number has an exponent.
    """
    begin = at
    at += text[at] == MINUS
    first = at
    at, digits = _digits(text, at, 0)
    if at == first or (text[first] == ZERO and at > first + 1):
        return NOWHERE, 0, 0
    power = 0
    if text[at] == POINT:
        point = at
        at, digits = _digits(text, at + 1, digits)
        power = point + 1 - at
        if power == 0:
            return NOWHERE, 0, 0
    if text[at] == E or text[at] == E - 32:
        at += 1
        at += text[at] == MINUS or text[at] == PLUS
        first = at
        at, _ = _digits(text, at, 0)
        digits = -1
        if not 1 <= at - first <= 2:
            return NOWHERE, 0, 0
    return (at, digits, power) if at - begin <= _MOST_LETTERS else (NOWHERE, 0, 0)


@inlined
def _two(text: Bytes, at: int) -> int:
    """The number that two digits write; one far below 0 if the two characters are no digits."""
    tens, ones = text[at] - ZERO, text[at + 1] - ZERO
    return tens * 10 + ones if 0 <= tens <= 9 and 0 <= ones <= 9 else _NONE


@inlined
def days_at(text: Bytes, at: int) -> tuple[int, int]:
    """The days since 1970 of a date such as ``2013-01-31``, and its year; both 0 if it is not plain."""
    year, month, day = _two(text, at) * 100 + _two(text, at + 2), _two(text, at + 5), _two(text, at + 8)
    if not (_FIRST_YEAR <= year <= _LAST_YEAR and 1 <= month <= 12):
        return 0, 0
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    most = _DAYS_BEFORE[month] - _DAYS_BEFORE[month - 1] + (leap and month == 2)
    if not (1 <= day <= most and text[at + 4] == MINUS and text[at + 7] == MINUS):
        return 0, 0
    years = year - 1601
    before = years * 365 + years // 4 - years // 100 + years // 400 - _DAYS_TO_1970
    return before + _DAYS_BEFORE[month - 1] + (leap and month > 2) + day - 1, year


@inlined
def _fraction(text: Bytes, at: int, year: int) -> tuple[int, int]:
    """The place behind the fraction of a second, and its microseconds; without a point `at` and 0.

    `NOWHERE` if no digit follows the point, or more than nine (more than six in old years). What is behind
    the sixth is cut off.
    """
    if text[at] != POINT:
        return at, 0
    begin, micros, unit = at + 1, 0, _SECOND_US
    at = begin
    while ZERO <= text[at] <= NINE:
        unit //= 10
        micros += (text[at] - ZERO) * unit
        at += 1
    most = 9 if year >= _NANO_YEAR else 6
    return (at, micros) if 1 <= at - begin <= most else (NOWHERE, 0)


@inlined
def _zone(text: Bytes, at: int, last: int) -> tuple[int, int]:
    """The place behind the zone, and the microseconds by which its clock is ahead of UTC; without one 0."""
    if text[at] == QUOTE:
        return at, 0
    if text[at] == ZULU:
        return at + 1, 0
    if at + 6 > last:
        return NOWHERE, 0
    sign = (text[at] == PLUS) - (text[at] == MINUS)
    hours, minutes = _two(text, at + 1), 0
    if sign == 0 or not 0 <= hours <= 14:
        return NOWHERE, 0
    at += 3
    if text[at] != QUOTE:
        at += text[at] == COLON
        minutes = _two(text, at)
        at += 2
    valid = 0 <= minutes <= 59
    return (at, sign * (hours * _HOUR_US + minutes * _MINUTE_US)) if valid else (NOWHERE, 0)


@inlined
def time_at(text: Bytes, at: int, last: int) -> tuple[int, int]:
    """The place behind a time such as ``2013-01-01T00:00:00``, and its microseconds since 1970, UTC."""
    if at + 20 > last:
        return NOWHERE, 0
    date, year = days_at(text, at)
    hour, minute, second = _two(text, at + 11), _two(text, at + 14), _two(text, at + 17)
    inside = 0 <= hour <= 23 and 0 <= minute <= 59 and 0 <= second <= 59
    marks = text[at + 13] == COLON and text[at + 16] == COLON
    if not (year and inside and marks and (text[at + 10] == TIME_MARK or text[at + 10] == SPACE)):
        return NOWHERE, 0
    at, micros = _fraction(text, at + 19, year)
    if at < 0:
        return NOWHERE, 0
    at, before = _zone(text, at, last)
    clock = hour * _HOUR_US + minute * _MINUTE_US + second * _SECOND_US
    return at, date * _DAY_US + clock + micros - before
