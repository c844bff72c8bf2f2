"""Hypothesis strategies: groups that end, by `until` or `follows: strict`, in every place that takes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import assume
from hypothesis import strategies as st

from spark_pace.core.expr import Expr
from spark_pace.core.plan.rule import Context, Ending, Pattern, Rule
from spark_pace.core.tables import MOST_IN_OPENED_SPANS
from spark_pace.rules.pattern.components import with_bits
from tests.support.disjunction_strategies import with_disjunctions
from tests.support.draws import built_once, chosen, composite, some
from tests.support.form_strategies import Spans, open_conditions, previous_conditions, rules_of
from tests.support.grouped_strategies import grouped_patterns, rare
from tests.support.strategies import CONTEXTS, column, condition, number, predicates


@built_once
def ends_of_groups() -> st.SearchStrategy[Expr]:
    """A condition at which a group may end: mostly one that few events satisfy."""
    by_value = st.builds(lambda n: condition(">=", column("y"), number(n)), st.integers(1, 3))
    return st.one_of(rare(), rare(), by_value, predicates())


def with_endings(
    draw: st.DrawFn, pattern: Pattern, changes: Sequence[st.SearchStrategy[Expr]] = ()
) -> Pattern:
    """The pattern with ends of one or all of its groups; `changes`: other conditions for some of them."""
    groups = [index for index, one in enumerate(pattern.components) if one.times is not None]
    assume(groups)
    ending = some(draw, groups)
    components = list(pattern.components)
    for index in sorted(ending):
        how = chosen(draw, ["until", "until", "follows", "both"])
        free = pattern.contiguity == "relaxed" and not (index and pattern.components[index - 1].negated)
        if how != "until" and free:
            components[index] = replace(components[index], follows="strict")
        if how != "follows" or not free:
            until = draw(chosen(draw, [ends_of_groups(), *changes]))
            components[index] = replace(components[index], until=Ending(until, 0))
    absent = [absence.component for absence in pattern.absences]
    count = len(absent) + sum(len(one.members) for one in components)
    assume(len(components) + count + len(ending) <= MOST_IN_OPENED_SPANS)
    return replace(pattern, components=tuple(with_bits([*components, *absent])[: len(components)]))


@composite
def ending_rules(
    draw: st.DrawFn,
    contexts: Sequence[Context] = CONTEXTS,
    spans: Spans = None,
    *,
    either: bool = False,
    opened: bool = False,
) -> Rule:
    """A rule with a group that has `until`, or whose events directly follow each other.

    Args:
        draw: draws.
        contexts: the contexts to choose from.
        spans: the spans to stand in.
        either: whether there are disjunctions beside the groups.
        opened: whether some ends look at the event that opened the span.
    """
    context = chosen(draw, contexts)
    pattern = draw(grouped_patterns(context, in_span=spans is not None))
    if either:
        pattern = with_disjunctions(draw, pattern)
    changes = [previous_conditions()] * draw(st.integers(0, 1)) + [open_conditions()] * opened
    return rules_of(draw, with_endings(draw, pattern, changes), spans)
