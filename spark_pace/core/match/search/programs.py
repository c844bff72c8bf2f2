"""Conditions over several components as programs that compiled code runs, for those that are not ranked.

What a condition says of one component alone is evaluated once for every event, whatever functions it has, and
is a column. What joins columns of several components is a program: postfix, over a stack of values. It means
what `spark_pace.core.expr` does: null where arithmetic overflows or a divisor is zero, NaN above all numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_pace.core.columns import NULL_ORDER, Bools, Ints
from spark_pace.core.expr import Aggregate, Call, Column, EventColumns, Expr, evaluate, of_component, walk
from spark_pace.core.match.compiled import operations as do
from spark_pace.core.match.compiled.arguments import Programs
from spark_pace.core.match.search.comparison import ACCEPTS, components_of
from spark_pace.core.match.stream import Stream
from spark_pace.core.plan.component import Component
from spark_pace.core.ranks import value_orders
from spark_pace.core.tables import bools

FIRST, LAST = "@first", "@last"  # of the events of a group, as components of a program
MOST_ROWS = 64  # for which a program is run at once
_LOGIC = {"not": do.NOT, "is_null": do.IS_NULL, "and": do.AND, "or": do.OR}
_ARITHMETIC = {
    "abs": do.ABS,
    "negate": do.NEGATE,
    "+": do.ADD,
    "-": do.SUBTRACT,
    "*": do.MULTIPLY,
    "/": do.DIVIDE,
}
_AGGREGATES = {
    "count": do.COUNT,
    "first": do.FIRST,
    "last": do.LAST,
    "sum": do.SUM,
    "avg": do.AVG,
    "min": do.MIN,
    "max": do.MAX,
}
_CODES = {**_LOGIC, **_ARITHMETIC, "cast": do.TO_DOUBLE, **dict.fromkeys(ACCEPTS, do.COMPARE)}


def is_program(expr: Expr, components: Mapping[str | None, int]) -> bool:
    """Tell whether compiled code can test a condition; every comparison of two components it can.

    Args:
        expr: the condition, or a part of it: then whether a program can have its value on the stack.
        components: the index of each component that stands for one event, by name.
    """
    if isinstance(expr, Aggregate):
        counts_values = expr.function == "count" and expr.attribute is not None
        return expr.function in _AGGREGATES and not counts_values and expr.type in ("BIGINT", "DOUBLE")
    if _is_column(expr, components):
        return True
    assert isinstance(expr, Call)
    kinds = {side.type for side in expr.arguments}
    if expr.function in ACCEPTS:
        ranked = all(_is_column(side, components) for side in expr.arguments) and "NULL" not in kinds
        known = len(kinds) == 1 and (ranked or kinds <= {"BIGINT", "DOUBLE", "BOOLEAN"})
    elif expr.function == "cast":
        known = (*kinds, expr.type) == ("BIGINT", "DOUBLE")
    else:
        known = expr.function in _CODES and kinds <= {"BIGINT", "DOUBLE", "BOOLEAN"}
    return known and all(is_program(side, components) for side in expr.arguments)


def _is_column(expr: Expr, components: Mapping[str | None, int]) -> bool:
    """Tell whether an expression is of one event at most."""
    grouped = any(isinstance(node, Aggregate) for node in walk(expr))
    return not grouped and len(components_of(expr, components)) < 2


def is_testable(component: Component) -> bool:
    """Tell whether compiled code can test what a component asks of further events; if it asks nothing too."""
    if component.further is None:
        return True
    return is_program(of_ends(component.further), {component.name: 0, FIRST: 1, LAST: 2})


def of_ends(expr: Expr) -> Expr:
    """The expression with the first and the last event of the group as components of their own."""
    if isinstance(expr, Aggregate) and expr.function in ("first", "last") and expr.attribute is not None:
        return Column(FIRST if expr.function == "first" else LAST, expr.attribute, expr.type)
    if isinstance(expr, Call):
        return replace(expr, arguments=tuple(map(of_ends, expr.arguments)))
    return expr


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
    bounds, aggregate_bounds = [0], [0]
    for condition in conditions:
        written.condition = condition
        written.add(condition.expr)
        written.lines.append((do.HOLDS, -1, -1, 0))
        bounds.append(len(written.lines))
        aggregate_bounds.append(len(written.aggregates))
    ints = np.array(written.columns, np.int64).reshape(len(written.columns), stream.rows)
    lines = np.array(written.lines, np.int64).reshape(-1, 4)
    room = (_depth(lines), MOST_ROWS)
    return Programs(
        lines=lines,
        bounds=np.array(bounds),
        names=np.array([condition.names for condition in conditions], np.int64),
        ints=ints,
        doubles=ints.view(np.float64),
        nulls=np.array(written.nulls, np.bool_).reshape(ints.shape),
        aggregates=np.array(written.aggregates, np.int64).reshape(-1, 4),
        aggregate_bounds=np.array(aggregate_bounds),
        rows=np.zeros(MOST_ROWS, np.int64),
        places=np.zeros(MOST_ROWS, np.int64),
        held=np.zeros(MOST_ROWS, np.bool_),
        int_stack=np.zeros(room, np.int64),
        double_stack=np.zeros(room),
        null_stack=np.zeros(room, np.bool_),
    )


def _depth(lines: Ints) -> int:
    """How many values are on the stack at most."""
    code = lines[:, 0] & (do.OF_DOUBLES - 1)
    left = np.cumsum((lines[:, 1] >= 0) - ((code >= do.AND) | (code == do.HOLDS)).astype(np.int64))
    return int(left.max(initial=0)) + 1


@dataclass
class _Writing:
    """Programs as they are written, and the columns that they need."""

    stream: Stream
    condition: Condition | None = None
    lines: list[tuple[int, int, int, int]] = field(default_factory=list)
    columns: list[Ints] = field(default_factory=list)
    nulls: list[Bools] = field(default_factory=list)
    aggregates: list[tuple[int, int, int, int]] = field(default_factory=list)
    places: dict[tuple[Expr, ...], int] = field(default_factory=dict)

    def add(self, expr: Expr) -> None:
        """Write what leaves the value of an expression on the stack."""
        if isinstance(expr, Aggregate):
            self._aggregate(expr)
            return
        if self._is_column(expr):
            code = do.PUSH + do.OF_DOUBLES * (expr.type == "DOUBLE")
            self._push(code, expr, self._value(expr))
            return
        assert isinstance(expr, Call)
        *others, last = expr.arguments
        code, accepts = _CODES[expr.function], ACCEPTS.get(expr.function, 0)
        if code == do.COMPARE and all(map(self._is_column, expr.arguments)):
            left, right = self._orders(expr.arguments)
            self._push(do.PUSH, others[0], left)
            self._push(code, last, right, accepts)
            return
        if last.type == "DOUBLE" and (code == do.COMPARE or expr.function in _ARITHMETIC):
            code += do.OF_DOUBLES
        for side in others:
            self.add(side)
        if self._is_column(last):
            self._push(code, last, self._value(last), accepts)
        else:
            self.add(last)
            self.lines.append((code, -1, -1, accepts))

    def _aggregate(self, expr: Aggregate) -> None:
        """Write a line that pushes an aggregate, and which aggregate is to be written before."""
        assert self.condition is not None
        code, values, rows = _AGGREGATES[expr.function], -1, self.stream.rows
        gap = self.condition.gaps[expr.component]
        if expr.attribute is not None:
            kind = self.stream.attribute(expr.attribute).type
            values = self._value(Column(None, expr.attribute, expr.type))
            code += do.OF_DOUBLES * pa.types.is_floating(kind)
        column = self._add(np.zeros(rows, np.int64), np.zeros(rows, np.bool_))
        self.aggregates.append((gap, code, values, column))
        self.lines.append((do.PUSH + do.OF_DOUBLES * (expr.type == "DOUBLE"), gap + 1, column, 0))

    def _push(self, code: int, expr: Expr, column: int, accepts: int = 0) -> None:
        """Write a line that pushes a column's value, and what it does then."""
        assert self.condition is not None
        places, names = self.condition.places, self.condition.names
        named = min(
            components_of(expr, places), default=None
        )  # what is no component's is the same at any row
        place = names.bit_length() - 1 if named is None else named
        self.lines.append((code, place, column, accepts))

    def _is_column(self, expr: Expr) -> bool:
        assert self.condition is not None
        return _is_column(expr, self.condition.places)

    def _value(self, expr: Expr) -> int:
        """The column of an expression's values."""
        one = of_component(expr, None)
        if (one,) not in self.places:
            values = evaluate(one, EventColumns(self.stream.events))
            null = bools(pc.is_null(values))
            if pa.types.is_boolean(values.type):
                self._keep((one,), bools(pc.fill_null(values, False)).astype(np.int64), null)
            else:
                numbers = pc.fill_null(values, pa.scalar(0, values.type)).to_numpy()
                self._keep((one,), numbers.view(np.int64), null)
        return self.places[(one,)]

    def _orders(self, sides: Sequence[Expr]) -> tuple[int, int]:
        """The columns of two expressions' values, as whole numbers that compare as they do."""
        left, right = (of_component(side, None) for side in sides)
        if (left, right) not in self.places:
            events = EventColumns(self.stream.events)
            orders = value_orders([evaluate(side, events) for side in (left, right)])
            for key, order in zip(((left, right), (left, right, right)), orders, strict=True):
                self._keep(key, order, order == NULL_ORDER)
        return self.places[left, right], self.places[left, right, right]

    def _keep(self, key: tuple[Expr, ...], numbers: Ints, null: Bools) -> None:
        self.places[key] = self._add(numbers, null)

    def _add(self, numbers: Ints, null: Bools) -> int:
        """Add a column."""
        self.columns.append(numbers)
        self.nulls.append(null)
        return len(self.columns) - 1
