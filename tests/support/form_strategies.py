"""Hypothesis strategies: conjunctions, attributes of earlier events, and the opening event in patterns.

Each strategy takes the contexts to choose from, and the spans to stand in, if any.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise

from hypothesis import strategies as st

from spark_pace.core.expr import Aggregate, Call, Column, Expr, Previous
from spark_pace.core.plan.rule import Component, Conjunct, Context, EmitField, Pattern, Rule, Span
from spark_pace.core.plan.shape import in_turn
from tests.support.draws import chosen, composite, shuffled, some
from tests.support.grouped_strategies import grouped_emits, grouped_patterns
from tests.support.strategies import (
    ATTRIBUTES,
    CONTEXTS,
    column,
    condition,
    conjuncts,
    joined_patterns,
    number,
    patterns,
    predicates,
    schemas,
    text,
    varied,
    window_or_none,
    windows,
)

Spans = st.SearchStrategy[Span] | None
Change = st.SearchStrategy[Expr]
IN_CONJUNCTION = tuple(context for context in CONTEXTS if context.selection != "next")
COMPARISONS = ("=", "=", "<", ">", "<=", ">=", "<>")


# ---------------------------------------------------------------- conjunctions


@composite
def conjunctive_patterns(
    draw: st.DrawFn, context: Context, *, in_span: bool = False, close_window: bool = False
) -> Pattern:
    """A conjunction of two to four components, by chance with conditions over several, and sequences."""
    close = "window" if close_window else "completion"
    if draw(st.integers(0, 4)) == 0:
        equal = draw(joined_patterns(context, close_window=close_window))
        return with_sequences(draw, replace(equal, order="conjunction"))
    names = tuple("pqrs"[: chosen(draw, [2, 2, 2, 2, 2, 3, 3, 3, 4])])
    components = tuple(Component(name, draw(predicates())) for name in names)
    where = tuple(draw(conjuncts(names)) for _ in range(chosen(draw, [0, 0, 1, 1, 1, 2])))
    length = window_or_none() if in_span else windows()
    return with_sequences(draw, Pattern(components, where, draw(length), context, close, order="conjunction"))


def with_sequences(draw: st.DrawFn, pattern: Pattern) -> Pattern:
    """The conjunction, by chance with sequences in it, of components that are listed one after the other."""
    if draw(st.booleans()):
        return pattern
    count = len(pattern.components)
    bounds = sorted({0, count, *some(draw, range(1, count), 0)})
    inside = (range(first, last) for first, last in pairwise(bounds))
    order = (one for each in inside for one in in_turn(pattern.components, each))
    return replace(pattern, where=(*pattern.where, *order))


@composite
def conjunctive_rules(draw: st.DrawFn, contexts: Sequence[Context] = CONTEXTS, spans: Spans = None) -> Rule:
    """A conjunction in one of the contexts that have it, by chance with ``close: window``."""
    context = chosen(draw, [context for context in contexts if context in IN_CONJUNCTION])
    close_window = spans is None and context == CONTEXTS[0] and draw(st.integers(0, 2)) == 2
    pattern = draw(conjunctive_patterns(context, in_span=spans is not None, close_window=close_window))
    return rules_of(draw, pattern, spans)


def rules_of(draw: st.DrawFn, pattern: Pattern, spans: Spans) -> Rule:
    """A rule with the pattern, in one of the spans if there are any."""
    span = None if spans is None else draw(spans)
    plain = Rule("rule", draw(schemas()), None, (), pattern, span, None, "selection", grouped_emits(pattern))
    return varied(draw, plain)


@composite
def any_patterns(draw: st.DrawFn, context: Context, *, in_span: bool, conjunction: bool) -> Pattern:
    """A pattern that has none of the changes below; by chance with groups, negations or neighbours."""
    if conjunction and context in IN_CONJUNCTION:
        return draw(conjunctive_patterns(context, in_span=in_span))
    if draw(st.booleans()):
        return draw(patterns(context, in_span=in_span))
    return draw(grouped_patterns(context, in_span=in_span))


def changed(draw: st.DrawFn, old: Expr, changes: Change) -> Expr:
    """The condition joined with another one, or the other one alone."""
    return joined(draw, old, draw(changes))


def joined(draw: st.DrawFn, old: Expr, other: Expr) -> Expr:
    how = chosen(draw, ["and", "and", "or", "alone"])
    return other if how == "alone" else condition(how, *shuffled(draw, [old, other]))


def changed_components(draw: st.DrawFn, pattern: Pattern, changes: Callable[[], Change]) -> Pattern:
    """The pattern with other predicates of one or more components, negated ones and groups included."""
    places = some(draw, range(len(pattern.components)), 1, 2)
    components = tuple(
        replace(one, predicate=changed(draw, one.predicate, changes())) if index in places else one
        for index, one in enumerate(pattern.components)
    )
    return replace(pattern, components=components)


# ---------------------------------------------------------------- attributes of earlier events


def previous(attribute: str, back: int) -> Previous:
    return Previous(attribute, back, ATTRIBUTES[attribute])


@composite
def previous_conditions(draw: st.DrawFn) -> Expr:
    """A condition on an event and one, or two, before it."""
    back = chosen(draw, [1, 1, 1, 1, 2, 2, 3])
    earlier = chosen(draw, ["x", "x", "x", "y"])
    kind = chosen(draw, ["compared", "compared", "compared", "of type", "missing", "sum", "key"])
    if kind == "of type":
        function = chosen(draw, ["=", "<>"])
        return condition(function, previous("type", back), text(chosen(draw, "abc")))
    if kind == "missing":
        return condition("is_null", previous(chosen(draw, ["id", "k", "x"]), back))
    if kind == "sum":
        total = Call("+", (previous("x", back), previous(earlier, draw(st.integers(1, 3)))), "BIGINT")
        return condition(chosen(draw, COMPARISONS), column("x"), total)
    if kind == "key":
        return condition("<=>", column("k"), previous("k", back))
    return condition(chosen(draw, COMPARISONS), column("x"), previous(earlier, back))


@composite
def previous_rules(
    draw: st.DrawFn,
    contexts: Sequence[Context] = CONTEXTS,
    spans: Spans = None,
    conjunction: bool = False,
) -> Rule:
    """A rule with a component whose condition looks at events before."""
    context = chosen(draw, contexts)
    plain = draw(any_patterns(context, in_span=spans is not None, conjunction=conjunction))
    return rules_of(draw, changed_components(draw, plain, previous_conditions), spans)


# ---------------------------------------------------------------- the opening event


def opening(attribute: str) -> Column:
    return Column("open", attribute, ATTRIBUTES[attribute])


@composite
def open_conditions(draw: st.DrawFn) -> Expr:
    """A condition on an event and the one that opened its span, or on the latter alone."""
    kind = chosen(draw, ["compared", "compared", "compared", "key", "not itself", "alone"])
    if kind == "key":
        return condition("=", column("k"), opening("k"))
    if kind == "not itself":
        return condition("<>", column("id"), opening("id"))
    attribute = chosen(draw, ["x", "y"])
    if kind == "alone":
        return condition(chosen(draw, ["<>", "<="]), opening(attribute), number(1))
    return condition(chosen(draw, COMPARISONS), column("x"), opening(attribute))


def open_conjuncts(draw: st.DrawFn, pattern: Pattern) -> Conjunct:
    """A condition over one group or two components, one of them perhaps negated, and the opening event."""
    groups = [index for index, one in enumerate(pattern.components) if one.times]
    pairs = [
        (first, second)
        for second, one in enumerate(pattern.components)
        for first, other in enumerate(pattern.components[:second])
        if not (one.negated and other.negated)
    ]
    named = chosen(draw, [*((group,) for group in groups), *pairs])
    values: list[Expr] = []
    for index in named:
        component = pattern.components[index]
        of_group = Aggregate(chosen(draw, ["sum", "last"]), component.name, "x", "BIGINT")
        values.append(of_group if component.times else column("x", component.name))
    total = values[0] if len(values) == 1 else Call("+", (values[0], values[1]), "BIGINT")
    compared = condition(chosen(draw, COMPARISONS), total, opening(chosen(draw, ["x", "y"])))
    if len(values) == 2 and draw(st.booleans()):
        either = condition("=", values[0], values[1])
        other = condition("<>", opening("k"), text("u"))
        return Conjunct(condition("or", either, chosen(draw, [compared, other])), named)
    return Conjunct(compared, named)


def has_pairs(pattern: Pattern) -> bool:
    return sum(not one.negated for one in pattern.components) > 1 or any(
        one.times for one in pattern.components
    )


@composite
def open_rules(
    draw: st.DrawFn,
    spans: st.SearchStrategy[Span],
    contexts: Sequence[Context] = CONTEXTS,
    conjunction: bool = False,
    earlier: bool = False,
) -> Rule:
    """A pattern that reads the opening event in a component, a condition or a field.

    `earlier`: some components look at events before as well.
    """
    context = chosen(draw, contexts)
    pattern = draw(any_patterns(context, in_span=True, conjunction=conjunction))
    places = some(draw, ["when", "when", "where", "emit"])
    if earlier:
        pattern = changed_components(draw, pattern, previous_conditions)
    if "when" in places or not has_pairs(pattern):
        pattern = changed_components(draw, pattern, open_conditions)
    elif "where" in places:
        conjunct = open_conjuncts(draw, pattern)
        pattern = replace(pattern, where=(*chosen(draw, [pattern.where, ()]), conjunct))
    rule = rules_of(draw, pattern, spans)
    return replace(rule, emit=(*rule.emit, *open_fields(pattern))) if "emit" in places else rule


def open_fields(pattern: Pattern) -> tuple[EmitField, ...]:
    first = pattern.components[0]
    grouped = first.times is not None or pattern.context.selection == "all"
    least = Aggregate("min", first.name, "x", "BIGINT") if grouped else column("x", first.name)
    return (
        EmitField("opener", "STRING", opening("id")),
        EmitField("more", "BIGINT", Call("-", (least, opening("x")), "BIGINT")),
    )
