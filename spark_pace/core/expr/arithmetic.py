"""Arithmetic on BIGINT and DOUBLE, and conversions between types, as far as Spark and Arrow agree on them.

Overflow and division by zero give null, as Spark's ``try_add`` does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from spark_pace.core.expr import decimals
from spark_pace.core.expr.nodes import ARROW_TYPES, ExprType

_LEAST = -(2**63)
_ABOVE = float(2**63)

Overflow = Callable[[Any, Any, Any], Any]


def _guarded(checked: Callable[..., Any], wrapping: Callable[..., Any], overflows: Overflow) -> Any:
    """A kernel for a binary operation, which gives null where it overflows.

    The kernel tries the checked operation on whole columns. Only if that fails does it look for the rows that
    overflow.
    """

    def kernel(values: list[Any]) -> Any:
        left, right = values
        try:
            return checked(left, right)
        except pa.ArrowInvalid:
            result = wrapping(left, right)
            return _null_where(overflows(left, right, result), result)

    return kernel


def _null_where(condition: Any, result: Any) -> Any:
    return pc.if_else(condition, pa.scalar(None, result.type), result)


def _add_overflows(left: Any, right: Any, result: Any) -> Any:
    """True where a sum overflows: its sign differs from the signs of both operands."""
    return pc.less(pc.bit_wise_and(pc.bit_wise_xor(left, result), pc.bit_wise_xor(right, result)), 0)


def _subtract_overflows(left: Any, right: Any, result: Any) -> Any:
    return pc.less(pc.bit_wise_and(pc.bit_wise_xor(left, right), pc.bit_wise_xor(left, result)), 0)


def _multiply_overflows(left: Any, right: Any, result: Any) -> Any:
    """True where a product overflows: dividing the wrapped product by `left` does not give `right`."""
    safe = pc.if_else(pc.is_in(left, value_set=pa.array([0, -1])), 1, left)
    quotient = pc.divide(result, safe)
    by_minus_one = pc.and_(pc.equal(left, -1), pc.equal(right, _LEAST))
    ordinary = pc.invert(pc.is_in(left, value_set=pa.array([0, -1])))
    return pc.or_(by_minus_one, pc.and_(ordinary, pc.not_equal(quotient, right)))


def _divide(values: list[Any]) -> Any:
    """``a / b`` of two DOUBLEs; null where b is 0."""
    left, right = values
    return _null_where(pc.fill_null(pc.equal(right, 0.0), True), pc.divide(left, right))


def _modulo(values: list[Any]) -> Any:
    """``a % b`` with the sign of a; null where b is 0."""
    left, right = values
    if isinstance(left, pa.Scalar) and isinstance(right, pa.Scalar):
        return _modulo([pa.repeat(left, 1), right])[0]
    absent = pc.or_(pc.is_null(left), pc.fill_null(pc.equal(right, 0), True))
    with np.errstate(invalid="ignore"):
        result = np.fmod(_filled(left, 0), _filled(_null_where(absent, right), 1))
    return _null_where(absent, pa.array(result))


def _filled(value: Any, by: int) -> Any:
    filled = pc.fill_null(value, pa.scalar(by, value.type))
    return filled.as_py() if isinstance(filled, pa.Scalar) else filled.to_numpy()


def _negate(values: list[Any]) -> Any:
    value = values[0]
    if pa.types.is_floating(value.type):
        return pc.negate(value)
    return KERNELS["-"]([pa.scalar(0, pa.int64()), value])


def _abs(values: list[Any]) -> Any:
    value = values[0]
    if pa.types.is_floating(value.type):
        return pc.abs(value)
    return _null_where(pc.equal(value, _LEAST), pc.abs(value))


def _to_whole(rounded: Any) -> Any:
    """DOUBLEs without a fraction as BIGINT, as Java's cast does it; see `saturate`."""
    single = isinstance(rounded, pa.Scalar)
    column = pa.repeat(rounded, 1) if single else rounded
    whole = saturate(pc.fill_null(column, 0.0).to_numpy())
    result = _null_where(pc.is_null(column), pa.array(whole))
    return result[0] if single else result


def saturate(values: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """Whole floats as int64: NaN becomes 0, a number beyond the range becomes the nearest one in it."""
    inside = np.where((values >= -_ABOVE) & (values < _ABOVE), values, 0.0).astype(np.int64)
    return np.where(values >= _ABOVE, 2**63 - 1, np.where(values < -_ABOVE, _LEAST, inside))


def _floor(values: list[Any]) -> Any:
    return _to_whole(pc.floor(values[0]))


def _ceil(values: list[Any]) -> Any:
    return _to_whole(pc.ceil(values[0]))


def _round(values: list[Any]) -> Any:
    """Round half away from zero, and give zero no sign.

    `pc.round` is of no use: it adds 0.5 first, which makes 1.0 of 0.49999999999999994.
    """
    whole = pc.trunc(values[0])
    away = pc.greater_equal(pc.abs(pc.subtract(values[0], whole)), 0.5)
    return pc.add(pc.if_else(away, pc.add(whole, pc.sign(values[0])), whole), 0.0)


def _sqrt(values: list[Any]) -> Any:
    return pc.sqrt(values[0])


KERNELS: dict[str, Callable[[list[Any]], Any]] = {
    "+": _guarded(pc.add_checked, pc.add, _add_overflows),
    "-": _guarded(pc.subtract_checked, pc.subtract, _subtract_overflows),
    "*": _guarded(pc.multiply_checked, pc.multiply, _multiply_overflows),
    "/": _divide,
    "%": _modulo,
    "negate": _negate,
    "abs": _abs,
    "floor": _floor,
    "ceil": _ceil,
    "round": _round,
    "sqrt": _sqrt,
}


_LIMIT = float(2**63)


def cast_value(value: Any, target: ExprType) -> Any:
    """Convert `value` to `target`; null for values that do not fit."""
    if target == "NULL":
        return value
    kind = ARROW_TYPES[target]
    if value.type == kind:
        return value
    if pa.types.is_floating(value.type) and target == "BIGINT":
        return _whole(value)
    if target == "DATE":
        return pc.cast(pc.floor_temporal(value, unit="day"), kind)
    if pa.types.is_decimal(value.type) or pa.types.is_decimal(kind):
        return _decimal(value, kind)
    return pc.cast(value, kind, safe=False)  # BIGINT to DOUBLE rounds to the nearest


def _decimal(value: Any, kind: pa.DataType) -> Any:
    """BIGINTs or DECIMALs as a DECIMAL, or DECIMALs as BIGINTs, texts, or the nearest DOUBLEs."""
    if pa.types.is_decimal(kind):
        return decimals.to_decimal(value, kind)
    if pa.types.is_integer(kind):
        return decimals.to_whole(value)
    if pa.types.is_string(kind):
        return decimals.to_text(value)
    # Arrow's own cast from DECIMAL to DOUBLE does not always give the nearest one
    return pc.cast(pc.cast(value, pa.string()), kind)


def _whole(value: Any) -> Any:
    """The whole part of DOUBLEs as BIGINT; null for NaN and for what is out of range."""
    single = isinstance(value, pa.Scalar)
    column = pa.repeat(value, 1) if single else value
    floats = pc.fill_null(column, np.nan).to_numpy()
    outside = ~((np.floor(floats) <= _LIMIT) & (np.ceil(floats) >= -_LIMIT))
    result = pa.array(saturate(np.trunc(floats)), mask=outside)
    return result[0] if single else result
