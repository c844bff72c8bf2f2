"""Columns of whole numbers of up to 76 digits: exact sums, products, quotients and rests.

Small numbers are held and computed with by numpy, as int64. Others are columns of Arrow's longest decimals.
Arrow adds, multiplies and compares these exactly, but divides some of them by a wrong result, near powers of
two; so nothing is used that divides: no quotient, no cast to fewer digits, no rounding.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from spark_pace.core.columns import Bools, Ints
from spark_pace.core.tables import boolean, bools

Floats: TypeAlias = npt.NDArray[np.float64]

_LONG = 1 << 62  # numbers below are held as int64, with room for a sum of two
_WORD = 8  # bytes
_WHOLE = pa.decimal256(76, 0)
# Arrow derives the type of a result from those of the operands. The numbers are known to fit, so `view` gives
# the operands types of which the result is `_WHOLE`.
_TERM, _FACTOR = pa.decimal256(75, 0), pa.decimal256(37, 0)
_NEAR = 0.75  # a rest that is a smaller share of the divisor, as far as floats tell, is smaller than it


@dataclass(frozen=True)
class WholeNumbers:
    """Whole numbers in rows, or one that stands in every row.

    Attributes:
        held: int64[n] if `most` is below `_LONG`, else a column of n decimals; or a single integer.
        most: none of them is farther from 0.
    """

    held: Any
    most: int

    def plus(self, other: WholeNumbers) -> WholeNumbers:
        """The sums."""
        most = self.most + other.most
        if most < _LONG:
            return WholeNumbers(self.held + other.held, most)
        return WholeNumbers(pc.add(self._as(_TERM), other._as(_TERM)), most)

    def minus(self, other: WholeNumbers) -> WholeNumbers:
        """The differences."""
        most = self.most + other.most
        if most < _LONG:
            return WholeNumbers(self.held - other.held, most)
        return WholeNumbers(pc.subtract(self._as(_TERM), other._as(_TERM)), most)

    def times(self, other: WholeNumbers) -> WholeNumbers:
        """The products."""
        most = max(self.most * other.most, self.most, other.most)
        if most < _LONG:
            return WholeNumbers(self.held * other.held, most)
        return WholeNumbers(pc.multiply(self._as(_FACTOR), other._as(_FACTOR)).view(_WHOLE), most)

    def quotient(self, divisor: WholeNumbers) -> tuple[WholeNumbers, WholeNumbers]:
        """The quotients without their fractions, and the rests, which have the signs of these numbers."""
        parts = self._divided(divisor)
        if parts.over.any():
            parts = parts.taken_off(divisor, np.where(parts.over, parts.sign, 0.0))
        return parts.quotient, parts.rest._within(divisor.most)

    def nearest_quotient(self, divisor: WholeNumbers) -> WholeNumbers:
        """The quotients rounded half away from zero."""
        parts = self._divided(divisor)
        doubled = parts.rest.plus(parts.rest)
        up = doubled._reaches(divisor)
        if (up & parts.over).any():  # where a half is missing, the number is rounded already
            up &= ~(parts.over & divisor._reaches(doubled))
        return parts.quotient.plus(WholeNumbers(np.where(up, parts.sign, 0.0).astype(np.int64), 1))

    def _divided(self, divisor: WholeNumbers) -> _Parts:
        """Quotients and rests that are smaller than the divisors.

        Floats tell about how many times a divisor fits. So many times it is taken off, exactly, until less
        than it is left; each time takes some fifty bits off.
        """
        if max(self.most, divisor.most) < _LONG:
            rest = np.fmod(self.held, divisor.held)
            whole = WholeNumbers((self.held - rest) // divisor.held, self.most)
            least = WholeNumbers(rest, min(self.most, divisor.most))
            return _Parts(whole, least, np.sign(rest) * np.sign(divisor.held), np.zeros(len(rest), np.bool_))
        size = divisor.floats()
        share = first = self.floats() / size
        parts = _Parts(WholeNumbers(np.zeros(len(share), np.int64), 0), self, share, share < 0)
        while (times := np.where(np.abs(share) < _NEAR, 0.0, np.rint(share))).any():
            parts = parts.taken_off(divisor, times)
            share = parts.rest.floats() / size
        return replace(parts, sign=np.sign(share), over=(share < 0) & (first > 0) | (share > 0) & (first < 0))

    def floats(self) -> Any:
        """The nearest floats, or almost."""
        if self.most < _LONG or isinstance(self.held, int):
            return np.float64(self.held)
        return pc.cast(self.held, pa.float64()).to_numpy()

    def is_beyond(self, most: int) -> Any:
        """bool[n], which numbers are farther from 0 than `most`; a single False for none."""
        if self.most <= most:
            return np.False_
        return self._reaches(constant(most + 1))

    def _reaches(self, other: WholeNumbers) -> Any:
        """bool[n], which numbers are as far from 0 as those of the other, or farther."""
        if max(self.most, other.most) < _LONG:
            return np.abs(self.held) >= np.abs(other.held)
        return bools(pc.greater_equal(pc.abs(self._as(_WHOLE)), pc.abs(other._as(_WHOLE))))

    def bigints(self, unknown: Bools) -> pa.Array:
        """The numbers as BIGINTs; null where they are `unknown`, or do not fit."""
        if self.most < _LONG:
            return pa.array(self.held, mask=unknown)
        low, fits = _low_words(self.held)
        return pa.array(low, mask=unknown | ~fits)

    def decimals(self, kind: pa.DataType, unknown: Bools) -> pa.Array:
        """The numbers as DECIMALs without their points, which they fit but where they are `unknown`: null."""
        if self.most >= _LONG or kind.byte_width != 2 * _WORD:
            known = pc.if_else(boolean(unknown), None, self._as(_WHOLE))
            return known.view(pa.decimal256(76, kind.scale)).cast(kind)
        words = np.empty((len(unknown), 2), np.int64)
        words[:, 0] = np.where(unknown, 0, self.held)
        words[:, 1] = words[:, 0] >> 63
        known = boolean(~unknown).buffers()[1] if unknown.any() else None
        return pa.Array.from_buffers(kind, len(unknown), [known, pa.py_buffer(words)])

    def _as(self, kind: pa.DataType) -> Any:
        """The numbers as a column, or a scalar, of a type of long decimals."""
        if isinstance(self.held, int):
            return pa.array([Decimal(self.held)], _WHOLE).view(kind)[0]
        return (pa.array(self.held).cast(_WHOLE) if self.most < _LONG else self.held).view(kind)

    def _within(self, most: int) -> WholeNumbers:
        """The numbers, of which none is as far from 0 as `most`."""
        if most >= _LONG or self.most < _LONG:
            return WholeNumbers(self.held, min(self.most, most) if self.most < _LONG else self.most)
        return WholeNumbers(_low_words(self.held)[0], most)


def constant(number: int) -> WholeNumbers:
    """A whole number that stands in every row."""
    return WholeNumbers(number, abs(number))


def numbers_of(column: pa.Array) -> WholeNumbers:
    """DECIMALs as whole numbers, without their points; null is some number other than 0."""
    kind = column.type
    if column.null_count:
        column = pc.fill_null(column, pa.scalar(Decimal(1).scaleb(-kind.scale), kind))
    low, fits = _low_words(column)
    most = max(-int(low.min(initial=0)), int(low.max(initial=0)))
    if most < _LONG and fits.all():
        return WholeNumbers(low, most)
    return WholeNumbers(
        column.cast(pa.decimal256(kind.precision, kind.scale)).view(_WHOLE), 10**kind.precision - 1
    )


def _low_words(column: pa.Array) -> tuple[Ints, Bools]:
    """int64[n], the lowest 64 bits of decimals; and bool[n], which of them fit into these."""
    if not len(column):
        return np.zeros(0, np.int64), np.zeros(0, np.bool_)
    words = np.frombuffer(column.buffers()[1], np.int64).reshape(-1, column.type.byte_width // _WORD)
    words = words[column.offset : column.offset + len(column)]
    low = np.ascontiguousarray(words[:, 0])
    return low, (words[:, 1:] == (low >> 63)[:, None]).all(axis=1)


@dataclass(frozen=True)
class _Parts:
    """What a division comes to.

    Attributes:
        quotient: how many times divisors are taken off numbers.
        rest: what is left of these.
        sign: float64[n] or int64[n], the sign of each rest times that of its divisor.
        over: bool[n], where a divisor is taken off once too often, so that the rest has the other sign.
    """

    quotient: WholeNumbers
    rest: WholeNumbers
    sign: Any
    over: Bools

    def taken_off(self, divisor: WholeNumbers, times: Floats) -> _Parts:
        """The same when divisors are taken off so many times more."""
        most = int(np.abs(times).max())
        whole = times.astype(np.int64) if most < _LONG else pa.array(times).cast(_WHOLE)
        more = WholeNumbers(whole, most)
        return replace(self, quotient=self.quotient.plus(more), rest=self.rest.minus(more.times(divisor)))
