"""Expressions of ``MEASURES`` and ``DEFINE``: from words to values over slots."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from spark_pace.core.expr import ARROW_TYPES, Column, Expr, transform, walk
from spark_pace.core.plan.row_pattern import (
    Computed,
    Condition,
    Measure,
    Navigation,
    Outside,
    Summary,
    slot_column,
    slot_name,
)
from spark_pace.errors import ConfigError
from spark_pace.rules.document.report import Report, quote
from spark_pace.rules.expressions.compile import compile_parts, compile_value
from spark_pace.rules.row_patterns.clause import Named
from spark_pace.rules.row_patterns.columns import OPAQUE, Names
from spark_pace.rules.row_patterns.expression_text import (
    ExpressionText,
    compiled,
    expression_text,
)
from spark_pace.rules.row_patterns.navigation import Calls, begins_call, is_classifier_alone
from spark_pace.rules.row_patterns.outside import read_outside
from spark_pace.rules.row_patterns.reader import Reader
from spark_pace.rules.row_patterns.row_values import plain_column
from spark_pace.rules.row_patterns.scopes import NOT_READABLE, MatchScope
from spark_pace.rules.row_patterns.words import Query, Word

_PLACEHOLDER = re.compile(r"`(@\d+)`")


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
        scope, opening = MatchScope(self.names), one.text.word
        text = self._text(replace(one.text), scope, None)
        alone = scope.placeholders.get(text.text.strip("`")) if text.text.startswith("`@") else None
        if alone is not None:
            return (self._measure(one.name.text, alone, scope),), None
        try:
            self._refuse_opaque(one.text.query, opening, scope)
            expr: Expr = _compiled(lambda report: compile_value(text, scope, report), scope)
        except ConfigError:
            found = self._by_spark(one.name.text, text, scope)
            if found is None:
                raise
            return found
        return (self._measure(one.name.text, expr, scope),), None

    def _by_spark(
        self, name: str, text: ExpressionText, scope: MatchScope
    ) -> tuple[tuple[Measure, ...], Outside] | None:
        """A measure that Spark computes; None if it cannot."""
        found = None if self.in_spark is None else read_outside(text, scope, self.in_spark)
        if not found:
            return None
        sql, measures = text.text, []
        for number, (start, end, expr) in enumerate(found):
            measures.append(self._measure(f"@{name}.{number}", expr, scope))
            sql = f"{sql[:start]}`@{name.replace('`', '``')}.{number}`{sql[end:]}"
        return tuple(measures), Outside(name, sql, tuple(one.name for one in measures))

    def _measure(self, name: str, expr: Expr, scope: MatchScope) -> Measure:
        """A measure that is computed here, or is a value of a column."""
        taken = self._taken(name, expr, scope) if isinstance(expr, Column) else None
        if taken is not None:
            return taken
        kind = pa.timestamp("us", "UTC") if expr.type == "TIMESTAMP" else ARROW_TYPES[expr.type]
        return Measure(name, _computed(expr, scope), None, kind)

    def condition(self, one: Named, variable: int) -> Condition:
        """The condition of a variable.

        Raises:
            ConfigError: its expression is wrong.
        """
        scope, opening = MatchScope(self.names), one.text.word
        text = self._text(replace(one.text), scope, variable)
        self._refuse_opaque(one.text.query, opening, scope)
        found = _compiled(lambda report: compile_parts(text, scope, report), scope)
        parts = [_computed(expr, scope) for _, expr in found]
        fixed = [all(_is_fixed(slot, variable) for slot in part.slots) for part in parts]
        return Condition(
            tuple(part for part, is_fixed in zip(parts, fixed, strict=True) if is_fixed),
            tuple(part for part, is_fixed in zip(parts, fixed, strict=True) if not is_fixed),
        )

    def _text(self, reader: Reader, scope: MatchScope, variable: int | None) -> ExpressionText:
        """The expression with names of slots in place of navigations and aggregates."""
        if reader.is_done:
            reader.fail("must be an expression", "Write a condition or a value.")
        calls = Calls(scope, variable, self.variables)

        def placeholder(expr: Expr, words: Sequence[Word]) -> str:
            name = f"@{len(scope.placeholders)}"
            scope.placeholders[name] = expr
            scope.written[name] = reader.query.text[words[0].start : words[-1].end]
            return f"`{name}`"

        def replaced(rest: Reader) -> str | None:
            if rest.word.upper == "OVER" and rest.query.words[rest.at + 1].is_sign("("):
                must = "must not stand in MATCH_RECOGNIZE, where the rows of the match are the window"
                rest.fail(must, "Leave it out, or compute the window function in a subquery.")
            marked = rest.word.upper in ("RUNNING", "FINAL") and rest.at + 1 < rest.end
            begin, called = rest.at, begins_call(rest, rest.at + marked)
            if not called and not is_classifier_alone(rest, self.names):
                return None
            expr = calls.read(rest) if called else calls.read_alone(rest)
            return placeholder(expr, rest.query.words[begin : rest.at])

        plain = plain_column(reader, self.names)
        if plain is None:
            return expression_text(reader, replaced)
        slot = scope.slot(Navigation(plain.variables, False, 0, 0, False, plain.expr, plain.expr.type))

        def whole(rest: Reader) -> str | None:
            words, rest.at = rest.query.words[rest.at : rest.end], rest.end
            return placeholder(slot, words)

        return expression_text(reader, whole)

    def _taken(self, name: str, alone: Column, scope: MatchScope) -> Measure | None:
        """A measure that is a value of a column as it is, or the least or greatest one."""
        slot = scope.slots[int(alone.attribute[1:])]
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

    def _refuse_opaque(self, query: Query, opening: Word, scope: MatchScope) -> None:
        for slot in scope.slots:
            if slot.type == OPAQUE and isinstance(slot, Navigation) and isinstance(slot.of, Column):
                kind = self.names.schema.field(slot.of.attribute).type
                do = "It can stand alone in MEASURES; else take a part of it in a subquery."
                query.fail(opening, NOT_READABLE, f"{quote(slot.of.attribute)}, {kind}", do)


def _compiled(read: Callable[[Report], Any], scope: MatchScope) -> Any:
    """What the compiler makes; messages show navigations and aggregates as they are written.

    Raises:
        ConfigError: something is wrong.
    """
    try:
        return compiled(read)
    except ConfigError as error:
        shown = [
            replace(one, got=_PLACEHOLDER.sub(lambda found: scope.written.get(found[1], found[0]), one.got))
            for one in error.problems
        ]
        raise ConfigError(tuple(shown)) from None


def _is_fixed(slot: object, variable: int) -> bool:
    """Tell whether a slot of a condition reads a row at a fixed distance from the row that is tested."""
    if not isinstance(slot, Navigation) or slot.first or slot.back or slot.of is None:
        return False
    return slot.variables is None or variable in slot.variables


def _computed(expr: Expr, scope: MatchScope) -> Computed:
    """An expression with the slots that it reads, numbered anew."""
    used = list(dict.fromkeys(node.attribute for node in walk(expr) if isinstance(node, Column)))
    slots = tuple(scope.slots[int(name[1:])] for name in used)
    numbers = {name: slot_name(number) for number, name in enumerate(used)}

    def numbered(node: Expr) -> Expr | None:
        return replace(node, attribute=numbers[node.attribute]) if isinstance(node, Column) else None

    return Computed(transform(expr, numbered), slots)
