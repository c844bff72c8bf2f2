"""Hypothesis strategies: optional components in first place, which a match may begin without."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import strategies as st

from spark_pace.core.plan.component import Component
from spark_pace.core.plan.rule import Context, Pattern, Rule
from tests.support.disjunction_strategies import with_disjunctions
from tests.support.ending_strategies import with_endings
from tests.support.form_strategies import Spans, rules_of
from tests.support.further_strategies import with_further
from tests.support.grouped_strategies import OPTIONAL, grouped_patterns
from tests.support.strategies import CONTEXTS, predicates


@st.composite
def with_optional_first(draw: st.DrawFn, pattern: Pattern) -> Pattern:
    """The pattern with an optional component in first place: its first one if that is a group, or one more.

    Behind it stands a component for one event.
    """
    first, times = pattern.components[0], draw(st.sampled_from(OPTIONAL))
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


@st.composite
def optional_first_rules(
    draw: st.DrawFn, contexts: Sequence[Context] = CONTEXTS, spans: Spans = None
) -> Rule:
    """A rule with an optional component in first place; by chance with other forms of groups."""
    pattern = draw(grouped_patterns(draw(st.sampled_from(contexts)), in_span=spans is not None))
    pattern = draw(with_optional_first(pattern))
    other = draw(st.integers(0, 5))
    if other == 0:
        pattern = draw(with_disjunctions(pattern))
    elif other == 1:
        pattern = draw(with_endings(pattern))
    elif other == 2:
        pattern = draw(with_further(pattern))
    return draw(rules_of(pattern, spans))
