"""Hypothesis strategies: optional components in first and in last place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import strategies as st

from spark_pace.core.expr import Previous
from spark_pace.core.match.contexts import CONTEXTS as NAMED
from spark_pace.core.match.contexts.contexts import takes_optional_last
from spark_pace.core.plan.rule import Component, Conjunct, Context, Pattern, Rule, Times
from tests.support.disjunction_strategies import with_disjunctions
from tests.support.draws import chosen, composite, some
from tests.support.ending_strategies import with_endings
from tests.support.form_strategies import Spans, opening, rules_of
from tests.support.further_strategies import with_further
from tests.support.grouped_strategies import (
    OPTIONAL,
    Named,
    group_conjuncts,
    grouped_patterns,
    shared_conjuncts,
    value,
)
from tests.support.strategies import CONTEXTS, condition, predicates

WITH_OPTIONAL_LAST = [one for one in CONTEXTS if takes_optional_last(NAMED[str(one)].way)]


def with_optional_first(draw: st.DrawFn, pattern: Pattern) -> Pattern:
    """The pattern with an optional component in first place: its first one if that is a group, or one more.

    Behind it stands a component for one event.
    """
    first, times = pattern.components[0], chosen(draw, OPTIONAL)
    behind = [one for one in pattern.components[1:] if not one.negated]
    if first.times is not None and behind and behind[0].times is None:
        return replace(pattern, components=(replace(first, times=times), *pattern.components[1:]))
    if first.times is not None:
        more = [Component("o", draw(predicates()), times), Component("n", draw(predicates()))]
    else:
        more = [Component("o", draw(predicates()), times)]
    where = tuple(
        replace(one, components=tuple(index + len(more) for index in one.components)) for one in pattern.where
    )
    return replace(pattern, components=(*more, *pattern.components), where=where)


def with_another_form(draw: st.DrawFn, pattern: Pattern) -> Pattern:
    """The pattern, by chance with another form of groups."""
    other = draw(st.integers(0, 5))
    if other == 0:
        return with_disjunctions(draw, pattern)
    if other == 1:
        return with_endings(draw, pattern)
    return with_further(draw, pattern) if other == 2 else pattern


@composite
def optional_first_rules(
    draw: st.DrawFn, contexts: Sequence[Context] = CONTEXTS, spans: Spans = None
) -> Rule:
    """A rule with an optional component in first place; by chance with other forms of groups."""
    pattern = draw(grouped_patterns(chosen(draw, contexts), in_span=spans is not None))
    pattern = with_optional_first(draw, pattern)
    return rules_of(draw, with_another_form(draw, pattern), spans)


def with_optional_last(draw: st.DrawFn, pattern: Pattern, *, opened: bool = False) -> Pattern:
    """The pattern with an optional component more in last place, behind one for one event."""
    kept = list(pattern.components)
    while kept[-1].negated:
        kept.pop()
    if kept[-1].times is not None and (len(kept) == 1 or kept[-2].negated or draw(st.booleans())):
        kept.append(Component("m", draw(predicates())))
    elif kept[-1].times is not None:
        kept.pop()
    follows = pattern.contiguity == "relaxed" and draw(st.integers(0, 3)) == 0
    last = Component("l", draw(predicates()), chosen(draw, (*OPTIONAL, Times(0, 1))))
    kept.append(replace(last, follows="strict") if follows else last)
    if last.times == Times(0, 1) and draw(st.integers(0, 3)):
        pattern = replace(pattern, taking=conditions_of_last(draw, kept, opened=opened))
    named = range(len(kept) - 1)
    where = tuple(
        one
        for one in pattern.where
        if {*one.components} <= {*named}
        and all(pattern.components[index] == kept[index] for index in one.components)
    )
    within = pattern.within
    if within is None:  # of a span, or what strict contiguity implies
        return replace(pattern, components=tuple(kept), where=where)
    if within.events is not None and within.time_us is None:
        within = replace(within, events=within.events + draw(st.integers(0, 2)))
    return replace(pattern, components=tuple(kept), where=where, within=within)


def conditions_of_last(
    draw: st.DrawFn, components: Sequence[Component], *, opened: bool
) -> tuple[Conjunct, ...]:
    """One or two conditions that say which event the last component takes.

    `opened`: some read the event that opened the span.
    """
    *others, last = (
        Named(index, one.name, "one" if one.times is None else "group")
        for index, one in enumerate(components)
        if not one.negated
    )
    found = list[Conjunct]()
    for _ in range(chosen(draw, [1, 1, 2])):
        kind = chosen(draw, ["shared", "shared", "shared", "alone", "prev", *["open"] * opened * 2])
        own, before = value(draw, last), others[-1]
        if kind == "alone":
            found.append(group_conjuncts(draw, last))
        elif kind == "open":
            compared = chosen(draw, ["=", "<=", "<>"])
            found.append(Conjunct(condition(compared, own, opening("x")), (last.index,)))
        elif kind == "prev" and before.kind == "one":
            earlier = Previous("x", draw(st.integers(1, 2)), "BIGINT", before.name)
            compared = chosen(draw, ["=", "<=", ">"])
            found.append(Conjunct(condition(compared, own, earlier), (before.index, last.index)))
        else:
            named = some(draw, others, 1, min(2, len(others)))
            found.append(shared_conjuncts(draw, (*named, last)))
    return tuple(found)


@composite
def optional_last_rules(
    draw: st.DrawFn, contexts: Sequence[Context] = CONTEXTS, spans: Spans = None, opened: bool = False
) -> Rule:
    """A rule with an optional component in last place; by chance with other forms of groups.

    `opened`: some conditions read the event that opened the span.
    """
    context = chosen(draw, [one for one in contexts if one in WITH_OPTIONAL_LAST])
    pattern = draw(grouped_patterns(context, in_span=spans is not None))
    if draw(st.integers(0, 3)) == 0:
        pattern = with_optional_first(draw, pattern)
    pattern = with_optional_last(draw, pattern, opened=opened)
    return rules_of(draw, with_another_form(draw, pattern), spans)
