"""Conditions over several components as programs that compiled code runs, for those that are not ranked.

A program is postfix lines over a stack of values, run row by row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_pace.core.expr import (
    Aggregate,
    Call,
    Column,
    EventColumns,
    Expr,
    evaluate,
    of_component,
    transform,
    walk,
)
from spark_pace.core.match.compiled import operations as do
from spark_pace.core.match.compiled.arguments import Programs
from spark_pace.core.match.search.comparison import ACCEPTS, components_of
from spark_pace.core.match.stream import Stream
from spark_pace.core.plan.rule import Component
from spark_pace.core.ranks import value_orders
from spark_pace.core.tables import NULL_ORDER, Bools, Ints, bools

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
    empty = np.minimum.accumulate(np.minimum(left, 0))  # behind programs without lines, which are not run
    return int((left - empty).max(initial=0)) + 1


FIRST, LAST = "@first", "@last"  # of the events of a group, as components of a program
MOST_ROWS = 64  # for which a program is run at once
_AGGREGATES = {
    "count": do.COUNT,
    "first": do.FIRST,
    "last": do.LAST,
    "sum": do.SUM,
    "avg": do.AVG,
    "min": do.MIN,
    "max": do.MAX,
}


@dataclass(frozen=True)
class _Leaves:
    """Which parts of a condition have values of one event at most, and which are of a group."""

    components: Mapping[str | None, int]

    def is_column(self, expr: Expr) -> bool:
        """Tell whether an expression is of one event at most."""
        grouped = any(isinstance(node, Aggregate) for node in walk(expr))
        return not grouped and len(components_of(expr, self.components)) < 2

    def is_cell(self, expr: Expr) -> bool:
        """Tell whether an expression is an aggregate that compiled code computes."""
        if not isinstance(expr, Aggregate):
            return False
        counts_values = expr.function == "count" and expr.attribute is not None
        return expr.function in _AGGREGATES and not counts_values and expr.type in ("BIGINT", "DOUBLE")


def is_program(expr: Expr, components: Mapping[str | None, int]) -> bool:
    """Tell whether compiled code can test a condition.

    Args:
        expr: the condition.
        components: the index of each component that stands for one event, by name.
    """
    return is_writable(expr, _Leaves(components))


def is_testable(component: Component) -> bool:
    """Tell whether compiled code can test what a component asks of further events; if it asks nothing too."""
    if component.further is None:
        return True
    return is_program(of_ends(component.further), {component.name: 0, FIRST: 1, LAST: 2})


def of_ends(expr: Expr) -> Expr:
    """The expression with the first and the last event of the group as components of their own."""

    def end(node: Expr) -> Expr | None:
        if not isinstance(node, Aggregate) or node.function not in ("first", "last") or not node.attribute:
            return None
        return Column(FIRST if node.function == "first" else LAST, node.attribute, node.type)

    return transform(expr, end)


@dataclass(frozen=True)
class Condition:
    """A condition as it is tested in a search.

    Attributes:
        expr: the condition.
        names: the mask of the anchors and the set that must be placed to test it.
        places: the anchor or the set of each component, by its name.
        gaps: the gap of each group, by its name.
    """

    expr: Expr
    names: int
    places: Mapping[str | None, int]
    gaps: Mapping[str | None, int]


def programs_of(conditions: Sequence[Condition], stream: Stream) -> Programs:
    """The programs of some conditions over a stream."""
    written = _Writing(stream)
    texts, aggregate_bounds = list[list[Line]](), [0]
    for condition in conditions:
        written.condition, lines = condition, list[Line]()
        write(condition.expr, written, lines)
        texts.append(lines)
        aggregate_bounds.append(len(written.aggregates))
    ints = np.array(written.columns, np.int64).reshape(len(written.columns), stream.rows)
    nulls = np.array(written.nulls, np.bool_).reshape(ints.shape)
    return as_programs(texts, ints, nulls, MOST_ROWS, written.aggregates)._replace(
        names=np.array([condition.names for condition in conditions], np.int64),
        aggregate_bounds=np.array(aggregate_bounds),
    )


@dataclass
class _Writing:
    """The columns that programs need, as they are written."""

    stream: Stream
    condition: Condition | None = None
    columns: list[Ints] = field(default_factory=list)
    nulls: list[Bools] = field(default_factory=list)
    aggregates: list[tuple[int, int, int, int]] = field(default_factory=list)
    places: dict[tuple[Expr, ...], int] = field(default_factory=dict)

    def is_column(self, expr: Expr) -> bool:
        """See `_Leaves`."""
        assert self.condition is not None
        return _Leaves(self.condition.places).is_column(expr)

    def is_cell(self, expr: Expr) -> bool:
        """Tell whether an expression is an aggregate."""
        return isinstance(expr, Aggregate)

    def place(self, expr: Expr) -> Place:
        """The place of the values of an expression, or of an aggregate."""
        return self._aggregate(expr) if isinstance(expr, Aggregate) else self._at(expr, self._value(expr))

    def orders(self, sides: Sequence[Expr]) -> Sequence[Place]:
        """The places of two expressions' values, as whole numbers that compare as they do."""
        left, right = (of_component(side, None) for side in sides)
        if (left, right) not in self.places:
            events = EventColumns(self.stream.events)
            orders = value_orders([evaluate(side, events) for side in (left, right)])
            for key, order in zip(((left, right), (left, right, right)), orders, strict=True):
                self._keep(key, order, order == NULL_ORDER)
        columns = self.places[left, right], self.places[left, right, right]
        return [self._at(side, column) for side, column in zip(sides, columns, strict=True)]

    def _aggregate(self, expr: Aggregate) -> Place:
        """Note which aggregate is to be written before; the place where it is written."""
        assert self.condition is not None
        code, values, rows = _AGGREGATES[expr.function], -1, self.stream.rows
        gap = self.condition.gaps[expr.component]
        if expr.attribute is not None:
            kind = self.stream.attribute(expr.attribute).type
            values = self._value(Column(None, expr.attribute, expr.type))
            code += do.OF_DOUBLES * pa.types.is_floating(kind)
        column = self._add(np.zeros(rows, np.int64), np.zeros(rows, np.bool_))
        self.aggregates.append((gap, code, values, column))
        return gap + 1, column

    def _at(self, expr: Expr, column: int) -> Place:
        assert self.condition is not None
        places, names = self.condition.places, self.condition.names
        named = min(
            components_of(expr, places), default=None
        )  # what is no component's is the same at any row
        return names.bit_length() - 1 if named is None else named, column

    def _value(self, expr: Expr) -> int:
        """The column of an expression's values."""
        one = of_component(expr, None)
        if (one,) not in self.places:
            self._keep((one,), *numbers_of(evaluate(one, EventColumns(self.stream.events))))
        return self.places[(one,)]

    def _keep(self, key: tuple[Expr, ...], numbers: Ints, null: Bools) -> None:
        self.places[key] = self._add(numbers, null)

    def _add(self, numbers: Ints, null: Bools) -> int:
        """Add a column."""
        self.columns.append(numbers)
        self.nulls.append(null)
        return len(self.columns) - 1
