"""Arithmetic on DECIMALs, as Spark does it: exact, then rounded half up to the digits of the result.

A result with more digits before the point than its type has is null, and so is a division by zero.
DECIMALs are computed with as whole numbers, without their points; see `whole_numbers`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_pace.core.expr.whole_numbers import WholeNumbers, constant, numbers_of
from spark_pace.core.tables import bools

WIDEST = 71  # digits of a dividend, and of a sum

Column: TypeAlias = pa.Array
Operation: TypeAlias = Callable[[Sequence[WholeNumbers], Sequence[int], int], WholeNumbers]


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


def to_whole(value: Any) -> Any:
    """DECIMALs without their fractions as BIGINTs; null where they do not fit."""
    single = isinstance(value, pa.Scalar)
    column = pa.repeat(value, 1) if single else value
    whole, _ = numbers_of(column).quotient(constant(10**column.type.scale))
    result = whole.bigints(~bools(pc.is_valid(column)))
    return result[0] if single else result


def to_text(value: Any) -> Any:
    """DECIMALs with all digits behind the point, and without an exponent."""
    single = isinstance(value, pa.Scalar)
    column = pa.repeat(value, 1) if single else value
    kind = column.type
    digits = pc.abs(column).view(pa.decimal128(kind.precision, 0)).cast(pa.string())
    padded = pc.utf8_lpad(digits, kind.scale + 1, "0")
    text = padded
    if scale := kind.scale:
        before, behind = pc.utf8_slice_codeunits(padded, 0, -scale), pc.utf8_slice_codeunits(padded, -scale)
        text = pc.binary_join_element_wise(before, behind, ".")
    below = pc.less(column, pa.scalar(Decimal(0), kind))
    text = pc.if_else(below, pc.binary_join_element_wise("-", text, ""), text)
    return text[0] if single else text


def _computed(name: str, columns: list[Column], target: pa.DataType) -> Column:
    if name in _OF_SIGNS:
        return _OF_SIGNS[name](columns[0])
    if name == "round":  # the second one says to how many digits, as `target` does
        columns = columns[:1]
    if name in ("/", "avg", "%"):
        is_zero = pc.equal(columns[1], pa.scalar(Decimal(0), columns[1].type))
        columns = [columns[0], pc.if_else(is_zero, None, columns[1])]
    unknown = np.logical_or.reduce([~bools(pc.is_valid(column)) for column in columns])
    scales = [column.type.scale for column in columns]
    result = OPERATIONS[name](list(map(numbers_of, columns)), scales, target.scale)
    return result.decimals(target, unknown | result.is_beyond(10**target.precision - 1))


def _add(numbers: Sequence[WholeNumbers], scales: Sequence[int], to: int) -> WholeNumbers:
    left, right = _aligned(numbers, scales)
    return _rescaled(left.plus(right), max(scales), to)


def _subtract(numbers: Sequence[WholeNumbers], scales: Sequence[int], to: int) -> WholeNumbers:
    left, right = _aligned(numbers, scales)
    return _rescaled(left.minus(right), max(scales), to)


def _multiply(numbers: Sequence[WholeNumbers], scales: Sequence[int], to: int) -> WholeNumbers:
    return _rescaled(numbers[0].times(numbers[1]), sum(scales), to)


def _divide(numbers: Sequence[WholeNumbers], scales: Sequence[int], to: int) -> WholeNumbers:
    power = to + scales[1] - scales[0]
    return _raised(numbers[0], power).nearest_quotient(_raised(numbers[1], -power))


def _modulo(numbers: Sequence[WholeNumbers], scales: Sequence[int], to: int) -> WholeNumbers:
    left, right = _aligned(numbers, scales)
    return _rescaled(left.quotient(right)[1], max(scales), to)


def _round(numbers: Sequence[WholeNumbers], scales: Sequence[int], to: int) -> WholeNumbers:
    return _rescaled(numbers[0], scales[0], to)


OPERATIONS: dict[str, Operation] = {
    "+": _add,
    "-": _subtract,
    "*": _multiply,
    "/": _divide,
    "avg": _divide,
    "%": _modulo,
    "round": _round,
}
_OF_SIGNS: dict[str, Callable[[Column], Column]] = {"negate": pc.negate, "abs": pc.abs}
NAMES = {*OPERATIONS, *_OF_SIGNS}


def _aligned(numbers: Sequence[WholeNumbers], scales: Sequence[int]) -> list[WholeNumbers]:
    """The numbers in one unit, that of the larger scale."""
    return [_raised(one, max(scales) - scale) for one, scale in zip(numbers, scales, strict=True)]


def _raised(numbers: WholeNumbers, power: int) -> WholeNumbers:
    """The numbers times ten to the power."""
    return numbers.times(constant(10**power)) if power > 0 else numbers


def _rescaled(numbers: WholeNumbers, scale: int, to: int) -> WholeNumbers:
    """Numbers with `scale` digits behind the point, as such with `to` of them, rounded half up."""
    if scale <= to:
        return _raised(numbers, to - scale)
    return numbers.nearest_quotient(constant(10 ** (scale - to)))
