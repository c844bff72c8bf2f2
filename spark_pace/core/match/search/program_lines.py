"""Conditions as programs: postfix lines over a stack of values, which compiled code runs row by row.

They mean what `spark_pace.core.expr` does: null where arithmetic overflows or a divisor is zero, NaN above
all numbers. What stands on the stack are BIGINTs, DOUBLEs and BOOLEANs. Values of other types are only
compared, as whole numbers that are ordered as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_pace.core.columns import Bools, Ints
from spark_pace.core.expr import Call, Expr
from spark_pace.core.match.compiled import operations as do
from spark_pace.core.match.compiled.arguments import Programs
from spark_pace.core.match.search.comparison import ACCEPTS
from spark_pace.core.tables import bools

Line = tuple[int, int, int, int]  # see `Programs.lines`
Place = tuple[int, int]  # the second and third number of a line: whose row it is, and the column

_LOGIC = {"not": do.NOT, "is_null": do.IS_NULL, "and": do.AND, "or": do.OR}
_ARITHMETIC = {
    "abs": do.ABS,
    "negate": do.NEGATE,
    "+": do.ADD,
    "-": do.SUBTRACT,
    "*": do.MULTIPLY,
    "/": do.DIVIDE,
}
_CODES = {**_LOGIC, **_ARITHMETIC, "cast": do.TO_DOUBLE, **dict.fromkeys(ACCEPTS, do.COMPARE)}
_NUMBERS = {"BIGINT", "DOUBLE", "BOOLEAN"}


class Leaves(Protocol):
    """The parts of a condition whose values a program finds in columns."""

    def is_column(self, expr: Expr) -> bool:
        """Tell whether the values of a part are known for all rows before a search."""

    def is_cell(self, expr: Expr) -> bool:
        """Tell whether a search writes the value of a part, a number, before it runs the program."""


class Columns(Leaves, Protocol):
    """The same with the places of the values."""

    def place(self, expr: Expr) -> Place:
        """The place of the values of a column, or of what a search writes."""

    def orders(self, sides: Sequence[Expr]) -> Sequence[Place]:
        """The places of the values of two columns as whole numbers that compare as they do."""


def is_writable(expr: Expr, leaves: Leaves) -> bool:
    """Tell whether a program can have the value of an expression on its stack.

    Every comparison of two columns it can.
    """
    if leaves.is_column(expr) or leaves.is_cell(expr):
        return True
    if not isinstance(expr, Call):
        return False
    kinds = {side.type for side in expr.arguments}
    if expr.function in ACCEPTS:
        ranked = all(map(leaves.is_column, expr.arguments)) and "NULL" not in kinds
        known = len(kinds) == 1 and (ranked or kinds <= _NUMBERS)
    elif expr.function == "cast":
        known = (*kinds, expr.type) == ("BIGINT", "DOUBLE")
    else:
        known = expr.function in _CODES and kinds <= _NUMBERS
    return known and all(is_writable(side, leaves) for side in expr.arguments)


def write(expr: Expr, columns: Columns, lines: list[Line]) -> None:
    """Write the lines that leave the value of an expression on the stack."""
    if columns.is_column(expr) or columns.is_cell(expr):
        lines.append((do.PUSH + do.OF_DOUBLES * (expr.type == "DOUBLE"), *columns.place(expr), 0))
        return
    assert isinstance(expr, Call)
    *others, last = expr.arguments
    code, accepts = _CODES[expr.function], ACCEPTS.get(expr.function, 0)
    if code == do.COMPARE and all(map(columns.is_column, expr.arguments)):
        left, right = columns.orders(expr.arguments)
        lines += [(do.PUSH, *left, 0), (code, *right, accepts)]
        return
    if last.type == "DOUBLE" and (code == do.COMPARE or expr.function in _ARITHMETIC):
        code += do.OF_DOUBLES
    for side in others:
        write(side, columns, lines)
    if columns.is_column(last):
        lines.append((code, *columns.place(last), accepts))
    else:
        write(last, columns, lines)
        lines.append((code, -1, -1, accepts))


def numbers_of(values: pa.Array) -> tuple[Ints, Bools]:
    """The values of a column as they stand on the stack, as int64[n], and bool[n], where they are null."""
    null = bools(pc.is_null(values))
    if pa.types.is_boolean(values.type):
        return bools(pc.fill_null(values, False)).astype(np.int64), null
    return pc.fill_null(values, pa.scalar(0, values.type)).to_numpy().view(np.int64), null


def as_programs(
    conditions: Sequence[Sequence[Line]],
    ints: Ints,
    nulls: Bools,
    rows: int,
    aggregates: Sequence[tuple[int, int, int, int]] = (),
) -> Programs:
    """Programs over columns, each of which is tested whatever is placed.

    Args:
        conditions: the lines of each condition.
        ints: int64[v, width], the columns.
        nulls: bool[v, width], where they are null.
        rows: the number of rows for which a program is run at once.
        aggregates: see `Programs`; those of the last condition, unless that is said otherwise.
    """
    lines = np.array([line for one in conditions for line in (*one, (do.HOLDS, -1, -1, 0))], np.int64)
    lines = lines.reshape(-1, 4)
    room, count = (_depth(lines), rows), len(aggregates)
    return Programs(
        lines=lines,
        bounds=np.cumsum([0, *(len(one) + 1 for one in conditions)]),
        names=np.zeros(len(conditions), np.int64),
        ints=ints,
        doubles=ints.view(np.float64),
        nulls=nulls,
        aggregates=np.array(aggregates, np.int64).reshape(count, 4),
        aggregate_bounds=np.zeros(len(conditions) + 1, np.int64),
        counts=np.zeros(count, np.int64),
        lows=np.zeros(count, np.int64),
        highs=np.zeros(count, np.int64),
        sums=np.zeros(count),
        rows=np.zeros(rows, np.int64),
        places=np.zeros(rows, np.int64),
        held=np.zeros(rows, np.bool_),
        int_stack=np.zeros(room, np.int64),
        double_stack=np.zeros(room),
        null_stack=np.zeros(room, np.bool_),
    )


def _depth(lines: Ints) -> int:
    """How many values are on the stack at most."""
    code = lines[:, 0] & (do.OF_DOUBLES - 1)
    left = np.cumsum((lines[:, 1] >= 0) - ((code >= do.AND) | (code == do.HOLDS)).astype(np.int64))
    return int(left.max(initial=0)) + 1
