"""What expressions of a clause name: columns of the input, by variables of the pattern, in Spark's words."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import pyarrow as pa

from spark_pace.core.expr import Column, Expr
from spark_pace.core.match.row_patterns.rows import expression_type
from spark_pace.core.plan.row_pattern import Navigation, Slot, slot_column
from spark_pace.core.plan.rule import EventSchema, Field
from spark_pace.errors import ConfigError, Problem
from spark_pace.rules.document.document import Scalar
from spark_pace.rules.document.report import Place, Report, TooManyError, nearest, quote
from spark_pace.rules.expressions.compile import compile_value
from spark_pace.rules.expressions.scopes import Scope
from spark_pace.rules.expressions.types import Wrong
from spark_pace.rules.row_patterns.words import Reader, as_spark

OPAQUE = "?"  # the type of columns that can only be taken as they are
UNKNOWN_FUNCTION = "must be a known function"  # what the compiler of expressions says
ELSEWHERE = "Spark's own functions can be computed of the input in a subquery, or in the query around."
Replace = Callable[[Reader], "str | None"]  # reads words and gives what stands for them; None: it reads none
NOT_READABLE = "must be a column of a type that expressions can compute with"


@dataclass(frozen=True)
class Names:
    """What names mean.

    Attributes:
        schema: the input.
        variables: of each variable, and each union of them, the numbers of its variables.
        event_time: a column of times, whatever its type; None: there is none.
    """

    schema: pa.Schema
    variables: Mapping[str, tuple[int, ...]]
    event_time: str | None = None

    @property
    def events(self) -> EventSchema:
        """The columns that expressions read, as the compiler of expressions knows them."""
        typed = [(one.name, expression_type(one.type)) for one in self.schema]
        return EventSchema(tuple(Field(name, kind) for name, kind in typed if kind is not None), "")

    def column(self, name: str) -> str | Wrong:
        """The column of this name; as in Spark, small letters and capitals are not told apart."""
        found = [one for one in self.schema.names if one.lower() == name.lower()]
        if len(found) > 1 and found.count(name) != 1:
            got, do = f"{quote(name)}, which several columns have", "Rename one of them in a subquery."
            return Wrong("must be the name of one column", got, do)
        if not found:
            return Wrong("must be a column of the input", quote(name), nearest(name, self.schema.names))
        return name if name in found else found[0]

    def type_of(self, column: str) -> str:
        """The type of a column in expressions."""
        return expression_type(self.schema.field(column).type) or OPAQUE

    def is_time(self, column: str) -> bool:
        """Tell whether a column has times."""
        return column == self.event_time or self.type_of(column) in ("TIMESTAMP", "DATE")

    def variable(self, name: str) -> str | None:
        """The name of a variable or union as it is told apart; None if there is none."""
        return next((one for one in (name, name.upper()) if one in self.variables), None)

    def variables_of(self, name: str | None) -> tuple[int, ...] | Wrong | None:
        """The variables of a name before a dot; None stands for all rows."""
        if name is None:
            return None
        known = self.variable(name)
        if known is None:
            must = "must name a variable of the pattern, or a union of them"
            return Wrong(must, quote(name), nearest(name, self.variables))
        return self.variables[known]


@dataclass(frozen=True)
class ExpressionText(Scalar):
    """An expression; `starts` are the places of its words in the text, `places` those in the query."""

    starts: tuple[int, ...] = ()
    places: tuple[Place, ...] = ()

    def at(self, offset: int) -> Place:
        """The place of the word at an offset of the text."""
        return self.places[max(0, bisect_right(self.starts, offset) - 1)]


def expression_text(reader: Reader, replaced: Replace) -> ExpressionText:
    """The text of all words of a reader, of which some are replaced."""
    query, starts, places = reader.query, [], []
    text, behind = "", reader.word.start
    first = query.place(behind)
    while not reader.is_done:
        word = reader.word
        text += " " * (word.start > behind)
        starts.append(len(text))
        places.append(query.place(word.start))
        found = replaced(reader)
        if found is None:
            found = as_spark(query, word)
            if word.kind == "word" and is_beside_a_dot(reader):
                found = f"`{found}`"  # so that a variable may have the name of a keyword
            reader.at += 1
        text += found
        behind = query.words[reader.at - 1].end
    return ExpressionText(first, text, text, None, starts=tuple(starts), places=tuple(places))


def is_beside_a_dot(reader: Reader) -> bool:
    """Tell whether the next word is a variable or a column of a pair, such as A.x."""
    words, at = reader.query.words, reader.at
    return (at > 0 and words[at - 1].is_sign(".")) or (at + 1 < reader.end and words[at + 1].is_sign("."))


def compiled(read: Callable[[Report], Any]) -> Any:
    """What a compiler of expressions makes, which notes in a report what is wrong.

    Raises:
        ConfigError: something is.
    """
    report, found = Report(), None
    with suppress(TooManyError):
        found = read(report)
    if found is None or not report.clean:
        raise ConfigError(tuple(map(_advised, report.problems)))
    return found


def _advised(problem: Problem) -> Problem:
    """Say of a function that is not known here that Spark may know it."""
    if problem.must != UNKNOWN_FUNCTION:
        return problem
    return replace(problem, do=f"{problem.do} {ELSEWHERE}")


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


def _scope(names: Names, column: Callable[[str | None, str], Expr | Wrong]) -> Scope:
    """A scope in which `column` says what an attribute is, whatever stands before it."""
    other: Any = column  # which is wrong with names that are no variables
    return Scope(names.events, {}, partial(column, None), other, _no_aggregate)


def _no_aggregate(function: str, prefix: str | None, attribute: str) -> Wrong:
    """The known aggregates are slots by now, and any other would be nested or is not known."""
    do = "Compute it with Spark from ALL ROWS PER MATCH, grouped by MATCH_NUMBER()."
    return Wrong("must be one of the aggregates count, sum, avg, min and max", f"{function}(...)", do)


@dataclass(frozen=True)
class RowValue:
    """A value of a row.

    Attributes:
        variables: the variables of which rows count, by their numbers; None: all rows.
        expr: what is computed of the row.
    """

    variables: tuple[int, ...] | None
    expr: Expr

    @property
    def of_last_row(self) -> Navigation:
        """The value of the last of these rows, so far."""
        return Navigation(self.variables, False, 0, 0, False, self.expr, self.expr.type)


@dataclass
class Slots:
    """What an expression reads of the rows of a match.

    Attributes:
        names: the columns and variables.
        slots: what has been named so far.
        placeholders: what stands for navigations and aggregates, by their names in the text.
        written: how these are written, for messages.
    """

    names: Names
    slots: list[Slot] = field(default_factory=list)
    placeholders: dict[str, Expr] = field(default_factory=dict)
    written: dict[str, str] = field(default_factory=dict)

    def slot(self, slot: Slot) -> Column:
        """The node that reads a slot."""
        if slot not in self.slots:
            self.slots.append(slot)
        return slot_column(self.slots.index(slot), slot)

    @property
    def scope(self) -> Scope:
        """Names are values of the last row, or of a variable's last row, so far."""
        return _scope(self.names, self._column)

    def _column(self, prefix: str | None, attribute: str) -> Expr | Wrong:
        if prefix is None and attribute in self.placeholders:
            return self.placeholders[attribute]
        variables, column = self.names.variables_of(prefix), readable(self.names, attribute)
        if isinstance(variables, Wrong):
            return variables
        if isinstance(column, Wrong):
            return column
        return self.slot(RowValue(variables, column).of_last_row)


