"""The conditions of `where`: over several components, over a group, or part of a component's predicate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from spark_pace.core.expr import Aggregate, Call, Column, Expr, conjunction, walk
from spark_pace.core.plan.rule import Component, Conjunct, EventSchema
from spark_pace.rules.document.report import Place, Report, quote
from spark_pace.rules.document.section import Section
from spark_pace.rules.expressions.compile import compile_parts
from spark_pace.rules.expressions.parsing import as_expression
from spark_pace.rules.expressions.scopes import MatchScope


def read_where(rule: Section, schema: EventSchema, components: Sequence[Component]) -> list[Conjunct]:
    """The conditions, in order, each with all components that it names; what is wrong is left out."""
    node = rule.node("where")
    scalar = None if node is None else as_expression(node, rule.report)
    if scalar is None:
        return []
    scope = MatchScope(schema, tuple(components))
    found = []
    for place, expr in compile_parts(scalar, scope, rule.report):
        named = {part.component for part in walk(expr) if isinstance(part, (Column, Aggregate))}
        indices = tuple(index for index, component in enumerate(components) if component.name in named)
        if indices:
            _check_negated([components[index] for index in indices], place, rule.report)
            found.append(Conjunct(expr, indices))
        else:
            rule.report.add(
                scalar.place,
                "must be about components",
                quote(scalar.text),
                "Remove the condition that is always the same.",
            )
    return found


def _check_negated(named: Sequence[Component], place: Place, report: Report) -> None:
    names = [component.name for component in named if component.negated]
    if len(names) > 1:
        report.add(
            place,
            "must name at most one negated component",
            " and ".join(map(quote, names)),
            "An event forbids by itself: write a condition for each of them, joined by and.",
        )


def assigned(
    components: Sequence[Component], conjuncts: Sequence[Conjunct]
) -> tuple[tuple[Component, ...], tuple[Conjunct, ...]]:
    """The components with the conditions that are part of their predicates, and the conditions that are left.

    A condition over one component that stands for one event, or is negated, is part of its predicate.
    """
    own: dict[int, list[Expr]] = {}
    left = []
    for conjunct in conjuncts:
        index = conjunct.components[0]
        if len(conjunct.components) == 1 and components[index].times is None:
            own.setdefault(index, []).append(_without_component(conjunct.expr))
        else:
            left.append(conjunct)
    complete = tuple(
        replace(component, predicate=conjunction([component.predicate, *own.get(index, [])]))
        for index, component in enumerate(components)
    )
    return complete, tuple(left)


def _without_component(expr: Expr) -> Expr:
    if isinstance(expr, Column):
        return replace(expr, component=None)
    if isinstance(expr, Call):
        return replace(expr, arguments=tuple(_without_component(argument) for argument in expr.arguments))
    return expr
