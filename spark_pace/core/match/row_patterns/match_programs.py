"""Conditions that read the match so far, as programs that the compiled search runs as it takes rows.

What a condition computes of one row, of the name of a variable, or of constants is computed of all of them
before, whatever functions it has, and is a column. A program joins such columns, each read at a row that only
the search knows, and aggregates, which the search writes to cells of their own, of numbers that are made here
too.

Conditions are first written in the operations that programs have, without ``case``, ``coalesce``, ``in`` and
``<=>``: once for each of the values between which a part chooses. Several such parts in one comparison, or in
each other, multiply, so what becomes too large stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_pace.core.expr import ARROW_TYPES, Call, Column, Expr, Literal, evaluate, transform, walk
from spark_pace.core.match.row_patterns import match_so_far as kinds
from spark_pace.core.match.row_patterns.compiled import SoFar
from spark_pace.core.match.row_patterns.match_so_far import FARTHEST, MOST_DIGITS
from spark_pace.core.match.row_patterns.rows import Rows, SlotColumns
from spark_pace.core.match.search.programs import Line, Place, as_programs, is_writable, numbers_of, write
from spark_pace.core.plan.row_pattern import (
    Computed,
    MatchNumber,
    Navigation,
    RowPattern,
    Slot,
    Summary,
)
from spark_pace.core.ranks import value_orders
from spark_pace.core.summaries.sums import ODD, sums_of
from spark_pace.core.tables import GREATEST, NULL_ORDER, Bools, Ints, bools

MOST_NODES = 2_000
_CHOOSING = ("case", "coalesce")


class TooLargeError(Exception):
    """A condition would have more than `MOST_NODES`."""


def plain(expr: Expr) -> Expr:
    """The same condition without these functions, where it is null for the same values.

    Raises:
        TooLargeError: it would be.
    """
    if not isinstance(expr, Call):
        return expr
    if expr.function == "<=>":
        left, right = expr.arguments
        known = _and(_not(_is_null(left)), _not(_is_null(right)))
        return plain(_or(_and(known, _equal(left, right)), _and(_is_null(left), _is_null(right))))
    if expr.function == "in":
        sought, *items = expr.arguments
        return plain(_any([_equal(sought, one) for one in items]))
    one = replace(expr, arguments=tuple(map(plain, expr.arguments)))
    return _lifted(one) if expr.type == "BOOLEAN" else one


def _lifted(condition: Expr) -> Expr:
    """The condition of each of the values between which a part of it chooses, where that one is chosen."""
    part = _choosing(condition)
    if part is None:
        return condition
    first, *rest = part.arguments
    value = first
    if part.function == "case":
        value, *rest = rest
        chosen: Expr = _and(_not(_is_null(first)), first)
    else:
        chosen = plain(_not(_is_null(first)))
    other = rest[0] if len(rest) == 1 else replace(part, arguments=tuple(rest))
    left, right = (_lifted(_with(condition, part, one)) for one in (value, other))
    lifted = _or(_and(chosen, left), _and(_not(chosen), right))
    _require_small(lifted)
    return lifted


def _require_small(condition: Expr) -> None:
    for number, _ in enumerate(walk(condition)):
        if number >= MOST_NODES:
            raise TooLargeError


def _choosing(expr: Expr) -> Call | None:
    """The first part of a condition that chooses, but for those within conditions in it."""
    if not isinstance(expr, Call):
        return None
    if expr.function in _CHOOSING and len(expr.arguments) > 1:
        return expr
    inner = (_choosing(one) for one in expr.arguments if one.type != "BOOLEAN")
    return next(filter(None, inner), None)


def _with(expr: Expr, part: Expr, value: Expr) -> Expr:
    return transform(expr, lambda node: value if node is part else None)


def _any(conditions: Sequence[Call]) -> Call:
    """One of the conditions; it is as deep as the logarithm of their number."""
    if len(conditions) == 1:
        return conditions[0]
    middle = len(conditions) // 2
    return _or(_any(conditions[:middle]), _any(conditions[middle:]))


def _equal(left: Expr, right: Expr) -> Call:
    return Call("=", (left, right), "BOOLEAN")


def _is_null(expr: Expr) -> Call:
    return Call("is_null", (expr,), "BOOLEAN")


def _not(condition: Expr) -> Call:
    return Call("not", (condition,), "BOOLEAN")


def _and(left: Expr, right: Expr) -> Call:
    return Call("and", (left, right), "BOOLEAN")


def _or(left: Expr, right: Expr) -> Call:
    return Call("or", (left, right), "BOOLEAN")


_NEAR = FARTHEST - 3  # digits at places nearer to 0 are rounded with those around them

Variables: TypeAlias = tuple[int, ...] | None


class FarApartError(Exception):
    """The numbers of a column have digits at too many places, or too far from 0."""


class Total(NamedTuple):
    """Where a sum is found; see the last columns of `SoFar.slots`."""

    first: int
    digits: int
    lowest: int
    odd: bool


def is_running(one: Summary) -> bool:
    """Tell whether the compiled search can compute an aggregate."""
    return one.function not in ("sum", "avg") or (one.of is not None and one.of.type in ("BIGINT", "DOUBLE"))


@dataclass
class RunningNumbers:
    """Sets of variables, and columns of numbers that are added up over their rows; each is made once."""

    rows: Rows
    variables: int
    _sets: list[int] = field(default_factory=list)
    _adding: list[tuple[int, int]] = field(default_factory=list)
    _numbers: list[Ints] = field(default_factory=list)
    _known: dict[tuple[object, ...], int] = field(default_factory=dict)
    _totals: dict[tuple[object, ...], Total] = field(default_factory=dict)

    @property
    def sets(self) -> Ints:
        """See `SoFar`, as of the next two."""
        return np.array(self._sets, np.int64)

    @property
    def adding(self) -> Ints:
        """See there."""
        return np.array(self._adding, np.int64).reshape(len(self._adding), 2)

    @property
    def numbers(self) -> Ints:
        """See there."""
        return np.array(self._numbers, np.int64).reshape(len(self._numbers), self.rows.rows)

    def set_of(self, variables: Variables) -> int:
        """The number of the set of some variables; of all, if it is None."""
        of = range(self.variables) if variables is None else variables
        mask = sum(1 << one for one in of)
        if mask not in self._sets:
            self._sets.append(mask)
        return self._sets.index(mask)

    def known(self, one: Summary) -> int:
        """The column that counts the values of an aggregate; -1 if all rows have one."""
        of = self.set_of(one.variables)
        if one.of is None or not self.rows.values(one.of).null_count:
            return -1
        key = ("known", of, one.of)
        if key not in self._known:
            self._known[key] = self._add(of, bools(pc.is_valid(self.rows.values(one.of))).astype(np.int64))
        return self._known[key]

    def extreme(self, one: Summary) -> int:
        """The column of which the least number tells the row of an extreme value."""
        assert one.of is not None
        key = (one.function, of := self.set_of(one.variables), one.of)
        if key not in self._known:
            (orders,) = value_orders([self.rows.values(one.of)])
            # of the greatest value the complement is least; no number is `GREATEST` but that of null
            numbers = ~orders if one.function == "max" else orders - 1
            numbers = np.where(orders == NULL_ORDER, GREATEST, numbers)
            self._known[key] = self._add(of, numbers, least=True)
        return self._known[key]

    def total(self, one: Summary) -> Total:
        """The columns of digits of the numbers of a sum.

        Raises:
            FarApartError: there are too many.
        """
        assert one.of is not None
        key = (of := self.set_of(one.variables), one.of)
        if key not in self._totals:
            self._totals[key] = self._total(of, one)
        return self._totals[key]

    def _total(self, of: int, one: Summary) -> Total:
        assert one.of is not None
        sums = sums_of(self.rows.values(one.of))
        odd = any(place in ODD for place in sums.places)
        places = [place for place in sums.places if place not in ODD] or [0]
        between = range(min(places), max(places) + 1)
        if len(between) > MOST_DIGITS or max(map(abs, places)) > _NEAR:
            raise FarApartError
        none, first = np.zeros(self.rows.rows, np.int64), len(self._numbers)
        for place in [*between, *(ODD if odd else ())]:
            self._add(of, sums.at(place) if place in sums.places else none)
        return Total(first, len(between), between[0], odd)

    def _add(self, of: int, numbers: Ints, *, least: bool = False) -> int:
        self._adding.append((of, int(least)))
        self._numbers.append(numbers)
        return len(self._numbers) - 1


# how a row is found, whose values or name are read; or the aggregate that is the value of a row
Source: TypeAlias = tuple[object, ...] | Summary
HERE, NAME = "here", "name"  # the first part of the source of rows near the row at hand, and of names


@dataclass(frozen=True)
class Test:
    """A part of the condition of a variable."""

    variable: int
    part: Computed

    @property
    def is_program(self) -> bool:
        """Tell whether it can be a program."""
        summaries = (slot for slot in self.part.slots if isinstance(slot, Summary))
        return is_writable(self.part.expr, self) and all(map(is_running, summaries))

    def slot(self, column: Column) -> Slot:
        """The slot that a column of the expression stands for."""
        return self.part.slots[int(column.attribute[1:])]

    def source(self, slot: Slot) -> Source | None:
        """How the row is found at which a slot is read; None if the search writes its value."""
        if isinstance(slot, MatchNumber):
            return None
        if isinstance(slot, Summary):
            return slot if slot.function in ("min", "max") else None
        if slot.of is None:
            return NAME, slot.variables, slot.back, slot.first
        if not slot.first and not slot.back and (slot.variables is None or self.variable in slot.variables):
            return HERE, slot.shift  # the row at hand is the last one of its variable
        return "row", slot.variables, slot.back, slot.first, slot.shift

    def slots(self, expr: Expr) -> list[Slot]:
        """The slots of an expression."""
        return [self.slot(node) for node in walk(expr) if isinstance(node, Column)]

    def is_column(self, expr: Expr) -> bool:
        """Tell whether all that an expression reads is read at one row."""
        sources = {self.source(slot) for slot in self.slots(expr)}
        return len(sources) < 2 and None not in sources

    def is_cell(self, expr: Expr) -> bool:
        """Tell whether an expression is a slot whose value the search writes."""
        return isinstance(expr, Column) and self.source(self.slot(expr)) is None

    def of_row(self, expr: Expr) -> Expr:
        """What an expression, whose slots are all read at one row, computes of that row."""
        return transform(expr, self._at_row)

    def _at_row(self, node: Expr) -> Expr | None:
        if not isinstance(node, Column):
            return None
        slot = self.slot(node)
        assert not isinstance(slot, MatchNumber) and slot.of is not None, slot
        if isinstance(slot, Summary) and slot.of.type == "DOUBLE":
            return Call("+", (slot.of, Literal(0.0, "DOUBLE")), "DOUBLE")  # which makes 0.0 of -0.0
        return slot.of


def tests_of(plan: RowPattern) -> Iterator[Test]:
    """All parts that read the match, variable by variable."""
    for variable, condition in enumerate(plan.conditions):
        for part in condition.of_match:
            one = Test(variable, part)
            yield one if one.is_program else _in_plain_words(one)


def _in_plain_words(one: Test) -> Test:
    try:
        return replace(one, part=replace(one.part, expr=plain(one.part.expr)))
    except TooLargeError:
        return one


class _Slot(NamedTuple):
    """A line of `SoFar.slots`."""

    kind: int
    set: int = -1
    back: int = 0
    first: int = 0
    shift: int = 0
    cell: int = 0
    numbers: int = -1
    known: int = -1
    digits: int = 0
    lowest: int = 0
    odd: int = 0


class _Piece(NamedTuple):
    """A part of a column: values from a cell on, or of all rows."""

    column: int
    cell: int | None
    numbers: Ints
    nulls: Bools


def so_far_of(plan: RowPattern, rows: Rows) -> SoFar:
    """What conditions read of the match so far, without room for rows."""
    tests = list(tests_of(plan))
    tables = _Tables(plan, rows, RunningNumbers(rows, len(plan.variables)))
    texts = [tables.text(one) for one in tests]
    first = np.searchsorted([one.variable for one in tests], np.arange(len(plan.variables) + 1))
    return tables.so_far(first.astype(np.int64), texts)


def with_room(one: SoFar, room: int) -> SoFar:
    """The same with room for so many rows of a match."""
    running = np.zeros((len(one.adding), room + 1), np.int64)
    running[:, 0] = -one.adding[:, 1]
    return one._replace(rows=np.zeros((len(one.sets), room), np.int64), running=running)


@dataclass
class _Tables:
    """What all programs read."""

    plan: RowPattern
    rows: Rows
    running: RunningNumbers
    slots: list[_Slot] = field(default_factory=list)
    bounds: list[int] = field(default_factory=lambda: [0])
    pieces: list[_Piece] = field(default_factory=list)
    columns: dict[object, int] = field(default_factory=dict)  # by what they have
    cells: int = 0  # behind those of null and of the names

    def text(self, test: Test) -> list[Line]:
        """The program of a condition; no lines if it is computed outside."""
        lines, text = list[Line](), _Text(test, self)
        try:
            if test.is_program:
                write(test.part.expr, text, lines)
        except FarApartError:
            lines.clear()
        if not lines:
            text.read_rows()
        self.bounds.append(len(self.slots))
        return lines

    def add_slot(self, one: _Slot) -> int:
        """Add a slot; its place."""
        self.slots.append(one)
        return len(self.slots) - 1

    def cell(self) -> int:
        """A cell of its own."""
        self.cells += 1
        return kinds.FIRST_NAME + len(self.plan.variables) + self.cells - 1

    def add_column(self, key: object, numbers: Ints, nulls: Bools, named: bool) -> int:
        """Add a column of the values that null and all rows have, or null and all names; its number."""
        column = self.columns[key] = len(self.columns)
        cells = len(numbers) if named else 1
        self.pieces.append(_Piece(column, kinds.NULL_CELL, numbers[:cells], nulls[:cells]))
        self.pieces.append(_Piece(column, None, numbers[cells:], nulls[cells:]))
        return column

    def so_far(self, tests: Ints, texts: Sequence[list[Line]]) -> SoFar:
        """All of it, as the search is given it."""
        cells, running, slots = self.cell(), self.running, self.slots
        ints = np.zeros((max(len(self.columns), 1), cells + self.rows.rows), np.int64)
        nulls = np.zeros(ints.shape, np.bool_)
        for one in self.pieces:
            first = cells if one.cell is None else one.cell
            ints[one.column, first : first + len(one.numbers)] = one.numbers
            nulls[one.column, first : first + len(one.nulls)] = one.nulls
        return SoFar(
            most_steps=self.plan.most_steps,
            matches=np.ascontiguousarray(self.rows.extent.matches, np.int64),
            tests=tests,
            outside=np.array([not one for one in texts], np.bool_),
            programs=as_programs(texts, ints, nulls, 1),
            slots=np.array(slots, np.int64).reshape(len(slots), len(_Slot._fields)),
            slot_bounds=np.array(self.bounds, np.int64),
            places=np.array([one.cell for one in slots], np.int64),
            cells=cells,
            sets=running.sets,
            counts=np.zeros(len(running.sets), np.int64),
            rows=np.zeros((0, 0), np.int64),
            adding=running.adding,
            numbers=running.numbers,
            running=np.zeros((0, 0), np.int64),
            digits=np.zeros(kinds.MOST_DIGITS + 3, np.int64),
            scales=np.ldexp(1.0, 32 * np.arange(-kinds.FARTHEST, kinds.FARTHEST + 1)),
        )


@dataclass
class _Text:
    """The program of a condition as it is written."""

    test: Test
    tables: _Tables
    slots: dict[Source | Slot, int] = field(default_factory=dict)

    def is_column(self, expr: Expr) -> bool:
        """See `Test`."""
        return self.test.is_column(expr)

    def is_cell(self, expr: Expr) -> bool:
        """See `Test`."""
        return self.test.is_cell(expr)

    def place(self, expr: Expr) -> Place:
        """The place of the values of a column, or of what the search writes."""
        slots = self.test.slots(expr)
        if self.is_cell(expr):
            return self._slot(slots[0]), 0
        if not slots:
            return self._constant(expr), 0
        key = self._key(expr)
        if key not in self.tables.columns:
            self.tables.add_column(key, *numbers_of(self._values(expr)), self._is_named(expr))
        return self._slot(slots[0]), self.tables.columns[key]

    def orders(self, sides: Sequence[Expr]) -> Sequence[Place]:
        """The places of two columns, each read at another row, as whole numbers that compare as they do."""
        keys, tables = [self._key(side) for side in sides], self.tables
        distinct = dict(zip(keys, sides, strict=True))
        both = tuple(keys)
        if (both, both[0]) not in tables.columns:
            orders = value_orders([self._values(side) for side in distinct.values()])
            for (key, side), order in zip(distinct.items(), orders, strict=True):
                tables.add_column((both, key), order, order == NULL_ORDER, self._is_named(side))
        slots = [self._slot(self.test.slots(side)[0]) for side in sides]
        return [(slot, tables.columns[both, key]) for slot, key in zip(slots, keys, strict=True)]

    def _is_named(self, expr: Expr) -> bool:
        """Tell whether a column has values of names."""
        source = self.test.source(self.test.slots(expr)[0])
        return isinstance(source, tuple) and source[0] == NAME

    def _key(self, expr: Expr) -> object:
        """What tells the values of a column apart."""
        return (NAME, expr) if self._is_named(expr) else self.test.of_row(expr)

    def _values(self, expr: Expr) -> pa.Array:
        """The values of a column: of null, then of all rows or names."""
        slots = self.test.part.slots
        if self._is_named(expr):
            names = pa.array([None, *self.tables.plan.variables], pa.string())
            return evaluate(expr, SlotColumns(len(names), [names] * len(slots)))
        nulls = [pa.nulls(1, ARROW_TYPES[slot.type]) for slot in slots]
        of_rows = self.tables.rows.values(self.test.of_row(expr))
        return pa.concat_arrays([evaluate(expr, SlotColumns(1, nulls)), of_rows])

    def _constant(self, expr: Expr) -> int:
        cell = self.tables.cell()
        self.tables.pieces.append(_Piece(0, cell, *numbers_of(evaluate(expr, SlotColumns(1, [])))))
        return self.tables.add_slot(_Slot(kinds.CONSTANT, cell=cell))

    def read_rows(self) -> None:
        """Let the search ask for the rows that the condition reads, and for nothing else."""
        for slot in self.test.part.slots:
            if isinstance(slot, Navigation) and slot.of is not None:
                self._slot(slot)

    def _slot(self, slot: Slot) -> int:
        """The place of a slot; slots that are read at one row have one."""
        key = self.test.source(slot) or slot
        if key not in self.slots:
            self.slots[key] = self.tables.add_slot(self._line(slot))
        return self.slots[key]

    def _line(self, slot: Slot) -> _Slot:
        running, source = self.tables.running, self.test.source(slot)
        if isinstance(slot, MatchNumber):
            return _Slot(kinds.MATCH, cell=self.tables.cell())
        if isinstance(slot, Summary):
            return self._aggregate(slot)
        if isinstance(source, tuple) and source[0] == HERE:
            return _Slot(kinds.HERE, shift=slot.shift)
        kind = kinds.NAME if slot.of is None else kinds.ROW
        return _Slot(kind, running.set_of(slot.variables), slot.back, int(slot.first), slot.shift)

    def _aggregate(self, slot: Summary) -> _Slot:
        running = self.tables.running
        of = running.set_of(slot.variables)
        if slot.function in ("min", "max"):
            return _Slot(kinds.EXTREME, of, numbers=running.extreme(slot))
        count = _Slot(kinds.COUNT, of, cell=self.tables.cell(), known=running.known(slot))
        if slot.function == "count":
            return count
        assert slot.of is not None
        whole = kinds.SUM if slot.of.type == "BIGINT" else kinds.SUM_OF_DOUBLES
        kind = kinds.MEAN if slot.function == "avg" else whole
        first, digits, lowest, odd = running.total(slot)
        return count._replace(kind=kind, numbers=first, digits=digits, lowest=lowest, odd=int(odd))
