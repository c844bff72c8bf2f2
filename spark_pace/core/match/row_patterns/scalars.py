"""Expressions on single values of Python: a function for what the search needs often, columns for the rest.

Each gives what the kernels of `spark_pace.core.expr` give. TIMESTAMPs and DATEs are whole numbers here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from spark_pace.core.expr import ARROW_TYPES, Column, Expr, Literal, evaluate
from spark_pace.core.expr.nodes import Call, decimal_digits
from spark_pace.core.match.row_patterns.rows import SlotColumns

Values = Sequence[Any]
Scalar = Callable[[Values], Any]  # the values of the slots in, one value out

_LEAST, _ABOVE = -(2**63), 2**63
_AS_NUMBERS = {"TIMESTAMP": pa.int64(), "DATE": pa.int32()}


def as_values(column: pa.Array, kind: str) -> list[Any]:
    """The values of a column as they are computed with here."""
    return (column.cast(_AS_NUMBERS[kind]) if kind in _AS_NUMBERS else column).to_pylist()  # type: ignore[no-any-return]


def scalar_function(expr: Expr, types: Sequence[str]) -> Scalar:
    """The function that computes an expression over slots of these types."""
    if _is_plain(expr):
        return _function(expr)

    def by_columns(values: Values) -> Any:
        columns = [
            pa.array([value], _AS_NUMBERS.get(kind, ARROW_TYPES[kind])).cast(ARROW_TYPES[kind])
            for value, kind in zip(values, types, strict=True)
        ]
        return as_values(evaluate(expr, SlotColumns(1, columns)), expr.type)[0]

    return by_columns


def _is_plain(expr: Expr) -> bool:
    """Tell whether all of an expression has a function here."""
    if decimal_digits(expr.type):
        return False
    if not isinstance(expr, Call):
        return isinstance(expr, Column | Literal)
    widens = expr.function == "cast" and (expr.arguments[0].type, expr.type) == ("BIGINT", "DOUBLE")
    return (expr.function in _FUNCTIONS or widens) and all(map(_is_plain, expr.arguments))


def _function(expr: Expr) -> Scalar:
    if isinstance(expr, Column):
        place = int(expr.attribute[1:])
        return lambda values: values[place]
    if isinstance(expr, Literal):
        value = expr.value
        return lambda values: value
    assert isinstance(expr, Call)
    compute = _FUNCTIONS.get(expr.function, float)
    arguments = [_function(one) for one in expr.arguments]
    if expr.function in _OF_NULLS:
        return lambda values: compute(*[one(values) for one in arguments])

    def of_known(values: Values) -> Any:
        known = [one(values) for one in arguments]
        return None if None in known else compute(*known)

    return of_known


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def equal(left: Any, right: Any) -> bool:
    """``left = right``, where NaN equals NaN."""
    return bool(left == right) or (_is_nan(left) and _is_nan(right))


def less(left: Any, right: Any) -> bool:
    """``left < right``, where NaN is greater than every number."""
    if _is_nan(right):
        return not _is_nan(left)
    return bool(left < right)


def _bounded(value: Any) -> Any:
    return None if isinstance(value, int) and not _LEAST <= value < _ABOVE else value


def _and(*values: Any) -> Any:
    return False if False in values else None if None in values else True


def _or(*values: Any) -> Any:
    return True if True in values else None if None in values else False


def _case(*values: Any) -> Any:
    for place in range(0, len(values) - 1, 2):
        if values[place]:
            return values[place + 1]
    return values[-1]


def _in(sought: Any, *items: Any) -> Any:
    return _or(*(None if None in (sought, item) else equal(sought, item) for item in items))


_OF_NULLS = {"and", "or", "is_null", "case", "coalesce", "<=>", "in"}
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "and": _and,
    "or": _or,
    "is_null": lambda value: value is None,
    "case": _case,
    "coalesce": lambda *values: next((value for value in values if value is not None), None),
    "<=>": lambda left, right: left is right if None in (left, right) else equal(left, right),
    "in": _in,
    "not": lambda value: not value,
    "=": equal,
    "<>": lambda left, right: not equal(left, right),
    "<": less,
    ">": lambda left, right: less(right, left),
    "<=": lambda left, right: not less(right, left),
    ">=": lambda left, right: not less(left, right),
    "+": lambda left, right: _bounded(left + right),
    "-": lambda left, right: _bounded(left - right),
    "*": lambda left, right: _bounded(left * right),
    "/": lambda left, right: left / right if right else None,
    "negate": lambda value: _bounded(-value),
    "abs": lambda value: _bounded(abs(value)),
}
