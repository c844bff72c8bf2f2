"""Exact sums of whole numbers, of DECIMALs, and of floating-point numbers, which are rounded once.

A number is made of digits of 32 bits: it is the sum of digit * 2 ** (32 * place), where a place may be
negative. Sums add the digits of each place by themselves, in 64 bits. So no sum depends on the order in which
its numbers, or sums of some of them, are added.

In most columns the same few places hold the digits of all numbers. Then these are taken from whole blocks:
the first place is the lowest at which the digits of all numbers together fit into 62 bits. Else the bits of
each number are looked at.

Sources: Kulisch, Computer Arithmetic and Validity, 2008, chapter 8 (exact sums in fixed point).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from spark_pace.core.ranks import range_sums
from spark_pace.core.tables import Bools, Ints, boolean, bools

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
        return Sums(len(start), self.places, cache(lambda place: range_sums(self.at(place), start, end)))

    def minus(self, other: Sums) -> Sums:
        """Each number minus that of another; of finite ones only."""
        ours, theirs = self._at_any(), other._at_any()
        places = tuple(sorted({*self.places, *other.places}))
        return Sums(self.rows, places, lambda place: ours(place) - theirs(place))

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
        places = self.places
        if not places or places[-1] - places[0] > 1 or not -_FAR < places[0] <= places[-1] < _FAR:
            return None
        digits = [self.at(place) for place in places]
        if any(greatest(one) > _WHOLE for one in digits):
            return None
        scales = [2.0 ** (_BITS * place) for place in places]
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


_MANTISSA = (1 << 52) - 1
_EXPONENT = (1 << 11) - 1
_SUM_BITS = 62  # that the digits of a place have, all added up
_MOST_DIGITS = 4
_FAR_PLACES = 10  # places from 0: numbers and their digits are far from the ends of what a DOUBLE holds
_LEAST = 2.0**-600
_BLOCK = 1 << 13  # numbers that stay in the processor's cache
_UNIT = 1075  # a floating-point number is its mantissa times 2 ** (exponent - 1075)


def sums_of(values: pa.Array) -> Sums:
    """The numbers of a column: BIGINT, DOUBLE or DECIMAL; null is 0."""
    if pa.types.is_decimal(values.type):
        words = _words_of_decimals(values)
        return Sums(len(values), (0, 1, 2, 3), lambda place: words[place])
    few = _few_digits(_filled(values)) if pa.types.is_floating(values.type) else _few(values, 1)
    if few is not None:
        return few
    firsts, place, parts = _parts(values)
    return _odd(_at_places(firsts, place, parts), values)


def squares_of(values: pa.Array) -> Sums:
    """The squares of the numbers of a column: BIGINT or DOUBLE; null is 0."""
    if (few := _few(values, 2)) is not None:
        return few
    firsts, place, parts = _parts(values)
    squares = [np.zeros(len(values), np.int64) for _ in range(2 * len(parts))]
    for first in range(0, len(values), _BLOCK):
        block = slice(first, first + _BLOCK)
        sizes = [np.abs(part[block]).view(np.uint64) for part in parts]
        for left, right in product(range(len(parts)), repeat=2):
            both = sizes[left] * sizes[right]
            squares[left + right][block] += (both & np.uint64(_LOW)).view(np.int64)
            squares[left + right + 1][block] += (both >> np.uint64(_BITS)).view(np.int64)
    return _odd(_at_places({2 * first for first in firsts}, 2 * place, squares), values)


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


def _filled(values: pa.Array) -> npt.NDArray[Any]:
    """The numbers of a column, 0 for nulls."""
    return (pc.fill_null(values, 0) if values.null_count else values).to_numpy()  # type: ignore[no-any-return]


def _few(values: pa.Array, power: int) -> Sums | None:
    """Powers of whole numbers that, all added up, fit into one digit; None for other numbers."""
    numbers = _filled(values)
    if not pa.types.is_integer(values.type) or greatest(numbers) ** power * len(numbers) >= 1 << _SUM_BITS:
        return None
    powers = numbers if power == 1 else np.square(numbers)
    return Sums(len(numbers), (0,), lambda _: powers)


def _few_digits(numbers: Floats) -> Sums | None:
    """Floating-point numbers that all have their digits at the same few places; None for others."""
    rows, most = len(numbers), max(-float(numbers.min(initial=0.0)), float(numbers.max(initial=0.0)))
    if not most < np.inf:
        return None
    top = -(-(int(np.frexp(most)[1]) + rows.bit_length() - _SUM_BITS) // _BITS) if most else 0
    if not -_FAR_PLACES < top < _FAR:
        return None
    found: dict[int, Ints] = {}
    for first in range(0, rows, _BLOCK):
        rest = numbers[first : first + _BLOCK]
        if top > 0 and ((rest != 0) & (np.abs(rest) < _LEAST)).any():
            return None  # it would be lost where it is divided
        rest = rest * 2.0 ** (-_BITS * top)
        for place in range(top, top - _MOST_DIGITS, -1):
            digits = np.rint(rest)
            if place not in found:
                found[place] = np.zeros(rows, np.int64)
            found[place][first : first + _BLOCK] = digits
            rest -= digits
            if not rest.any():
                break
            rest *= 2.0**_BITS
        else:
            return None
    return Sums(rows, tuple(sorted(found)), found.__getitem__)


def _at_places(firsts: set[int], place: Ints, parts: Sequence[Ints]) -> Sums:
    """Numbers of which part i is the digit at `place` + i of each; `firsts` are the places."""
    there = [step for step, part in enumerate(parts) if part.any()]
    places = sorted({first + step for first in firsts for step in there})

    def at(wanted: int) -> Ints:
        if len(firsts) == 1:
            return parts[wanted - min(firsts)]
        digits = np.zeros(len(place), np.int64)
        for step in there:
            if wanted - step in firsts:
                digits += np.where(place == wanted - step, parts[step], 0)
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


def _parts(values: pa.Array) -> tuple[set[int], Ints, list[Ints]]:
    """The digits of numbers, with their signs; 0 for nulls and what is not finite.

    Returns:
        the places of lowest digits; int64[n], the place of the lowest digit of each number that is not 0; the
        digits from there on, int64[n] each.
    """
    numbers = _filled(values)
    if pa.types.is_integer(values.type):
        size, sign = np.abs(numbers).view(np.uint64), np.sign(numbers)
        parts = [size & np.uint64(_LOW), size >> np.uint64(_BITS)]
        return {0}, np.zeros(len(numbers), np.int64), [part.view(np.int64) * sign for part in parts]
    place, *digits = (np.empty(len(numbers), np.int64) for _ in range(4))
    firsts = set[int]()
    for first in range(0, len(numbers), _BLOCK):
        block = slice(first, first + _BLOCK)
        place[block], *parts = _digits_of(numbers[block])
        firsts |= {*distinct(place[block][parts[0] | parts[1] | parts[2] != 0])}
        for whole, part in zip(digits, parts, strict=True):
            whole[block] = part
    return firsts, place, digits


def _digits_of(numbers: Floats) -> tuple[Ints, Ints, Ints, Ints]:
    """The place of the lowest digit of floating-point numbers, and three digits."""
    bits = np.where(np.isfinite(numbers), numbers, 0.0).view(np.int64)
    exponent = (bits >> 52) & _EXPONENT
    mantissa = (bits & _MANTISSA) | (exponent > 0).astype(np.int64) << 52
    exponent = np.maximum(exponent, 1) - _UNIT
    place, shift = exponent >> 5, exponent & 31
    low, high = (mantissa & _LOW) << shift, (mantissa >> _BITS) << shift
    high += low >> _BITS
    low, high, top = low & _LOW, high & _LOW, high >> _BITS
    if not (bits < 0).any():
        return place, low, high, top
    sign = np.where(bits < 0, -1, 1)
    return place, low * sign, high * sign, top * sign


def _words_of_decimals(values: pa.Array) -> list[Ints]:
    """The four words of 32 bits of each DECIMAL, the lowest first; the last one has the sign."""
    held = np.frombuffer(values.buffers()[1], np.uint32).reshape(-1, 4)
    words: Ints = held[values.offset : values.offset + len(values)].astype(np.int64)
    words[:, 3] = (words[:, 3] ^ _HALF) - _HALF
    words[~bools(pc.is_valid(values))] = 0
    return [words[:, place] for place in range(4)]
