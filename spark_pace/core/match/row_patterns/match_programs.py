"""Conditions that read the match so far, as programs that the compiled search runs as it takes rows.

What a condition computes of one row, of the name of a variable, or of constants is computed of all of them
before, whatever functions it has, and is a column. A program joins such columns, each read at a row that only
the search knows, and aggregates, which the search writes to cells of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from spark_pace.core.columns import NULL_ORDER, Bools, Ints
from spark_pace.core.expr import ARROW_TYPES, Expr, evaluate
from spark_pace.core.match.row_patterns import match_so_far as kinds
from spark_pace.core.match.row_patterns.match_tests import HERE, NAME, Source, Test, tests_of
from spark_pace.core.match.row_patterns.rows import Rows, SlotColumns
from spark_pace.core.match.row_patterns.running_numbers import FarApartError, RunningNumbers
from spark_pace.core.match.row_patterns.search_arrays import SoFar
from spark_pace.core.match.search.program_lines import Line, Place, as_programs, numbers_of, write
from spark_pace.core.plan.row_pattern import MatchNumber, RowPattern, Slot, Summary
from spark_pace.core.ranks import value_orders


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


def so_far_of(plan: RowPattern, rows: Rows) -> SoFar | None:
    """What conditions read of the match so far, without room for rows; None if they cannot be programs."""
    tests = list(tests_of(plan))
    if not all(one.is_program for one in tests):
        return None
    tables = _Tables(plan, rows, RunningNumbers(rows, len(plan.variables)))
    try:
        texts = [tables.text(one) for one in tests]
    except FarApartError:
        return None
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
        """The program of a condition."""
        lines = list[Line]()
        write(test.part.expr, _Text(test, self), lines)
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
