"""Expressions of ``MEASURES`` and ``DEFINE``: navigations and aggregates, and values over their slots."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from sqlglot import exp

from spark_pace.core.expr import ARROW_TYPES, Aggregate, Column, Expr, Literal, transform, walk
from spark_pace.core.plan.row_pattern import (
    Computed,
    Condition,
    MatchNumber,
    Measure,
    Navigation,
    Outside,
    Summary,
    slot_column,
    slot_name,
)
from spark_pace.errors import ConfigError, Problem
from spark_pace.rules.document.report import Report, quote
from spark_pace.rules.expressions.compile import compile_parts, compile_value
from spark_pace.rules.expressions.functions import FUNCTIONS
from spark_pace.rules.expressions.parsing import parse_expression
from spark_pace.rules.expressions.types import Wrong, averaged, over_values
from spark_pace.rules.row_patterns.clause import Named
from spark_pace.rules.row_patterns.columns import (
    NOT_READABLE,
    OPAQUE,
    ExpressionText,
    Names,
    RowValue,
    Slots,
    compiled,
    expression_text,
    is_beside_a_dot,
    plain_column,
    row_value,
)
from spark_pace.rules.row_patterns.words import Query, Reader, Word

COUNTED = ("FIRST", "LAST")
BEFORE, BEHIND = ("PREV", "LAG"), ("NEXT", "LEAD")
SHIFTED = (*BEFORE, *BEHIND)
SUMMARIES = ("COUNT", "SUM", "AVG", "MIN", "MAX")
OF_MATCH = ("CLASSIFIER", "MATCH_NUMBER", "MATCH_SEQUENCE_NUMBER")
CALLS = (*COUNTED, *SHIFTED, *SUMMARIES, *OF_MATCH)
MOST_OFFSET = 1_000_000
_UNITS = {
    *("MICROSECOND", "MILLISECOND", "SECOND", "MINUTE", "HOUR"),
    *("DAY", "WEEK", "MONTH", "QUARTER", "YEAR"),
}
Read = tuple[int, int, Expr]  # the places of a name in a text, and what it stands for
_PLACEHOLDER = re.compile(r"`(@\d+)`")


def begins_call(reader: Reader, at: int) -> bool:
    """Tell whether the word with this number begins a navigation or an aggregate."""
    words = reader.query.words
    called = at + 1 < reader.end and words[at + 1].is_sign("(")
    return called and words[at].upper in CALLS and not (at > reader.at and words[at - 1].is_sign("."))


class Calls:
    """Reads the navigations and aggregates of one expression, and notes their slots."""

    def __init__(self, known: Slots, variable: int | None, names: tuple[str, ...]) -> None:
        """Read an expression of a measure, or of the definition of a variable.

        Args:
            known: what the expression reads so far.
            variable: the variable that is defined; None in a measure.
            names: the names of variables.
        """
        self._slots = known
        self._variable = variable
        self._names = names

    def read(self, reader: Reader) -> Expr:
        """The call that comes next, RUNNING or FINAL before it included.

        Raises:
            ConfigError: it is wrong.
        """
        final = self._final(reader)
        name, inner = self._opened(reader)
        if name.upper in ("MATCH_NUMBER", "MATCH_SEQUENCE_NUMBER"):
            if not inner.is_done:
                inner.fail(f"must be nothing inside {name.upper}", f"Write {name.upper}().")
            counted = Summary("count", None, final, None, "BIGINT")
            return self._slots.slot(MatchNumber() if name.upper == "MATCH_NUMBER" else counted)
        if name.upper == "CLASSIFIER":
            return self._classifier(inner, final)
        if name.upper in SUMMARIES:
            return self._summary(name, inner, final)
        slot = (
            self._counted(name, inner, final) if name.upper in COUNTED else self._shifted(name, inner, final)
        )
        return self._slots.slot(slot)

    def _final(self, reader: Reader) -> bool:
        """Read RUNNING or FINAL."""
        word, final = reader.word, reader.takes("FINAL")
        if (final or reader.takes("RUNNING")) and reader.word.upper in SHIFTED:
            do = f"Write PREV({word.upper} LAST(x))."
            reader.fail(f"must be FIRST, LAST or an aggregate behind {word.upper}", do)
        if final and self._variable is not None:
            do = "A condition knows the match only up to its row: leave FINAL out."
            reader.query.fail(word, "must be RUNNING in DEFINE", "FINAL", do)
        return final

    def _opened(self, reader: Reader) -> tuple[Word, Reader]:
        """The name of a call, and what stands in its parentheses, if there are any."""
        name = reader.name("a navigation or an aggregate")
        alone = reader.is_done or not reader.word.is_sign("(")
        return name, Reader(reader.query, reader.at, reader.at) if alone else reader.inside()

    def _classifier(self, inner: Reader, final: bool) -> Expr:
        slot = self._classifier_slot(inner, final)
        own = self._variable is not None and (slot.variables is None or self._variable in slot.variables)
        if own and self._variable is not None:
            return Literal(self._names[self._variable], "STRING")
        return self._slots.slot(slot)

    def _classifier_slot(self, inner: Reader, final: bool) -> Navigation:
        """``CLASSIFIER()`` or ``CLASSIFIER(U)``, whose parentheses are open."""
        variables = None
        if not inner.is_done:
            name = inner.name("a variable or a union of variables")
            variables = self._variables(inner, name)
            if not inner.is_done:
                inner.fail("must be one name inside CLASSIFIER", "Write CLASSIFIER(U).")
        return Navigation(variables, False, 0, 0, final, None, "STRING")

    def _variables(self, reader: Reader, name: Word) -> tuple[int, ...] | None:
        return reader.query.checked(name, self._slots.names.variables_of(name.folded))

    def _counted(self, name: Word, inner: Reader, final: bool) -> Navigation:
        """``FIRST(value, offset)`` or ``LAST(value, offset)``."""
        value, offset = _with_offset(inner, name, 0)
        if value.word.upper == "CLASSIFIER" and begins_call(value, value.at):
            _, of = self._opened(value)
            slot = self._classifier_slot(of, final)
        else:
            slot = replace(self._value(value).of_last_row, final=final)
        _need_end(value)
        return replace(slot, first=name.upper == "FIRST", back=offset)

    def _shifted(self, name: Word, inner: Reader, final: bool) -> Navigation:
        """``PREV(value, offset)`` or ``NEXT(value, offset)``, where the value may be ``LAST(…)``."""
        value, offset = _with_offset(inner, name, 1)
        words = value.query.words
        marked = value.word.upper in ("RUNNING", "FINAL") and value.at + 1 < value.end
        at = value.at + marked
        if words[at].upper in COUNTED and begins_call(value, at):
            final = self._final(value)
            slot = self._counted(*self._opened(value), final)
            if slot.of is None:
                do = "Write FIRST or LAST of CLASSIFIER() alone."
                value.query.fail(name, "must navigate to a value of the input", "CLASSIFIER", do)
            _need_end(value)
        else:
            slot = self._value(value).of_last_row
        inside = inner.query.dialect.inside and self._variable is None
        return replace(slot, shift=-offset if name.upper in BEFORE else offset, inside=inside)

    def _value(self, reader: Reader) -> RowValue:
        for at in range(reader.at, reader.end):
            if begins_call(reader, at):
                word = reader.query.words[at]
                do = "FIRST and LAST alone stand inside PREV and NEXT, CLASSIFIER() inside FIRST and LAST."
                reader.query.fail(
                    word, "must not stand inside another navigation or aggregate", word.upper, do
                )
        value = row_value(reader, self._slots.names)
        reader.at = reader.end
        return value

    def _summary(self, name: Word, inner: Reader, final: bool) -> Expr:
        query, words = inner.query, inner.query.words[inner.at : inner.end]
        if inner.is_next("DISTINCT"):
            do = "Count with Spark from ALL ROWS PER MATCH, grouped by MATCH_NUMBER()."
            inner.fail(f"must be {name.upper} of all values", do)
        if name.upper == "COUNT" and _are_rows(words):
            variables = self._variables(inner, words[0]) if len(words) == 3 else None
            return self._slots.slot(Summary("count", variables, final, None, "BIGINT"))
        found = self._value(inner)
        if found.expr.type == OPAQUE:
            must = f"must be of values that expressions can compute with inside {name.upper}"
            query.fail(name, must, query.shown(words), "Name another column.")
        built = averaged(over_values(name.text.lower(), None, "x", found.expr.type))
        if isinstance(built, Wrong):
            query.fail(name, built.must, built.got, built.do)

        def slot(node: Expr) -> Expr | None:
            if not isinstance(node, Aggregate):
                return None
            function: Any = node.function
            return self._slots.slot(Summary(function, found.variables, final, found.expr, node.type))

        return transform(built, slot)


def _are_rows(words: Sequence[Word]) -> bool:
    """Tell whether COUNT of these words counts rows: of none, of ``*``, of ``A.*``, or of a constant."""
    if len(words) == 3:
        return words[1].is_sign(".") and words[2].is_sign("*")
    return not words or (len(words) == 1 and (words[0].is_sign("*") or words[0].kind in ("number", "text")))


def _with_offset(inner: Reader, name: Word, otherwise: int) -> tuple[Reader, int]:
    """The value of a navigation, and its offset."""
    value = inner.until(",")
    if value.is_done:
        inner.fail(f"must be a value inside {name.upper}", f"Write for example {name.upper}(A.x).")
    if not inner.takes_sign(","):
        return value, otherwise
    offset = inner.number()
    if offset is None or not inner.is_done or offset > MOST_OFFSET:
        must = f"must be a whole number from 0 to {MOST_OFFSET:,} behind the comma of {name.upper}"
        inner.fail(must, f"Write for example {name.upper}(A.x, 2).")
    return value, offset


def _need_end(value: Reader) -> None:
    if not value.is_done:
        got = quote(value.word.text)
        value.query.fail(
            value.word, "must be nothing behind the inner navigation", got, "Compute outside of it."
        )


def read_outside(text: ExpressionText, known: Slots, in_spark: Callable[[str], bool]) -> list[Read]:
    """What an expression reads, from the end of its text on; empty if Spark cannot compute it either.

    Raises:
        ConfigError: Spark has its functions, but it names something that is not there.
    """
    tree = parse_expression(text, Report())
    called = set() if tree is None else {node.name.lower() for node in tree.find_all(exp.Anonymous)}
    if tree is None or not all(name in FUNCTIONS or in_spark(name) for name in called):
        return []
    columns = [node for node in tree.find_all(exp.Column) if not _is_unit(node)]
    if any("start" not in part.meta for node in columns for part in node.parts):
        return []
    return sorted((_read(node, text, known) for node in columns), key=lambda one: -one[0])


def _is_unit(node: exp.Column) -> bool:
    """Tell whether a word is the unit of a function of times, as in ``timestampdiff(MINUTE, s, t)``."""
    return (
        isinstance(node.parent, exp.Anonymous)
        and node.parent.expressions[0] is node
        and (len(node.parts) == 1 and node.name.upper() in _UNITS)
    )


def _read(node: exp.Column, text: ExpressionText, known: Slots) -> Read:
    """What ``x`` or ``A.x`` stands for; what stands behind, as of a struct, is Spark's."""
    parts, names = node.parts, known.names
    start, end = parts[0].meta["start"], parts[0].meta["end"] + 1
    if parts[0].name in known.placeholders:
        return start, end, known.placeholders[parts[0].name]
    variable = names.variable(parts[0].name) if len(parts) > 1 else None
    part = parts[0] if variable is None else parts[1]
    column = names.column(part.name)
    if isinstance(column, Wrong):
        place = str(text.at(part.meta["start"]))
        raise ConfigError((Problem(place, column.must, column.got, column.do),))
    kind = names.type_of(column)
    variables = None if variable is None else names.variables[variable]
    value = RowValue(variables, Column(None, column, kind))
    return start, part.meta["end"] + 1, known.slot(value.of_last_row)


