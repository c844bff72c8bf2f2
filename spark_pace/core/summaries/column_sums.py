"""The numbers of columns, and their squares, as `spark_pace.core.summaries.sums` adds them.

In most columns the same few places hold the digits of all numbers. Then these are taken from whole blocks,
which stay in the processor's cache: the first place is the lowest at which the digits of all numbers together
fit into 62 bits. Else the bits of each number are looked at.

Sources: Dekker, A Floating-Point Technique for Extending the Available Precision, 1971 (exact products).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from spark_pace.core.columns import Bools, Ints
from spark_pace.core.summaries.sums import ODD, Floats, Sums, distinct, greatest
from spark_pace.core.tables import bools

_BITS = 32
_LOW = (1 << _BITS) - 1
_HALF = 1 << (_BITS - 1)
_MANTISSA = (1 << 52) - 1
_EXPONENT = (1 << 11) - 1
_SUM_BITS = 62  # that the digits of a place have, all added up
_MOST_DIGITS = 4
_FAR = 10  # places from 0: numbers and their digits are far from the ends of what a DOUBLE holds
_LEAST = 2.0**-600
_BLOCK = 1 << 13
_SPLITTER = float((1 << 27) + 1)
_UNIT = 1075  # a floating-point number is its mantissa times 2 ** (exponent - 1075)

Digits: TypeAlias = dict[int, Ints]


def sums_of(values: pa.Array) -> Sums:
    """The numbers of a column: BIGINT, DOUBLE or DECIMAL; null is 0."""
    if pa.types.is_decimal(values.type):
        words = _words_of_decimals(values)
        return Sums(len(values), (0, 1, 2, 3), lambda place: words[place])
    if (few := _in_few_digits(values)) is not None:
        return few
    place, parts, negative = _parts(values)
    if negative.any():
        parts = [np.where(negative, -part, part) for part in parts]
    return _odd(_at_places(place, parts), values)


def squares_of(values: pa.Array) -> Sums:
    """The squares of the numbers of a column: BIGINT or DOUBLE; null is 0."""
    if (few := _squares_in_few_digits(values)) is not None:
        return few
    place, parts, _ = _parts(values)
    squares = [np.zeros(len(values), np.int64) for _ in range(2 * len(parts))]
    for left, ours in enumerate(parts):
        for right, theirs in enumerate(parts):
            product = ours.astype(np.uint64) * theirs.astype(np.uint64)
            squares[left + right] += (product & np.uint64(_LOW)).astype(np.int64)
            squares[left + right + 1] += (product >> np.uint64(_BITS)).astype(np.int64)
    return _odd(_at_places(2 * place, squares), values)


def deviation(sums: Sums, squares: Sums, count: Ints) -> pa.Array:
    """The standard deviation of a sample, from n * sum(x * x) - sum(x) * sum(x), which is exact."""
    mantissa, exponent = squares.times(sums_of(pa.array(count))).minus(sums.times(sums)).rounded()
    odd = exponent & 1
    degrees = count.astype(np.float64) * np.maximum(count - 1, 1)
    root = np.sqrt(np.ldexp(mantissa, odd) / np.maximum(degrees, 1))
    with np.errstate(over="ignore"):
        values = np.ldexp(root, (exponent - odd) >> 1)
    values = np.where(sums.finite, values, np.nan)
    return pa.array(values, mask=count < 2)


def _in_few_digits(values: pa.Array) -> Sums | None:
    """The numbers of a column where each has its digits at the same few places; else None."""
    numbers = _filled(values)
    if pa.types.is_integer(values.type):
        fit = greatest(numbers) * len(numbers) < 1 << _SUM_BITS
        return Sums(len(numbers), (0,), lambda _: numbers) if fit else None
    digits = _digits_of(numbers)
    return None if digits is None else Sums(len(numbers), tuple(sorted(digits)), digits.__getitem__)


def _squares_in_few_digits(values: pa.Array) -> Sums | None:
    """The same of the squares."""
    numbers = _filled(values)
    if pa.types.is_integer(values.type):
        if greatest(numbers) ** 2 * len(numbers) >= 1 << _SUM_BITS:
            return None
        squares = np.square(numbers)
        return Sums(len(numbers), (0,), lambda _: squares)
    parts = _digits_of_squares(numbers)
    if parts is None:
        return None
    sums, lack = (Sums(len(numbers), tuple(sorted(part)), part.__getitem__) for part in parts)
    return sums.plus(lack)


def _filled(values: pa.Array) -> npt.NDArray[Any]:
    """The numbers of a column, 0 for nulls."""
    return (pc.fill_null(values, 0) if values.null_count else values).to_numpy()  # type: ignore[no-any-return]


def _at_places(place: Ints, parts: Sequence[Ints]) -> Sums:
    """Numbers of which part i is the digit at `place` + i of each."""
    firsts = distinct(place)
    places = sorted({first + step for first in firsts for step in range(len(parts))})

    def at(wanted: int) -> Ints:
        if len(firsts) == 1:
            return parts[wanted - firsts[0]]
        digits = np.zeros(len(place), np.int64)
        for step, part in enumerate(parts):
            if wanted - step in firsts:
                digits += np.where(place == wanted - step, part, 0)
        return digits

    return Sums(len(place), tuple(places), at)


def _odd(sums: Sums, values: pa.Array) -> Sums:
    """The sums with the number of infinities and NaNs, where there are any."""
    if not pa.types.is_floating(values.type):
        return sums
    numbers = _filled(values)
    if np.isfinite(numbers).all():
        return sums
    odd = (numbers == np.inf, numbers == -np.inf, np.isnan(numbers))
    found = {place: one.astype(np.int64) for place, one in zip(ODD, odd, strict=True) if one.any()}

    def at(place: int) -> Ints:
        return found[place] if place in found else sums.at(place)

    return Sums(sums.rows, (*sums.places, *found), at)


def _parts(values: pa.Array) -> tuple[Ints, list[Ints], Bools]:
    """The digits of numbers without their signs; 0 for nulls and what is not finite.

    Returns:
        int64[n], the place of the lowest digit of each; the digits from there on, int64[n] each; bool[n],
        which numbers are negative.
    """
    if pa.types.is_integer(values.type):
        whole = _filled(values)
        size = np.abs(whole).view(np.uint64)
        parts = [size & np.uint64(_LOW), size >> np.uint64(_BITS)]
        return np.zeros(len(whole), np.int64), [part.astype(np.int64) for part in parts], whole < 0
    numbers = _filled(values)
    bits = np.where(np.isfinite(numbers), numbers, 0.0).view(np.int64)
    exponent, mantissa = (bits >> 52) & _EXPONENT, bits & _MANTISSA
    mantissa |= np.where(exponent > 0, _MANTISSA + 1, 0)
    exponent = np.where(mantissa == 0, _UNIT, np.maximum(exponent, 1)) - _UNIT
    place, shift = exponent >> 5, exponent & 31
    low, high = (mantissa & _LOW) << shift, (mantissa >> _BITS) << shift
    high += low >> _BITS
    return place, [low & _LOW, high & _LOW, high >> _BITS], bits < 0


def _words_of_decimals(values: pa.Array) -> list[Ints]:
    """The four words of 32 bits of each DECIMAL, the lowest first; the last one has the sign."""
    held = np.frombuffer(values.buffers()[1], np.uint32).reshape(-1, 4)
    words: Ints = held[values.offset : values.offset + len(values)].astype(np.int64)
    words[:, 3] = (words[:, 3] ^ _HALF) - _HALF
    words[~bools(pc.is_valid(values))] = 0
    return [words[:, place] for place in range(4)]


def _digits_of(numbers: Floats) -> Digits | None:
    """The digits of numbers by their places; None where they are not finite, or need more places."""
    if not len(numbers):
        return {0: np.zeros(0, np.int64)}
    most = max(-float(numbers.min()), float(numbers.max()))
    return _digits(len(numbers), most, lambda block: numbers[block])


def _digits_of_squares(numbers: Floats) -> list[Digits] | None:
    """The digits of two numbers each, which together are the square; None as in `_digits_of`."""
    if _digits_of(numbers) is None:
        return None
    most = max(-float(numbers.min(initial=0.0)), float(numbers.max(initial=0.0))) ** 2
    parts = [
        _digits(len(numbers), most, lambda block: np.square(numbers[block])),
        _digits(len(numbers), most * 2.0**-52, lambda block: _error_of_square(numbers[block])),
    ]
    found = [part for part in parts if part is not None]
    return found if len(found) == len(parts) else None


def _error_of_square(numbers: Floats) -> Floats:
    """What the rounded squares lack."""
    large = numbers * _SPLITTER
    high = large - (large - numbers)
    low = numbers - high
    lack: Floats = ((high * high - numbers * numbers) + 2.0 * high * low) + low * low
    return lack


def _digits(rows: int, most: float, block_of: Callable[[slice], Floats]) -> Digits | None:
    """The digits of numbers that come in blocks, none of which is greater than `most`."""
    if not most < np.inf:
        return None
    bits = int(np.frexp(most)[1]) + rows.bit_length() - _SUM_BITS
    top = -(-bits // _BITS)
    if most and not -_FAR < top < _FAR:
        return None
    found: Digits = {}
    for first in range(0, rows, _BLOCK):
        block = slice(first, min(first + _BLOCK, rows))
        rest = block_of(block)
        if top > 0 and ((rest != 0) & (np.abs(rest) < _LEAST)).any():
            return None  # it would be lost where it is divided
        rest = rest * 2.0 ** (-_BITS * top)
        for place in range(top, top - _MOST_DIGITS, -1):
            digits = np.rint(rest)
            if place not in found:
                found[place] = np.zeros(rows, np.int64)
            found[place][block] = digits
            rest -= digits
            if not rest.any():
                break
            rest *= 2.0**_BITS
        else:
            return None
    return found or {0: np.zeros(rows, np.int64)}
