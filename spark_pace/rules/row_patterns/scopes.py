"""What names mean in an expression of ``MEASURES`` or ``DEFINE``, and in what is computed of one row."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from spark_pace.core.expr import Column, Expr
from spark_pace.core.plan.row_pattern import Navigation, Slot, slot_column
from spark_pace.core.plan.rule import EventSchema
from spark_pace.rules.document.report import quote
from spark_pace.rules.expressions.types import Wrong
from spark_pace.rules.row_patterns.columns import OPAQUE, Names

NOT_READABLE = "must be a column of a type that expressions can compute with"


def readable(names: Names, attribute: str) -> Column | Wrong:
    """A column whose values can be computed with."""
    column = names.column(attribute)
    if isinstance(column, Wrong):
        return column
    kind = names.type_of(column)
    if kind == OPAQUE:
        got = f"{quote(column)}, {names.schema.field(column).type}"
        do = "It can stand alone, as in LAST(A.x) AS x; else take a part of it in a subquery."
        return Wrong(NOT_READABLE, got, do)
    return Column(None, column, kind)


def no_aggregate(function: str) -> Wrong:
    """What is wrong with an aggregate that row patterns do not have."""
    do = "Compute it with Spark from ALL ROWS PER MATCH, grouped by MATCH_NUMBER()."
    return Wrong("must be one of the aggregates count, sum, avg, min and max", f"{function}(...)", do)


@dataclass
class _Scope:
    """What the scopes of row patterns share.

    Attributes:
        names: the columns and variables.
    """

    names: Names
    looks_back: ClassVar[bool] = False

    @property
    def schema(self) -> EventSchema:
        """The columns of the input."""
        return self.names.events

    def is_prefix(self, name: str) -> bool:
        """Tell whether a name before a dot is that of a variable."""
        return self.names.variable(name) is not None

    def aggregate(self, function: str, prefix: str | None, attribute: str) -> Wrong:
        """Refused: the known ones are slots by now, and any other would be nested or is not known."""
        return no_aggregate(function)

    def inside(self, function: str) -> Wrong:
        """Refused likewise."""
        return no_aggregate(function)


@dataclass
class MatchScope(_Scope):
    """The rows of a match: names are values of its last row, or of a variable's last row, so far.

    Attributes:
        slots: what has been named so far.
        placeholders: what stands for navigations and aggregates, by their names in the text.
        written: how these are written, for messages.
    """

    slots: list[Slot] = field(default_factory=list)
    placeholders: dict[str, Expr] = field(default_factory=dict)
    written: dict[str, str] = field(default_factory=dict)

    def slot(self, slot: Slot) -> Column:
        """The node that reads a slot."""
        if slot not in self.slots:
            self.slots.append(slot)
        return slot_column(self.slots.index(slot), slot)

    def column(self, prefix: str | None, attribute: str) -> Expr | Wrong:
        """The value of the last row so far."""
        if prefix is None and attribute in self.placeholders:
            return self.placeholders[attribute]
        variables, column = self.names.variables_of(prefix), readable(self.names, attribute)
        if isinstance(variables, Wrong):
            return variables
        if isinstance(column, Wrong):
            return column
        return self.slot(Navigation(variables, False, 0, 0, False, column, column.type))


@dataclass
class RowScope(_Scope):
    """One row: what navigations and aggregates read of it. All names have the same variable, or none.

    Attributes:
        prefixes: the names before dots that were met, None for names without one.
    """

    prefixes: set[str | None] = field(default_factory=set)

    def column(self, prefix: str | None, attribute: str) -> Column | Wrong:
        """A value of the row."""
        variables = self.names.variables_of(prefix)
        if isinstance(variables, Wrong):
            return variables
        self.prefixes.add(None if prefix is None else self.names.variable(prefix))
        return readable(self.names, attribute)
