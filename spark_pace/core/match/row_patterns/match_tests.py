"""What the parts of a condition that reads the match so far need: a row, a name, or an aggregate."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

from spark_pace.core.expr import Call, Column, Expr, Literal, transform, walk
from spark_pace.core.match.row_patterns.plain_conditions import TooLargeError, plain
from spark_pace.core.match.row_patterns.running_numbers import is_running
from spark_pace.core.match.search.program_lines import is_writable
from spark_pace.core.plan.row_pattern import Computed, MatchNumber, RowPattern, Slot, Summary

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
