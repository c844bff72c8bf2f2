"""Evaluation of expression trees on whole columns, with the null logic of SQL.

Every function is one kernel over whole Arrow arrays, or scalars for constants. A tree takes O(nodes x rows)
time and one temporary column for each node that is being evaluated.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from spark_pace.core.expr import (
    arithmetic,
    comparison,
    decimals,
    text_functions,
    time_functions,
)
from spark_pace.core.expr.nodes import (
    ARROW_TYPES,
    Aggregate,
    Column,
    Expr,
    Literal,
    Previous,
    decimal_digits,
)
from spark_pace.core.tables import array, bools

Kernel = Callable[..., Any]  # arrays or scalars in, one array or scalar out


class Columns(Protocol):
    """The columns that an expression reads: plain arrays of `rows` values, of the types in `ARROW_TYPES`."""

    @property
    def rows(self) -> int:
        """The length of every column."""

    def column(self, component: str | None, attribute: str) -> pa.Array:
        """The values of an attribute; `component` is None for the event at hand."""

    def aggregate(self, one: Aggregate) -> pa.Array:
        """The values of an aggregate over the events bound to a component, or of a span."""


@dataclass(frozen=True)
class EventColumns:
    """The columns of an expression over a single event: the attributes of events."""

    events: pa.Table

    @property
    def rows(self) -> int:
        """The number of events."""
        return int(self.events.num_rows)

    def column(self, component: str | None, attribute: str) -> pa.Array:
        """The values of an attribute."""
        assert component is None
        return array(self.events, attribute)

    def aggregate(self, one: Aggregate) -> pa.Array:
        """Fail, for a single event has no group to aggregate."""
        raise AssertionError(f"{one} over a single event")


def evaluate(expr: Expr, columns: Columns) -> pa.Array:
    """The expression's value in every row: an array of `columns.rows` values of the expression's type.

    Arithmetic that overflows and division by zero give null, as Spark's ``try_`` functions do.
    """
    value = _value(expr, columns)
    if isinstance(value, pa.Scalar):
        return pa.repeat(value, columns.rows)
    return value


def evaluate_mask(expr: Expr, columns: Columns) -> npt.NDArray[np.bool_]:
    """The value of a condition in every row as a numpy array; null counts as false."""
    value = evaluate(expr, columns)
    return bools(pc.fill_null(value, False))


def _value(expr: Expr, columns: Columns) -> Any:
    if isinstance(expr, Column):
        return columns.column(expr.component, expr.attribute)
    if isinstance(expr, Previous):
        return columns.column(expr.component, expr.column)
    if isinstance(expr, Literal):
        return _constant(expr)
    if isinstance(expr, Aggregate):
        return columns.aggregate(expr)
    values = [_value(argument, columns) for argument in expr.arguments]
    if decimal_digits(expr.type) and expr.function in decimals.NAMES:
        return decimals.compute(expr.function, values, ARROW_TYPES[expr.type])
    if expr.function == "cast":
        return arithmetic.cast_value(values[0], expr.type)
    return KERNELS[expr.function](*values)


def _constant(literal: Literal) -> pa.Scalar:
    if literal.type == "NULL":
        return pa.scalar(None, pa.null())
    is_decimal = decimal_digits(literal.type) is not None and literal.value is not None
    return pa.scalar(Decimal(str(literal.value)) if is_decimal else literal.value, ARROW_TYPES[literal.type])


def _case(*values: Any) -> Any:
    """The value of the first true condition. Arguments: condition, value, …, the value if none is true."""
    result = values[-1]
    for position in range(len(values) - 3, -1, -2):
        condition = pc.fill_null(values[position], False)
        result = pc.if_else(condition, values[position + 1], result)
    return result


KERNELS: dict[str, Kernel] = {
    "and": pc.and_kleene,
    "or": pc.or_kleene,
    "not": pc.invert,
    "is_null": pc.is_null,
    "case": _case,
    "coalesce": pc.coalesce,
    **text_functions.ARRAY_KERNELS,
    **comparison.KERNELS,
    **arithmetic.KERNELS,
    **text_functions.KERNELS,
    **time_functions.KERNELS,
}
