"""Arithmetic on DECIMALs, as Spark does it: exact, then rounded half up to the digits of the result.

A result with more digits before the point than its type has is null, and so is a division by zero.

The kernels compute with whole numbers of up to 76 digits: the values without their points. Arrow derives the
type of a result from the types of the operands. Where the numbers are known to fit, `view` gives the operands
the types that lead to the wanted one.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

WIDEST = 71  # digits of a dividend, and of a sum
_WHOLE = pa.decimal256(76, 0)
_TERM, _FACTOR = pa.decimal256(75, 0), pa.decimal256(37, 0)  # a sum or a product of two of these is `_WHOLE`
_DIVIDEND, _DIVISOR = pa.decimal256(72, 0), pa.decimal256(1, 0)

Column: TypeAlias = pa.Array


def compute(name: str, values: list[Any], target: pa.Decimal128Type) -> Any:
    """The value of an operation in every row, as a column of the type `target`, or as a scalar.

    Args:
        name: one of `OPERATIONS`.
        values: columns or scalars of DECIMALs.
        target: the type of the result.
    """
    rows = next((len(value) for value in values if isinstance(value, pa.Array)), None)
    columns = [
        value if isinstance(value, pa.Array) else pa.repeat(value, 1 if rows is None else rows)
        for value in values
    ]
    result = OPERATIONS[name](columns, target)
    return result[0] if rows is None else result


def to_whole(value: Any) -> Any:
    """DECIMALs without their fractions as BIGINTs; null where they do not fit."""
    single = isinstance(value, pa.Scalar)
    column = pa.repeat(value, 1) if single else value
    units, scale = _units(column), column.type.scale
    whole, rest = _cut(units, scale)
    missing = _at_least(pc.abs(rest), 10**scale).cast(pa.int8())
    whole = _plus(whole, pc.multiply(missing, pc.sign(units).cast(pa.int8())).cast(_WHOLE))
    fits = pc.and_(_at_least(whole, -(2**63)), pc.invert(_at_least(whole, 2**63)))
    result = pc.if_else(fits, whole, None).cast(pa.int64())
    return result[0] if single else result


def to_decimal(value: Any, target: pa.Decimal128Type) -> Any:
    """DECIMALs or BIGINTs rounded half up to other digits; null where they do not fit."""
    single = isinstance(value, pa.Scalar)
    column = pa.repeat(value, 1) if single else value
    if pa.types.is_integer(column.type):
        column = column.cast(pa.decimal128(19, 0))
    result = _fit(_units(column), column.type.scale, target)
    return result[0] if single else result


def round_half_up(column: Any, scale: int) -> Any:
    """Round a column of DECIMALs of 76 digits to `scale` digits behind the point; it must have more."""
    kind = pa.decimal256(76, scale)
    chunks = [_rounded(chunk.view(_WHOLE), chunk.type.scale, scale).view(kind) for chunk in column.chunks]
    return pa.chunked_array(chunks, kind)


def to_text(value: Any) -> Any:
    """DECIMALs with all digits behind the point, and without an exponent."""
    single = isinstance(value, pa.Scalar)
    column = pa.repeat(value, 1) if single else value
    scale = column.type.scale
    digits = pc.abs(_units(column)).cast(pa.string())
    padded = pc.utf8_lpad(digits, scale + 1, "0")
    text = padded
    if scale:
        before, behind = pc.utf8_slice_codeunits(padded, 0, -scale), pc.utf8_slice_codeunits(padded, -scale)
        text = pc.binary_join_element_wise(before, behind, ".")
    below = pc.less(column, pa.scalar(Decimal(0), column.type))
    text = pc.if_else(below, pc.binary_join_element_wise("-", text, ""), text)
    return text[0] if single else text


def _add(columns: list[Column], target: pa.Decimal128Type) -> Column:
    left, right, scale = _aligned(columns)
    return _fit(_plus(left, right), scale, target)


def _subtract(columns: list[Column], target: pa.Decimal128Type) -> Column:
    left, right, scale = _aligned(columns)
    return _fit(_minus(left, right), scale, target)


def _multiply(columns: list[Column], target: pa.Decimal128Type) -> Column:
    left, right = columns
    return _fit(_times(_units(left), _units(right)), left.type.scale + right.type.scale, target)


def _divide(columns: list[Column], target: pa.Decimal128Type) -> Column:
    left, right = columns
    dividend = _times_power(_units(left), target.scale + right.type.scale - left.type.scale)
    divisor = _without_zero(_units(right))
    quotient, rest = _whole_quotient(dividend, divisor)
    up = pc.greater_equal(_times_scalar(pc.abs(rest), 2), pc.abs(divisor))
    away = pc.multiply(pc.sign(dividend), pc.sign(divisor))
    step = pc.if_else(up, away, 0).cast(_WHOLE)
    return _fit(_plus(quotient, step), target.scale, target)


def _modulo(columns: list[Column], target: pa.Decimal128Type) -> Column:
    left, right, scale = _aligned(columns)
    _, rest = _whole_quotient(left, _without_zero(right))
    return _fit(rest, scale, target)


def _round(columns: list[Column], target: pa.Decimal128Type) -> Column:
    return _fit(_units(columns[0]), columns[0].type.scale, target)


OPERATIONS: dict[str, Callable[[list[Column], Any], Column]] = {
    "+": _add,
    "-": _subtract,
    "*": _multiply,
    "/": _divide,
    "avg": _divide,
    "%": _modulo,
    "round": _round,
    "negate": lambda columns, _: pc.negate(columns[0]),
    "abs": lambda columns, _: pc.abs(columns[0]),
}


def _units(column: Column) -> Column:
    """DECIMALs as whole numbers, without their points."""
    return column.cast(pa.decimal256(column.type.precision, column.type.scale)).view(_WHOLE)


def _aligned(columns: list[Column]) -> tuple[Column, Column, int]:
    """Two columns as whole numbers of one unit, and how many digits behind the point the unit stands for."""
    left, right = columns
    scale = max(left.type.scale, right.type.scale)
    return (
        _times_power(_units(left), scale - left.type.scale),
        _times_power(_units(right), scale - right.type.scale),
        scale,
    )


def _plus(left: Column, right: Column) -> Column:
    return pc.add(left.view(_TERM), right.view(_TERM))


def _minus(left: Column, right: Column) -> Column:
    return pc.subtract(left.view(_TERM), right.view(_TERM))


def _times(left: Column, right: Column) -> Column:
    return pc.multiply(left.view(_FACTOR), right.view(_FACTOR)).view(_WHOLE)


def _times_power(column: Column, power: int) -> Column:
    """The whole numbers times ten to the power."""
    while power > 0:
        step = min(power, 36)
        column = _times_scalar(column, 10**step)
        power -= step
    return column


def _times_scalar(column: Column, number: int) -> Column:
    return pc.multiply(column.view(_FACTOR), pa.scalar(Decimal(number), _FACTOR)).view(_WHOLE)


def _whole_quotient(dividend: Column, divisor: Column) -> tuple[Column, Column]:
    """The quotient without its fraction, and what is left, which has the sign of the dividend."""
    quotient = pc.trunc(pc.divide(dividend.view(_DIVIDEND), divisor.view(_DIVISOR))).cast(_WHOLE)
    return quotient, _minus(dividend, _times(quotient, divisor))


def _without_zero(column: Column) -> Column:
    return pc.if_else(pc.equal(column, pa.scalar(Decimal(0), _WHOLE)), None, column)


def _rounded(column: Column, scale: int, to: int) -> Column:
    """Whole numbers with `scale` digits behind the point, as such with `to` of them, rounded half up."""
    if scale <= to:
        return _times_power(column, to - scale)
    whole, rest = _cut(column, scale - to)
    doubled, power = _times_scalar(pc.abs(rest), 2), 10 ** (scale - to)
    # the second test is for quotients of Arrow that are one too small
    steps = pc.add(_at_least(doubled, power).cast(pa.int8()), _at_least(doubled, 3 * power).cast(pa.int8()))
    return _plus(whole, pc.multiply(steps, pc.sign(column).cast(pa.int8())).cast(_WHOLE))


def _cut(column: Column, digits: int) -> tuple[Column, Column]:
    """Take digits off the end of whole numbers: what is left, perhaps one nearer to zero, and the rest.

    Arrow casts, cuts and rounds some numbers of more than 38 digits to one that is nearer to zero by one.
    """
    whole = column.view(pa.decimal256(76, digits)).cast(_WHOLE, safe=False)
    return whole, _minus(column, _times_power(whole, digits))


def _fit(column: Column, scale: int, target: pa.Decimal128Type) -> Column:
    """Round whole numbers with `scale` digits behind the point to the type `target`, or to null."""
    rounded = _rounded(column, scale, target.scale)
    beyond = _at_least(pc.abs(rounded), 10**target.precision)
    kept = pc.if_else(beyond, None, rounded)
    return kept.view(pa.decimal256(76, target.scale)).cast(target)


def _at_least(column: Column, number: int) -> Any:
    return pc.greater_equal(column, pa.scalar(Decimal(number), _WHOLE))
