"""Hypothesis strategies: rules whose conditions over components, and fields, look at events before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import strategies as st

from spark_pace.core.expr import Call, Column, Expr, Previous
from spark_pace.core.plan.members import as_stated, asked, names_of, united
from spark_pace.core.plan.rule import Conjunct, Context, EmitField, Pattern, Rule
from tests.oracle.expressions import conjuncts_of
from tests.support.disjunction_strategies import with_disjunctions
from tests.support.draws import chosen, composite, shuffled, some
from tests.support.form_strategies import (
    COMPARISONS,
    Spans,
    any_patterns,
    joined,
    previous_conditions,
    rules_of,
)
from tests.support.strategies import CONTEXTS, column, condition, needs_window, windows
from tests.support.streams import SECOND


def singles(pattern: Pattern) -> list[int]:
    return [index for index, one in enumerate(pattern.components) if one.times is None]


def looked_back(expr: Expr, names: Sequence[str], backs: Sequence[int]) -> Expr:
    """The expression with ``prev`` around each attribute of these components."""
    if isinstance(expr, Column) and expr.component in names:
        back = backs[names.index(expr.component)]
        return Previous(expr.attribute, back, expr.type, expr.component)
    if isinstance(expr, Call):
        return replace(expr, arguments=tuple(looked_back(one, names, backs) for one in expr.arguments))
    return expr


def more_conjuncts(draw: st.DrawFn, pattern: Pattern) -> list[Conjunct]:
    """A comparison of two components, of which one is negated at most; none where there are no two."""
    components, pool = pattern.components, singles(pattern)
    pairs = [
        (one, other)
        for one in pool
        for other in pool
        if one < other and not (components[one].negated and components[other].negated)
    ]
    if not pairs:
        return []
    first, second = chosen(draw, pairs)
    left, right = (components[index].name for index in shuffled(draw, [first, second]))
    compared = condition(chosen(draw, COMPARISONS), column("x", left), column("x", right))
    return [Conjunct(compared, (first, second))]


def with_previous(draw: st.DrawFn, pattern: Pattern, *, in_span: bool) -> Pattern:
    """The pattern with ``prev`` in some of its conditions over components."""
    components = pattern.components
    where = [*pattern.conditions, *(more_conjuncts(draw, pattern) if draw(st.booleans()) else [])]
    names = [name for index in singles(pattern) for name in names_of(components[index])]
    looking = []
    for conjunct in where:
        for part in conjuncts_of(as_stated(conjunct)):
            looks = some(draw, names, 0) if names else []
            backs = [chosen(draw, [1, 1, 1, 2, 3]) for _ in looks]
            looking.append(asked(looked_back(part, looks, backs), components))
    order = (one for one in pattern.where if one.is_order)
    pattern = replace(pattern, where=(*united(looking, components), *order))
    if pattern.within is None and not in_span and needs_window(pattern.context, pattern.where):
        pattern = replace(pattern, within=draw(windows()))
    return pattern


@composite
def previous_values_rules(
    draw: st.DrawFn,
    contexts: Sequence[Context] = CONTEXTS,
    spans: Spans = None,
    *,
    conjunction: bool = False,
    either: bool = False,
) -> Rule:
    """A rule with ``prev`` in conditions over components, in fields, or in both.

    Args:
        draw: draws.
        contexts: the contexts to choose from.
        spans: the spans to stand in.
        conjunction: whether the pattern is a conjunction where the context has them.
        either: whether some components are disjunctions.
    """
    context = chosen(draw, contexts)
    pattern = draw(any_patterns(context, in_span=spans is not None, conjunction=conjunction))
    if either:
        pattern = with_disjunctions(draw, pattern)
    pattern = with_previous(draw, pattern, in_span=spans is not None)
    rule = rules_of(draw, pattern, spans)
    if context.selection == "all":
        return rule
    fields = []
    for index in singles(pattern) if draw(st.booleans()) else []:
        for name in () if pattern.components[index].negated else names_of(pattern.components[index]):
            before = Previous("x", chosen(draw, [1, 2]), "BIGINT", name)
            field = f"before_{name}".replace(" ", "_")
            fields.append(EmitField(field, "BIGINT", Call("+", (before, column("x", name)), "BIGINT")))
            fields.append(EmitField(f"{field}_id", "STRING", Previous("id", 1, "STRING", name)))
    emit = tuple(replace(one, name=one.name.replace(" ", "_")) for one in rule.emit)
    return replace(rule, emit=(*emit, *fields))


@st.composite
def filtered_back(draw: st.DrawFn, plain: Rule) -> Rule:
    """The rule with a filter that looks at events before, whether these pass it or not."""
    condition = draw(previous_conditions())
    if plain.filter is not None:
        condition = joined(draw, plain.filter, condition)
    plain = replace(plain, filter=condition, forget_key_after_us=None)
    if plain.pattern is None or plain.span is not None:
        return plain
    # nothing forbids for ever where keys are never forgotten
    absences = tuple(
        replace(one, within_us=5 * SECOND) if one.within_us is None else one for one in plain.pattern.absences
    )
    return replace(plain, pattern=replace(plain.pattern, absences=absences))


@st.composite
def valued_back(draw: st.DrawFn, plain: Rule) -> Rule:
    """The rule with ``prev`` in some of its conditions over components, if it has a pattern."""
    if plain.pattern is None:
        return plain
    return replace(plain, pattern=with_previous(draw, plain.pattern, in_span=plain.span is not None))
