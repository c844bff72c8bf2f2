"""Exact sums of whole numbers, of DECIMALs, and of floating-point numbers, which are rounded once.

A number is made of digits of 32 bits: it is the sum of digit * 2 ** (32 * place), where a place may be
negative. Sums add the digits of each place by themselves, in 64 bits. So no sum depends on the order in which
its numbers, or sums of some of them, are added.

Sources: Kulisch, Computer Arithmetic and Validity, 2008, chapter 8 (exact sums in fixed point).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from spark_pace.core.columns import Bools, Ints
from spark_pace.core.ranges import running
from spark_pace.core.tables import bools

Floats: TypeAlias = npt.NDArray[np.float64]
Words: TypeAlias = npt.NDArray[np.uint64]

_BITS = 32
_LOW = (1 << _BITS) - 1
_HALF = 1 << (_BITS - 1)
# the places of the numbers of infinities, negative ones, and NaNs among the values
_ODD = (1000, 1001, 1002)
_MANTISSA = (1 << 52) - 1
_EXPONENT = (1 << 11) - 1
_UNIT = 1075  # a floating-point number is its mantissa times 2 ** (exponent - 1075)


@dataclass(frozen=True)
class Sums:
    """Numbers, or sums of numbers, by their digits.

    Attributes:
        rows: how many there are.
        places: where any of them may have a digit other than 0, ascending.
        at: gives the digits of a place as int64[rows]; they may be negative, or longer than 32 bits.
    """

    rows: int
    places: tuple[int, ...]
    at: Callable[[int], Ints]

    def over(self, start: Ints, end: Ints) -> Sums:
        """The sum of each range of rows, from `start` to the row before `end`; int64[s] each."""

        def at(place: int) -> Ints:
            sums = running(self.at(place))  # what wraps around does so in both terms
            return sums[end] - sums[start]

        return Sums(len(start), self.places, at)

    def minus(self, other: Sums) -> Sums:
        """Each number minus that of another; of finite ones only."""
        both = (self._at_any(), other._at_any())
        places = tuple(sorted({*self.places, *other.places}))
        return Sums(self.rows, places, lambda place: both[0](place) - both[1](place))

    def times(self, other: Sums) -> Sums:
        """Each number times that of another, both without their signs; of finite ones only."""
        products: dict[int, Ints] = {}
        for left, ours in self._magnitudes().items():
            for right, theirs in other._magnitudes().items():
                product = ours.astype(np.uint64) * theirs.astype(np.uint64)
                low, high = (product & np.uint64(_LOW)).view(np.int64), (product >> np.uint64(_BITS))
                place = left + right
                products[place] = products.get(place, 0) + low
                products[place + 1] = products.get(place + 1, 0) + high.view(np.int64)
        return Sums(self.rows, tuple(sorted(products)), products.__getitem__)

    def doubles(self) -> Floats:
        """Each number as the nearest DOUBLE; infinity beyond the greatest one."""
        mantissa, exponent = self.rounded()
        with np.errstate(over="ignore"):
            values: Floats = np.ldexp(mantissa, exponent)
        if not {*_ODD} & {*self.places}:
            return values
        positive, negative, nan = (self._at_any()(place) > 0 for place in _ODD)
        values = np.where(positive, np.inf, np.where(negative, -np.inf, values))
        return np.where(nan | (positive & negative), np.nan, values)

    @property
    def finite(self) -> Bools:
        """bool[rows], whether neither an infinity nor a NaN is in it."""
        found = np.ones(self.rows, np.bool_)
        for place in {*_ODD} & {*self.places}:
            found &= self.at(place) == 0
        return found

    def rounded(self) -> tuple[Floats, Ints]:
        """Each number rounded to 53 bits, as a mantissa and an exponent of 2; of finite ones only."""
        places = self._range(more=2)
        digits, sign = self._settled(range(places.start - 2, places.stop))
        digits = _magnitude(digits, sign)
        some, columns = digits != 0, np.arange(self.rows)
        top = np.maximum(len(digits) - 1 - np.argmax(some[::-1], axis=0), 2)
        first, second, third = (digits[top - step, columns].astype(np.uint64) for step in range(3))
        length = np.frexp(first.astype(np.float64))[1]
        shift = np.minimum(_BITS - length, _BITS - 1).astype(np.uint64)
        whole = np.uint64(_BITS)
        word = (first << (shift + whole)) | (second << shift) | (third >> (whole - shift))
        rest = ((third << shift) & np.uint64(_LOW)) != 0
        rest |= some.any(axis=0) & (np.argmax(some, axis=0) < top - 2)
        mantissa = (word | rest).astype(np.float64)  # the last bit says that there is more below
        exponent = _BITS * (places.start + top - 3) - shift.astype(np.int64)
        return np.where(sign < 0, -mantissa, mantissa), exponent

    def whole(self) -> tuple[Ints, Bools]:
        """Whole numbers as int64[rows], and bool[rows], which of them fit into that."""
        digits, sign = self._settled(range(max(4, self._range(more=2).stop)))
        negative = digits[1] >= _HALF
        fits = (digits[2:] == np.where(negative, _LOW, 0)).all(axis=0) & (sign == -negative.astype(np.int64))
        return (digits[1] << _BITS) + digits[0], fits

    def decimals(self, kind: pa.DataType) -> pa.Array:
        """Whole numbers as the digits of DECIMALs, of a type that has room for all of them."""
        digits, _ = self._settled(range(4))
        words = np.ascontiguousarray(digits.T.astype(np.uint32))
        return pa.Array.from_buffers(kind, self.rows, [None, pa.py_buffer(words)])

    def stored(self) -> pa.Array:
        """A list of int64 for each number: place * 2 ** 32 + digit, for each digit that is not 0."""
        at, carry = self._at_any(), np.zeros(self.rows, np.int64)
        kept: list[tuple[int, Ints]] = []
        for place in self._range(more=3):
            total = at(place) + carry
            carry = (total + _HALF) >> _BITS  # so that digits are from -2 ** 31 to 2 ** 31 - 1
            kept.append((place, total - (carry << _BITS)))
        kept += [(place, np.minimum(at(place), _HALF - 1)) for place in _ODD if place in self.places]
        kept = [(place, digits) for place, digits in kept if digits.any()]
        digits = np.zeros((self.rows, len(kept)), np.int64)
        packed = np.zeros((self.rows, len(kept)), np.int64)
        for column, (place, some) in enumerate(kept):
            digits[:, column], packed[:, column] = some, some + (place << _BITS)
        offsets = np.append(0, np.cumsum((digits != 0).sum(axis=1)))
        return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(packed[digits != 0]))

    def _range(self, more: int) -> range:
        """The places from the least to the greatest of finite digits, and some more above them."""
        places = [place for place in self.places if place not in _ODD] or [0]
        return range(min(places), max(places) + 1 + more)

    def _at_any(self) -> Callable[[int], Ints]:
        """As `at`, also for places that are not among `places`."""
        none = np.zeros(self.rows, np.int64)
        return lambda place: self.at(place) if place in self.places else none

    def _settled(self, places: range) -> tuple[Ints, Ints]:
        """The digits of these places in the complement of two, each from 0 to 2 ** 32 - 1.

        Returns:
            int64[places, rows]; and int64[rows], what is left above them: -1 for negative numbers, 0 for
            others, if there are two places more than `places` has.
        """
        at, carry = self._at_any(), np.zeros(self.rows, np.int64)
        digits = np.empty((len(places), self.rows), np.int64)
        for row, place in enumerate(places):
            total = at(place) + carry
            digits[row], carry = total & _LOW, total >> _BITS
        return digits, carry

    def _magnitudes(self) -> dict[int, Ints]:
        """The digits without the sign, by their places, where any of them is not 0."""
        places = self._range(more=2)
        digits = _magnitude(*self._settled(places))
        return {places[row]: digits[row] for row in np.flatnonzero(digits.any(axis=1)).tolist()}


def _magnitude(digits: Ints, sign: Ints) -> Ints:
    """The digits of numbers without their signs, of those in the complement of two."""
    negative = sign < 0
    if not negative.any():
        return digits
    turned, carry = np.empty_like(digits), negative.astype(np.int64)
    for row, digit in enumerate(digits):
        total = np.where(negative, digit ^ _LOW, digit) + carry
        turned[row], carry = total & _LOW, total >> _BITS
    return turned


def sums_of(values: pa.Array) -> Sums:
    """The numbers of a column: BIGINT, DOUBLE or DECIMAL; null is 0."""
    if pa.types.is_decimal(values.type):
        words = _words_of_decimals(values)
        return Sums(len(values), (0, 1, 2, 3), lambda place: words[place])
    place, parts, negative = _parts(values)
    if negative.any():
        parts = [np.where(negative, -part, part) for part in parts]
    return _odd(_at_places(place, parts), values)


def squares_of(values: pa.Array) -> Sums:
    """The squares of the numbers of a column: BIGINT or DOUBLE; null is 0."""
    place, parts, _ = _parts(values)
    squares = [np.zeros(len(values), np.int64) for _ in range(2 * len(parts))]
    for left, ours in enumerate(parts):
        for right, theirs in enumerate(parts):
            product = ours.astype(np.uint64) * theirs.astype(np.uint64)
            squares[left + right] += (product & np.uint64(_LOW)).astype(np.int64)
            squares[left + right + 1] += (product >> np.uint64(_BITS)).astype(np.int64)
    return _odd(_at_places(2 * place, squares), values)


def sums_of_stored(lists: pa.ListArray, start: Ints, end: Ints) -> Sums:
    """The sum of each range of rows of what `Sums.stored` gave."""
    packed, bounds = lists.flatten().to_numpy(), lists.offsets.to_numpy()
    place = ((packed + _HALF) >> _BITS).astype(np.int16)
    first, behind = (bounds[rows] - bounds[0] for rows in (start, end))

    def at(wanted: int) -> Ints:
        here = np.flatnonzero(place == wanted)
        sums = running(packed[here])  # what wraps around does so in both terms
        low, high = np.searchsorted(here, first), np.searchsorted(here, behind)
        return sums[high] - sums[low] - (high - low) * (wanted << _BITS)  # type: ignore[no-any-return]

    return Sums(len(start), _distinct(place), at)


def _at_places(place: Ints, parts: Sequence[Ints]) -> Sums:
    """Numbers of which part i is the digit at `place` + i of each."""
    firsts = _distinct(place)
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


def _distinct(places: npt.NDArray[np.signedinteger]) -> tuple[int, ...]:
    """The places that there are, ascending; they are near each other, or a thousand away."""
    if not len(places):
        return ()
    least = int(places.min())
    present = np.zeros(int(places.max()) - least + 1, np.bool_)
    present[places - least] = True
    return tuple((np.flatnonzero(present) + least).tolist())


def _odd(sums: Sums, values: pa.Array) -> Sums:
    """The sums with the number of infinities and NaNs, where there are any."""
    if not pa.types.is_floating(values.type):
        return sums
    numbers = pc.fill_null(values, 0.0).to_numpy()
    if np.isfinite(numbers).all():
        return sums
    odd = (numbers == np.inf, numbers == -np.inf, np.isnan(numbers))
    found = {place: one.astype(np.int64) for place, one in zip(_ODD, odd, strict=True) if one.any()}

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
        whole = pc.fill_null(values, 0).to_numpy()
        size = np.abs(whole).view(np.uint64)
        parts = [size & np.uint64(_LOW), size >> np.uint64(_BITS)]
        return np.zeros(len(whole), np.int64), [part.astype(np.int64) for part in parts], whole < 0
    numbers = pc.fill_null(values, 0.0).to_numpy()
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
