"""Exact sums of whole numbers, of DECIMALs, and of floating-point numbers, which are rounded once.

A number is made of digits of 32 bits: it is the sum of digit * 2 ** (32 * place), where a place may be
negative. Sums add the digits of each place by themselves, in 64 bits. So no sum depends on the order in which
its numbers, or sums of some of them, are added.

Sources: Kulisch, Computer Arithmetic and Validity, 2008, chapter 8 (exact sums in fixed point).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from spark_pace.core.columns import Bools, Ints
from spark_pace.core.ranges import running
from spark_pace.core.tables import boolean

Floats: TypeAlias = npt.NDArray[np.float64]

_BITS = 32
_LOW = (1 << _BITS) - 1
_HALF = 1 << (_BITS - 1)
# the places of the numbers of infinities, negative ones, and NaNs among the values
ODD = (1000, 1001, 1002)
_WHOLE = 1 << 53  # a DOUBLE holds each whole number up to it
_FAR = 25  # numbers whose digits are nearer to place 0 are far from the ends of what a DOUBLE holds


def total_digits(precision: int) -> int:
    """The digits of a sum of DECIMALs: as in Spark ten more, which billions of events cannot overflow."""
    return min(precision + 10, 38)


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
        follow = len(start) > 0 and bool((start[1:] == end[:-1]).all() and (start < end).all())

        def at(place: int) -> Ints:
            if follow:  # each range begins where the one before ends
                return np.add.reduceat(self.at(place)[: end[-1]], start)
            sums = running(self.at(place))  # what wraps around does so in both terms
            return sums[end] - sums[start]

        return Sums(len(start), self.places, cache(at))

    def plus(self, other: Sums) -> Sums:
        """Each number plus that of another."""
        both = (self._at_any(), other._at_any())
        places = tuple(sorted({*self.places, *other.places}))
        return Sums(self.rows, places, lambda place: both[0](place) + both[1](place))

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
        if (few := self._of_two_digits()) is not None:
            return few
        mantissa, exponent = self.rounded()
        with np.errstate(over="ignore"):
            values: Floats = np.ldexp(mantissa, exponent)
        if not {*ODD} & {*self.places}:
            return values
        positive, negative, nan = (self._at_any()(place) > 0 for place in ODD)
        values = np.where(positive, np.inf, np.where(negative, -np.inf, values))
        return np.where(nan | (positive & negative), np.nan, values)

    def _of_two_digits(self) -> Floats | None:
        """The nearest DOUBLEs where digits are at two neighbouring places and are DOUBLEs themselves.

        Their sum is rounded once, by the processor.
        """
        low, high = self.places[:1], self.places[-1:]
        if not low or high[0] - low[0] > 1 or not -_FAR < low[0] <= high[0] < _FAR:
            return None
        digits = [self.at(place) for place in self.places]
        if any(greatest(one) > _WHOLE for one in digits):
            return None
        scales = [2.0 ** (_BITS * place) for place in self.places]
        parts = [np.multiply(one, by, dtype=np.float64) for one, by in zip(digits, scales, strict=True)]
        return parts[0] + parts[1] if len(parts) > 1 else parts[0]

    @property
    def finite(self) -> Bools:
        """bool[rows], whether neither an infinity nor a NaN is in it."""
        found = np.ones(self.rows, np.bool_)
        for place in {*ODD} & {*self.places}:
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

    def totals(self, kind: pa.DataType, count: Ints) -> pa.Array:
        """What ``sum`` gives for values of a type; null where it does not fit, or `count` of them is 0."""
        if pa.types.is_floating(kind):
            return pa.array(self.doubles(), mask=count == 0)
        if pa.types.is_decimal(kind):
            return self._decimals(pa.decimal128(total_digits(kind.precision), kind.scale), count == 0)
        whole, fits = self.whole()
        return pa.array(whole, mask=~fits | (count == 0))

    def means(self, count: Ints) -> pa.Array:
        """What ``avg`` gives for BIGINTs and DOUBLEs: the nearest DOUBLE to the sum, divided by `count`."""
        return pa.array(self.doubles() / np.maximum(count, 1), mask=count == 0)

    def _decimals(self, kind: pa.DataType, none: Bools) -> pa.Array:
        """Whole numbers as the digits of DECIMALs; null where there is none, or they are too many."""
        digits, sign = self._settled(range(6))
        size, most, beyond = _magnitude(digits, sign), 10**kind.precision, np.ones(self.rows, np.bool_)
        for place, digit in enumerate(size):
            limit = most >> _BITS * place & _LOW
            beyond = (digit > limit) | ((digit == limit) & beyond)
        words = np.ascontiguousarray(digits[:4].T.astype(np.uint32))
        known = boolean(~(none | beyond)).buffers()[1]
        return pa.Array.from_buffers(kind, self.rows, [known, pa.py_buffer(words)])

    def stored(self) -> pa.Array:
        """A list of int64 for each number: place * 2 ** 32 + digit, for each digit that is not 0."""
        at, carry = self._at_any(), np.zeros(self.rows, np.int64)
        kept: list[tuple[int, Ints]] = []
        for place in self._range(more=3):
            total = at(place) + carry
            carry = (total + _HALF) >> _BITS  # so that digits are from -2 ** 31 to 2 ** 31 - 1
            kept.append((place, total - (carry << _BITS)))
        kept += [(place, np.minimum(at(place), _HALF - 1)) for place in ODD if place in self.places]
        kept = [(place, digits) for place, digits in kept if digits.any()]
        digits = np.zeros((self.rows, len(kept)), np.int64)
        packed = np.zeros((self.rows, len(kept)), np.int64)
        for column, (place, some) in enumerate(kept):
            digits[:, column], packed[:, column] = some, some + (place << _BITS)
        offsets = np.append(0, np.cumsum((digits != 0).sum(axis=1)))
        return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(packed[digits != 0]))

    def _range(self, more: int) -> range:
        """The places from the least to the greatest of finite digits, and some more above them."""
        places = [place for place in self.places if place not in ODD] or [0]
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


def sums_of_stored(lists: pa.ListArray, start: Ints, end: Ints) -> Sums:
    """The sum of each range of rows of what `Sums.stored` gave."""
    packed, bounds = lists.flatten().to_numpy(), lists.offsets.to_numpy().astype(np.int64)
    place = (packed + _HALF) >> _BITS
    digit = packed - (place << _BITS)
    digits = Sums(len(packed), distinct(place), lambda wanted: np.where(place == wanted, digit, 0))
    return digits.over(bounds[start] - bounds[0], bounds[end] - bounds[0])


def distinct(places: npt.NDArray[np.signedinteger]) -> tuple[int, ...]:
    """The places that there are, ascending; they are near each other, or a thousand away."""
    if not len(places):
        return ()
    least = int(places.min())
    present = np.zeros(int(places.max()) - least + 1, np.bool_)
    present[places - least] = True
    return tuple((np.flatnonzero(present) + least).tolist())


def greatest(numbers: Ints) -> int:
    """The greatest size of whole numbers; 0 where there are none."""
    return max(-int(numbers.min(initial=0)), int(numbers.max(initial=0)))
