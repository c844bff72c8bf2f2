"""Reads navigations and aggregates: ``PREV(LAST(A.x, 1), 2)``, ``FINAL SUM(A.x)``, ``CLASSIFIER()``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from spark_pace.core.expr import Aggregate, Expr, Literal, transform
from spark_pace.core.plan.row_pattern import MatchNumber, Navigation, Summary
from spark_pace.rules.document.report import quote
from spark_pace.rules.expressions.attributes import over_values
from spark_pace.rules.expressions.digits import averaged
from spark_pace.rules.expressions.types import Wrong
from spark_pace.rules.row_patterns.columns import OPAQUE, Names
from spark_pace.rules.row_patterns.expression_text import is_beside_a_dot
from spark_pace.rules.row_patterns.reader import Reader
from spark_pace.rules.row_patterns.row_values import RowValue, row_value
from spark_pace.rules.row_patterns.scopes import MatchScope
from spark_pace.rules.row_patterns.words import Word

COUNTED = ("FIRST", "LAST")
BEFORE, BEHIND = ("PREV", "LAG"), ("NEXT", "LEAD")
SHIFTED = (*BEFORE, *BEHIND)
SUMMARIES = ("COUNT", "SUM", "AVG", "MIN", "MAX")
OF_MATCH = ("CLASSIFIER", "MATCH_NUMBER", "MATCH_SEQUENCE_NUMBER")
CALLS = (*COUNTED, *SHIFTED, *SUMMARIES, *OF_MATCH)
MOST_OFFSET = 1_000_000


def begins_call(reader: Reader, at: int) -> bool:
    """Tell whether the word with this number begins a navigation or an aggregate."""
    words = reader.query.words
    called = at + 1 < reader.end and words[at + 1].is_sign("(")
    return called and words[at].upper in CALLS and not (at > reader.at and words[at - 1].is_sign("."))


def is_classifier_alone(reader: Reader, names: Names) -> bool:
    """Tell whether ``CLASSIFIER`` comes next alone, as Snowflake writes it, and is no column."""
    alone = reader.word.upper == "CLASSIFIER" and not is_beside_a_dot(reader)
    return alone and isinstance(names.column(reader.word.text), Wrong)


class Calls:
    """Reads the navigations and aggregates of one expression, and adds their slots to its scope."""

    def __init__(self, scope: MatchScope, variable: int | None, names: tuple[str, ...]) -> None:
        """Read an expression of a measure, or of the definition of a variable.

        Args:
            scope: the scope of the expression.
            variable: the variable that is defined; None in a measure.
            names: the names of variables.
        """
        self._scope = scope
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
            return self._scope.slot(MatchNumber() if name.upper == "MATCH_NUMBER" else counted)
        if name.upper == "CLASSIFIER":
            return self._classifier(inner, final)
        if name.upper in SUMMARIES:
            return self._summary(name, inner, final)
        slot = (
            self._counted(name, inner, final) if name.upper in COUNTED else self._shifted(name, inner, final)
        )
        return self._scope.slot(slot)

    def _final(self, reader: Reader) -> bool:
        """Read RUNNING or FINAL."""
        word = reader.word
        if not reader.takes("FINAL"):
            reader.takes("RUNNING")
            if reader.word.upper in SHIFTED and word is not reader.word:
                reader.fail(
                    "must be FIRST, LAST or an aggregate behind RUNNING", "Write PREV(RUNNING LAST(x))."
                )
            return False
        if self._variable is not None:
            do = "A condition knows the match only up to its row: leave FINAL out."
            reader.query.fail(word, "must be RUNNING in DEFINE", "FINAL", do)
        if reader.word.upper in SHIFTED:
            reader.fail("must be FIRST, LAST or an aggregate behind FINAL", "Write NEXT(FINAL LAST(x)).")
        return True

    def _opened(self, reader: Reader) -> tuple[Word, Reader]:
        name = reader.name("a navigation or an aggregate")
        return name, reader.inside()

    def read_alone(self, reader: Reader) -> Expr:
        """``CLASSIFIER`` without parentheses, which comes next."""
        reader.at += 1
        return self._classifier(Reader(reader.query, reader.at, reader.at), False)

    def _classifier(self, inner: Reader, final: bool) -> Expr:
        slot = self._classifier_slot(inner, final)
        own = self._variable is not None and (slot.variables is None or self._variable in slot.variables)
        if own and self._variable is not None:
            return Literal(self._names[self._variable], "STRING")
        return self._scope.slot(slot)

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
        found = self._scope.names.variables_of(name.folded)
        if isinstance(found, Wrong):
            reader.query.fail(name, found.must, found.got, found.do)
        return found

    def _counted(self, name: Word, inner: Reader, final: bool) -> Navigation:
        """``FIRST(value, offset)`` or ``LAST(value, offset)``."""
        value, offset = _with_offset(inner, name, 0)
        if value.word.upper == "CLASSIFIER" and begins_call(value, value.at):
            _, of = self._opened(value)
            slot = self._classifier_slot(of, final)
        else:
            found = self._value(value)
            slot = Navigation(found.variables, False, 0, 0, final, found.expr, found.expr.type)
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
            found = self._value(value)
            slot = Navigation(found.variables, False, 0, 0, False, found.expr, found.expr.type)
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
        value = row_value(reader, self._scope.names)
        reader.at = reader.end
        return value

    def _summary(self, name: Word, inner: Reader, final: bool) -> Expr:
        query, words = inner.query, inner.query.words[inner.at : inner.end]
        if inner.is_next("DISTINCT"):
            do = "Count with Spark from ALL ROWS PER MATCH, grouped by MATCH_NUMBER()."
            inner.fail(f"must be {name.upper} of all values", do)
        if name.upper == "COUNT" and _are_rows(words):
            variables = self._variables(inner, words[0]) if len(words) == 3 else None
            return self._scope.slot(Summary("count", variables, final, None, "BIGINT"))
        if name.upper == "COUNT" and words[-1].is_sign("*"):
            query.fail(words[0], "must be COUNT(*) or COUNT(A.*)", query.shown(words), "Write one of these.")
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
            return self._scope.slot(Summary(function, found.variables, final, found.expr, node.type))

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
