"""Measures that Spark computes: what they read of matches stands in columns before."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from spark_pace.core.expr import Column, Expr
from spark_pace.core.plan.row_pattern import Navigation
from spark_pace.errors import ConfigError, Problem
from spark_pace.rules.document.report import Report
from spark_pace.rules.expressions.functions import FUNCTIONS
from spark_pace.rules.expressions.parsing import parse_expression
from spark_pace.rules.expressions.types import Wrong
from spark_pace.rules.row_patterns.expression_text import ExpressionText
from spark_pace.rules.row_patterns.scopes import MatchScope

_UNITS = {
    *("MICROSECOND", "MILLISECOND", "SECOND", "MINUTE", "HOUR"),
    *("DAY", "WEEK", "MONTH", "QUARTER", "YEAR"),
}
Read = tuple[int, int, Expr]  # the places of a name in a text, and what it stands for


def read_outside(text: ExpressionText, scope: MatchScope, in_spark: Callable[[str], bool]) -> list[Read]:
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
    return sorted((_read(node, text, scope) for node in columns), key=lambda one: -one[0])


def _is_unit(node: exp.Column) -> bool:
    """Tell whether a word is the unit of a function of times, as in ``timestampdiff(MINUTE, s, t)``."""
    return (
        isinstance(node.parent, exp.Anonymous)
        and node.parent.expressions[0] is node
        and (len(node.parts) == 1 and node.name.upper() in _UNITS)
    )


def _read(node: exp.Column, text: ExpressionText, scope: MatchScope) -> Read:
    """What ``x`` or ``A.x`` stands for; what stands behind, as of a struct, is Spark's."""
    parts, names = node.parts, scope.names
    start, end = parts[0].meta["start"], parts[0].meta["end"] + 1
    if parts[0].name in scope.placeholders:
        return start, end, scope.placeholders[parts[0].name]
    variable = names.variable(parts[0].name) if len(parts) > 1 else None
    part = parts[0] if variable is None else parts[1]
    column = names.column(part.name)
    if isinstance(column, Wrong):
        place = str(text.at(part.meta["start"]))
        raise ConfigError((Problem(place, column.must, column.got, column.do),))
    kind = names.type_of(column)
    variables = None if variable is None else names.variables[variable]
    of = Column(None, column, kind)
    return start, part.meta["end"] + 1, scope.slot(Navigation(variables, False, 0, 0, False, of, kind))
