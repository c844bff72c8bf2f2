"""Arithmetic on DECIMALs, as Spark does it: exact, then rounded half up to the digits of the result.

A result with more digits before the point than its type has is null, and so is a division by zero.

DECIMALs are computed with as whole numbers of up to 76 digits, without their points. Small ones are held and
computed with by numpy, as int64. Others are columns of Arrow's longest decimals. Arrow adds, multiplies and
compares these exactly, but divides some of them by a wrong result, near powers of two; so nothing is used
that divides: no quotient, no cast to fewer digits, no rounding.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from spark_pace.core.tables import Bools, Ints, boolean, bools, on_columns

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
        return self._with(other, operator.add, pc.add)

    def minus(self, other: WholeNumbers) -> WholeNumbers:
        """The differences."""
        return self._with(other, operator.sub, pc.subtract)

    def _with(self, other: WholeNumbers, short: Callable[..., Any], long: Callable[..., Any]) -> WholeNumbers:
        most = self.most + other.most
        if most < _LONG:
            return WholeNumbers(short(self.held, other.held), most)
        return WholeNumbers(long(self._as(_TERM), other._as(_TERM)), most)

    def times(self, other: WholeNumbers) -> WholeNumbers:
        """The products."""
        most = max(self.most * other.most, self.most, other.most)
        if most < _LONG:
            return WholeNumbers(self.held * other.held, most)
        return WholeNumbers(pc.multiply(self._as(_FACTOR), other._as(_FACTOR)).view(_WHOLE), most)

    def quotient(self, divisor: WholeNumbers) -> tuple[WholeNumbers, WholeNumbers]:
        """The quotients without their fractions, and the rests, which have the signs of these numbers.

        Floats tell about how many times a divisor fits. So many times it is taken off, exactly, until less
        than it is left; each time takes some fifty bits off. Where it was taken off once too often, so that
        the rest has the other sign, it is put back.
        """
        if max(self.most, divisor.most) < _LONG:
            rest = np.fmod(self.held, divisor.held)
            whole = WholeNumbers((self.held - rest) // divisor.held, self.most)
            return whole, WholeNumbers(rest, min(self.most, divisor.most))
        size = divisor.floats()
        share = first = self.floats() / size
        parts = WholeNumbers(np.zeros(len(share), np.int64), 0), self
        while (times := np.where(np.abs(share) < _NEAR, 0.0, np.rint(share))).any():
            parts = _taken_off(*parts, divisor, times)
            share = parts[1].floats() / size
        if (over := share * first < 0).any():
            parts = _taken_off(*parts, divisor, np.where(over, np.sign(share), 0.0))
        return parts[0], parts[1]._within(divisor.most)

    def nearest_quotient(self, divisor: WholeNumbers) -> WholeNumbers:
        """The quotients rounded half away from zero."""
        whole, rest = self.quotient(divisor)
        sign = np.sign(self.floats()) * np.sign(divisor.floats())
        up = rest.plus(rest)._reaches(divisor)
        return whole.plus(WholeNumbers(np.where(up, sign, 0.0).astype(np.int64), 1))

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


def _taken_off(
    quotient: WholeNumbers, rest: WholeNumbers, divisor: WholeNumbers, times: Floats
) -> tuple[WholeNumbers, WholeNumbers]:
    """A quotient and its rest when the divisor is taken off so many times more."""
    most = int(np.abs(times).max())
    more = WholeNumbers(times.astype(np.int64) if most < _LONG else pa.array(times).cast(_WHOLE), most)
    return quotient.plus(more), rest.minus(more.times(divisor))


WIDEST = 71  # digits of a dividend, and of a sum

NAMES = {"+", "-", "*", "/", "avg", "%", "round", "negate", "abs"}


def compute(name: str, values: list[Any], target: pa.Decimal128Type) -> Any:
    """The value of an operation in every row, as a column of the type `target`, or as a scalar.

    Args:
        name: one of `NAMES`.
        values: columns or scalars of DECIMALs.
        target: the type of the result.
    """
    rows = next((len(value) for value in values if isinstance(value, pa.Array)), None)
    columns = [
        value if isinstance(value, pa.Array) else pa.repeat(value, 1 if rows is None else rows)
        for value in values
    ]
    result = _computed(name, columns, target)
    return result[0] if rows is None else result


def to_decimal(value: Any, target: pa.DataType) -> Any:
    """DECIMALs or BIGINTs rounded half up to other digits; null where they do not fit."""
    if pa.types.is_integer(value.type):
        value = value.cast(pa.decimal128(20, 0))
    return compute("round", [value], target)


@on_columns
def to_whole(column: Any) -> Any:
    """DECIMALs without their fractions as BIGINTs; null where they do not fit."""
    whole, _ = numbers_of(column).quotient(constant(10**column.type.scale))
    return whole.bigints(~bools(pc.is_valid(column)))


@on_columns
def to_text(column: Any) -> Any:
    """DECIMALs with all digits behind the point, and without an exponent."""
    kind = column.type
    digits = pc.abs(column).view(pa.decimal128(kind.precision, 0)).cast(pa.string())
    padded = pc.utf8_lpad(digits, kind.scale + 1, "0")
    text = padded
    if scale := kind.scale:
        before, behind = pc.utf8_slice_codeunits(padded, 0, -scale), pc.utf8_slice_codeunits(padded, -scale)
        text = pc.binary_join_element_wise(before, behind, ".")
    below = pc.less(column, pa.scalar(Decimal(0), kind))
    return pc.if_else(below, pc.binary_join_element_wise("-", text, ""), text)


def _computed(name: str, columns: list[pa.Array], target: pa.DataType) -> pa.Array:
    if name in ("negate", "abs"):
        return (pc.negate if name == "negate" else pc.abs)(columns[0])
    if name == "round":  # the second one says to how many digits, as `target` does
        columns = columns[:1]
    if name in ("/", "avg", "%"):
        is_zero = pc.equal(columns[1], pa.scalar(Decimal(0), columns[1].type))
        columns = [columns[0], pc.if_else(is_zero, None, columns[1])]
    unknown = np.logical_or.reduce([~bools(pc.is_valid(column)) for column in columns])
    scales = [column.type.scale for column in columns]
    result = _operation(name, list(map(numbers_of, columns)), scales, target.scale)
    return result.decimals(target, unknown | result.is_beyond(10**target.precision - 1))


def _operation(name: str, numbers: Sequence[WholeNumbers], scales: Sequence[int], to: int) -> WholeNumbers:
    """The result with `to` digits behind the point, of numbers with so many each."""
    if name == "round":
        return _rescaled(numbers[0], scales[0], to)
    if name == "*":
        return _rescaled(numbers[0].times(numbers[1]), sum(scales), to)
    if name in ("/", "avg"):
        power = to + scales[1] - scales[0]
        return _raised(numbers[0], power).nearest_quotient(_raised(numbers[1], -power))
    scale = max(scales)  # one unit for both
    left, right = (_raised(one, scale - own) for one, own in zip(numbers, scales, strict=True))
    if name == "%":
        return _rescaled(left.quotient(right)[1], scale, to)
    return _rescaled(left.plus(right) if name == "+" else left.minus(right), scale, to)


def _raised(numbers: WholeNumbers, power: int) -> WholeNumbers:
    """The numbers times ten to the power."""
    return numbers.times(constant(10**power)) if power > 0 else numbers


def _rescaled(numbers: WholeNumbers, scale: int, to: int) -> WholeNumbers:
    """Numbers with `scale` digits behind the point, as such with `to` of them, rounded half up."""
    if scale <= to:
        return _raised(numbers, to - scale)
    return numbers.nearest_quotient(constant(10 ** (scale - to)))