def row_value(reader: Reader, names: Names) -> RowValue:
    """The value that all words of a reader say.

    Raises:
        ConfigError: it is wrong.
    """
    return plain_column(reader, names) or _computed(reader, names)


def plain_column(reader: Reader, names: Names) -> RowValue | None:
    """``x`` or ``A.x``, of any type; None for anything else."""
    words = reader.query.words[reader.at : reader.end]
    is_pair = len(words) == 3 and words[1].is_sign(".") and words[0].is_name
    if not words or not words[-1].is_name or not (len(words) == 1 or is_pair):
        return None
    variables = names.variables_of(words[0].folded if is_pair else None)
    column = names.column(words[-1].text)
    if isinstance(column, Wrong) or isinstance(variables, Wrong):
        return None
    return RowValue(variables, Column(None, column, names.type_of(column)))


def _computed(reader: Reader, names: Names) -> RowValue:
    """What is computed of one row: all names in it are of the same variable, or of none."""
    prefixes, opening = set[str | None](), reader.word

    def column(prefix: str | None, attribute: str) -> Column | Wrong:
        variables = names.variables_of(prefix)
        if isinstance(variables, Wrong):
            return variables
        prefixes.add(None if prefix is None else names.variable(prefix))
        return readable(names, attribute)

    text = expression_text(reader, lambda _: None)
    expr: Expr = compiled(lambda report: compile_value(text, _scope(names, column), report))
    if len(prefixes) != 1:
        told = " and ".join(sorted("all rows" if one is None else one for one in prefixes))
        must = "must be about the rows of one variable inside a navigation or an aggregate"
        do = "Write the same variable before each column, and name one at least."
        reader.query.fail(opening, must, told or "no column", do)
    (prefix,) = prefixes
    return RowValue(None if prefix is None else names.variables[prefix], expr)
