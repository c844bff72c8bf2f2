"""Aggregates: what stands in their parentheses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from sqlglot import exp

from spark_pace.core.expr import Aggregate, Column, Expr, is_single, of_component, walk
from spark_pace.core.expr.canonical_text import canonical_text
from spark_pace.errors import counted
from spark_pace.rules.document.report import quote
from spark_pace.rules.expressions.attributes import ONE_VALUE, over_values, shown
from spark_pace.rules.expressions.names import name_of
from spark_pace.rules.expressions.parsing import distinct_count
from spark_pace.rules.expressions.scopes import Scope
from spark_pace.rules.expressions.types import Wrong

MOST_COLLECTED = 1_000
_DISTINCT_COUNTS = ("count_distinct", "countdistinct", "distinct_count", "nunique")
# of aggregates with a second argument: the most it may be, what they must be, and what to do
_SECOND = {
    "percentile": (
        1,
        "must be percentile(x, p) with a constant p from 0 to 1",
        "Write for example percentile(x, 0.95).",
    ),
    "collect_list": (
        MOST_COLLECTED,
        f"must be collect_list(x, n) with a whole number n from 1 to {MOST_COLLECTED:,}",
        "Write for example collect_list(x, 20): the first 20 values in stream order.",
    ),
}

Compile = Callable[[exp.Expr, Scope], "Expr | None"]  # None: it is reported as wrong


def aggregate(
    function: str, arguments: Sequence[exp.Expr], scope: Scope, compiled: Compile
) -> Aggregate | Wrong | None:
    """What an aggregate of these arguments stands for; None where something in it is reported as wrong."""
    at: float | Wrong | None = None
    if function in _SECOND:
        at, arguments = _second(function, arguments), arguments[:1]
    if isinstance(at, Wrong):
        return at
    if len(arguments) == 1 and isinstance(arguments[0], exp.Distinct):
        if function != "count":
            do = f"Write {function} without distinct, or count(distinct x)."
            return Wrong("must be count(distinct x)", f"{function}(distinct x)", do)
        function, arguments = "count_distinct", arguments[0].expressions
    if len(arguments) != 1:
        usage = "count(distinct x)" if function == "count_distinct" else f"{function}(x)"
        return Wrong(f"must be {usage}", counted(len(arguments), "argument"), "Give one value of each event.")
    if isinstance(arguments[0], exp.Star):
        counts = function == "count"
        do = "All events are counted by count(*)."
        return scope.aggregate(function, None, "*") if counts else Wrong(f"must be {function}(x)", "*", do)
    value = arguments[0].unnest()  # without parentheses
    name = name_of(value, scope)
    found = _computed(function, value, scope, compiled) if name is None else scope.aggregate(function, *name)
    return found if at is None or not isinstance(found, Aggregate) else replace(found, at=at)


def counts_distinct(function: str, arguments: Sequence[exp.Expr]) -> str | None:
    """What to write for a function of other languages that counts different values; None for another."""
    if function not in _DISTINCT_COUNTS:
        return None
    return distinct_count(", ".join(of.sql(dialect="spark") for of in arguments))


def _second(function: str, arguments: Sequence[exp.Expr]) -> float | Wrong:
    """The second argument of ``percentile`` or ``collect_list``, a constant."""
    most, must, do = _SECOND[function]
    if len(arguments) != 2:
        return Wrong(must, counted(len(arguments), "argument"), do)
    at = arguments[1]
    is_number = isinstance(at, exp.Literal) and not at.is_string
    whole_enough = is_number and (function == "percentile" or (at.name.isdecimal() and int(at.name) > 0))
    if not whole_enough or not 0 <= float(at.name) <= most:
        return Wrong(must, quote(at.sql(dialect="spark")), do)
    return int(at.name) if function == "collect_list" else float(at.name)


def _computed(function: str, value: exp.Expr, scope: Scope, compiled: Compile) -> Aggregate | Wrong | None:
    """The aggregate of what is computed of each event."""
    inside = scope.inside(function)
    if isinstance(inside, Wrong):
        return inside
    of = compiled(value, inside)
    if of is None:
        return None
    components = {node.component for node in walk(of) if isinstance(node, Column)}
    if not components:
        must, do = f"must name an attribute inside {shown(function)}", "Events are counted by count."
        return Wrong(must, quote(canonical_text(of)), do)
    if len(components) > 1:
        got, do = " and ".join(sorted(map(str, components))), "It is computed of one event after the other."
        return Wrong(f"must be about one component inside {shown(function)}", got, do)
    if not is_single(of.type):
        return Wrong(f"must be of single values inside {shown(function)}", of.type, ONE_VALUE)
    (component,) = components
    of = of_component(of, None)
    return over_values(function, component, f"@({canonical_text(of)})", of.type, of)