@dataclass(frozen=True)
class Expressions:
    """The expressions of a clause.

    Attributes:
        names: what names mean.
        variables: the names of the variables, by their numbers.
        in_spark: tells whether Spark has a function; None where there is no Spark.
    """

    names: Names
    variables: tuple[str, ...]
    in_spark: Callable[[str], bool] | None

    def measure(self, one: Named) -> tuple[tuple[Measure, ...], Outside | None]:
        """A measure; or those that it is computed of, and how, where Spark computes it.

        Raises:
            ConfigError: its expression is wrong.
        """
        known, opening = Slots(self.names), one.text.word
        plain = plain_column(one.text, self.names)
        if plain is not None:
            return (self._measure(one.name.text, known.slot(plain.of_last_row), known),), None
        text = self._text(replace(one.text), known, None)
        alone = known.placeholders.get(text.text.strip("`")) if text.text.startswith("`@") else None
        if alone is not None:
            return (self._measure(one.name.text, alone, known),), None
        try:
            self._refuse_opaque(one.text.query, opening, known)
            expr: Expr = _compiled(lambda report: compile_value(text, known.scope, report), known)
        except ConfigError:
            found = self._by_spark(one.name.text, text, known)
            if found is None:
                raise
            return found
        return (self._measure(one.name.text, expr, known),), None

    def _by_spark(
        self, name: str, text: ExpressionText, known: Slots
    ) -> tuple[tuple[Measure, ...], Outside] | None:
        """A measure that Spark computes; None if it cannot."""
        found = None if self.in_spark is None else read_outside(text, known, self.in_spark)
        if not found:
            return None
        sql, measures = text.text, []
        for number, (start, end, expr) in enumerate(found):
            measures.append(self._measure(f"@{name}.{number}", expr, known))
            sql = f"{sql[:start]}`@{name.replace('`', '``')}.{number}`{sql[end:]}"
        return tuple(measures), Outside(name, sql, tuple(one.name for one in measures))

    def _measure(self, name: str, expr: Expr, known: Slots) -> Measure:
        """A measure that is computed here, or is a value of a column."""
        taken = self._taken(name, expr, known) if isinstance(expr, Column) else None
        if taken is not None:
            return taken
        kind = pa.timestamp("us", "UTC") if expr.type == "TIMESTAMP" else ARROW_TYPES[expr.type]
        return Measure(name, _computed(expr, known), None, kind)

    def condition(self, one: Named, variable: int) -> Condition:
        """The condition of a variable.

        Raises:
            ConfigError: its expression is wrong.
        """
        known, opening = Slots(self.names), one.text.word
        text = self._text(replace(one.text), known, variable)
        self._refuse_opaque(one.text.query, opening, known)
        found = _compiled(lambda report: compile_parts(text, known.scope, report), known)
        parts = [_computed(expr, known) for _, expr in found]
        fixed = [part for part in parts if all(_is_fixed(slot, variable) for slot in part.slots)]
        return Condition(tuple(fixed), tuple(part for part in parts if part not in fixed))

    def _text(self, reader: Reader, known: Slots, variable: int | None) -> ExpressionText:
        """The expression with names of slots in place of navigations and aggregates."""
        if reader.is_done:
            reader.fail("must be an expression", "Write a condition or a value.")
        calls = Calls(known, variable, self.variables)

        def replaced(rest: Reader) -> str | None:
            if rest.word.upper == "OVER" and rest.query.words[rest.at + 1].is_sign("("):
                must = "must not stand in MATCH_RECOGNIZE, where the rows of the match are the window"
                rest.fail(must, "Leave it out, or compute the window function in a subquery.")
            marked = rest.word.upper in ("RUNNING", "FINAL") and rest.at + 1 < rest.end
            begin, alone = rest.at, rest.word.upper == "CLASSIFIER" and not is_beside_a_dot(rest)
            alone &= isinstance(self.names.column(rest.word.text), Wrong)  # as Snowflake writes it
            if not alone and not begins_call(rest, rest.at + marked):
                return None
            name, expr = f"@{len(known.placeholders)}", calls.read(rest)
            known.placeholders[name] = expr
            known.written[name] = rest.query.text[
                rest.query.words[begin].start : rest.query.words[rest.at - 1].end
            ]
            return f"`{name}`"

        return expression_text(reader, replaced)

    def _taken(self, name: str, alone: Column, known: Slots) -> Measure | None:
        """A measure that is a value of a column as it is, or the least or greatest one."""
        slot = known.slots[int(alone.attribute[1:])]
        if not isinstance(slot, Navigation | Summary) or not isinstance(slot.of, Column):
            return None
        column = slot.of.attribute
        kind = self.names.schema.field(column).type
        value = Computed(slot_column(0, slot), (slot,))
        if isinstance(slot, Navigation):
            return Measure(name, value, column, kind)
        if slot.function in ("min", "max") and slot.type != "TIMESTAMP":
            return Measure(name, value, None, kind)
        return None

    def _refuse_opaque(self, query: Query, opening: Word, known: Slots) -> None:
        for slot in known.slots:
            if slot.type == OPAQUE and isinstance(slot, Navigation) and isinstance(slot.of, Column):
                kind = self.names.schema.field(slot.of.attribute).type
                do = "It can stand alone in MEASURES; else take a part of it in a subquery."
                query.fail(opening, NOT_READABLE, f"{quote(slot.of.attribute)}, {kind}", do)


