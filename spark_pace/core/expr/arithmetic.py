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
from spark_pace.core.tables import on_columns

_LEAST = -(2**63)
_ABOVE = float(2**63)


def _guarded(checked: Callable[..., Any], wrapping: Callable[..., Any]) -> Callable[[Any, Any], Any]:
    """A kernel for a binary operation, which gives null where it overflows.

    Only if the checked operation fails are the rows that overflow looked for. Their results have wrapped
    around, and so are 2 ** 64 or more away from what floats give, which is otherwise nearly the result.
    """

    def kernel(left: Any, right: Any) -> Any:
        try:
            return checked(left, right)
        except pa.ArrowInvalid:
            result = wrapping(left, right)
        near = wrapping(*(pc.cast(one, pa.float64(), safe=False) for one in (left, right)))
        away = pc.abs(pc.subtract(near, pc.cast(result, pa.float64(), safe=False)))
        return _null_where(pc.greater(away, _ABOVE), result)

    return kernel


def _null_where(condition: Any, result: Any) -> Any:
    return pc.if_else(condition, pa.scalar(None, result.type), result)


def _divide(left: Any, right: Any) -> Any:
    """``a / b`` of two DOUBLEs; null where b is 0."""
    return _null_where(pc.fill_null(pc.equal(right, 0.0), True), pc.divide(left, right))


def _modulo(left: Any, right: Any) -> Any:
    """``a % b`` with the sign of a; null where b is 0."""
    if isinstance(left, pa.Scalar) and isinstance(right, pa.Scalar):
        return _modulo(pa.repeat(left, 1), right)[0]
    absent = pc.or_(pc.is_null(left), pc.fill_null(pc.equal(right, 0), True))
    with np.errstate(invalid="ignore"):
        result = np.fmod(_filled(left, 0), _filled(_null_where(absent, right), 1))
    return _null_where(absent, pa.array(result))


def _filled(value: Any, by: int) -> Any:
    filled = pc.fill_null(value, pa.scalar(by, value.type))
    return filled.as_py() if isinstance(filled, pa.Scalar) else filled.to_numpy()


def _negate(value: Any) -> Any:
    if pa.types.is_floating(value.type):
        return pc.negate(value)
    return KERNELS["-"](pa.scalar(0, pa.int64()), value)


def _abs(value: Any) -> Any:
    if pa.types.is_floating(value.type):
        return pc.abs(value)
    return _null_where(pc.equal(value, _LEAST), pc.abs(value))


@on_columns
def _to_bigints(rounded: pa.Array) -> pa.Array:
    """DOUBLEs without a fraction as BIGINTs, as Java's cast does it; see `saturate`."""
    whole = saturate(pc.fill_null(rounded, 0.0).to_numpy())
    return _null_where(pc.is_null(rounded), pa.array(whole))


def saturate(values: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """Whole floats as int64: NaN becomes 0, a number beyond the range becomes the nearest one in it."""
    inside = np.where((values >= -_ABOVE) & (values < _ABOVE), values, 0.0).astype(np.int64)
    return np.where(values >= _ABOVE, 2**63 - 1, np.where(values < -_ABOVE, _LEAST, inside))


def _round(value: Any) -> Any:
    """Round half away from zero, and give zero no sign.

    `pc.round` is of no use: it adds 0.5 first, which makes 1.0 of 0.49999999999999994.
    """
    whole = pc.trunc(value)
    away = pc.greater_equal(pc.abs(pc.subtract(value, whole)), 0.5)
    return pc.add(pc.if_else(away, pc.add(whole, pc.sign(value)), whole), 0.0)


KERNELS: dict[str, Callable[..., Any]] = {
    "+": _guarded(pc.add_checked, pc.add),
    "-": _guarded(pc.subtract_checked, pc.subtract),
    "*": _guarded(pc.multiply_checked, pc.multiply),
    "/": _divide,
    "%": _modulo,
    "negate": _negate,
    "abs": _abs,
    "floor": lambda value: _to_bigints(pc.floor(value)),
    "ceil": lambda value: _to_bigints(pc.ceil(value)),
    "round": _round,
    "sqrt": pc.sqrt,
}


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


@on_columns
def _whole(column: pa.Array) -> pa.Array:
    """The whole part of DOUBLEs as BIGINTs; null for NaN and for what is out of range."""
    floats = pc.fill_null(column, np.nan).to_numpy()
    outside = ~((np.floor(floats) <= _ABOVE) & (np.ceil(floats) >= -_ABOVE))
    return pa.array(saturate(np.trunc(floats)), mask=outside)