def _compiled(read: Callable[[Report], Any], known: Slots) -> Any:
    """What the compiler makes; messages show navigations and aggregates as they are written.

    Raises:
        ConfigError: something is wrong.
    """
    try:
        return compiled(read)
    except ConfigError as error:
        shown = [
            replace(one, got=_PLACEHOLDER.sub(lambda found: known.written.get(found[1], found[0]), one.got))
            for one in error.problems
        ]
        raise ConfigError(tuple(shown)) from None


def _is_fixed(slot: object, variable: int) -> bool:
    """Tell whether a slot of a condition reads a row at a fixed distance from the row that is tested."""
    if not isinstance(slot, Navigation) or slot.first or slot.back or slot.of is None:
        return False
    return slot.variables is None or variable in slot.variables


def _computed(expr: Expr, known: Slots) -> Computed:
    """An expression with the slots that it reads, numbered anew."""
    used = list(dict.fromkeys(node.attribute for node in walk(expr) if isinstance(node, Column)))
    slots = tuple(known.slots[int(name[1:])] for name in used)
    numbers = {name: slot_name(number) for number, name in enumerate(used)}

    def numbered(node: Expr) -> Expr | None:
        return replace(node, attribute=numbers[node.attribute]) if isinstance(node, Column) else None

    return Computed(transform(expr, numbered), slots)
