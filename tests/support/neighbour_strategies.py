"""Hypothesis strategies: repeated components that directly follow repeated or optional ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import strategies as st

from spark_pace.core.plan.rule import Component, Context, Ending, Pattern, Rule
from spark_pace.rules.pattern.components import with_bits
from tests.support.draws import chosen, composite
from tests.support.ending_strategies import ends_of_groups
from tests.support.form_strategies import Spans, open_conditions, rules_of
from tests.support.further_strategies import with_further
from tests.support.grouped_strategies import grouped_patterns
from tests.support.strategies import CONTEXTS


def _before_another(components: Sequence[Component]) -> list[int]:
    """The groups behind which another one comes, and before which none does."""
    places = [index for index, one in enumerate(components) if not one.negated]
    grouped = [components[index].times is not None for index in places]
    triples = zip(places, [False, *grouped], grouped, [*grouped[1:], False], strict=False)
    return [index for index, before, own, behind in triples if own and behind and not before]


def _with_ends(draw: st.DrawFn, pattern: Pattern, *, opened: bool) -> Pattern:
    """The pattern with an end of a group behind which another one comes."""
    components = list(pattern.components)
    for index in _before_another(components):
        free = pattern.contiguity == "relaxed" and not (index and components[index - 1].negated)
        if free and draw(st.integers(0, 2)) == 0:
            components[index] = replace(components[index], follows="strict")
        else:
            ends = [ends_of_groups(), *[open_conditions()] * opened]
            components[index] = replace(components[index], until=Ending(draw(chosen(draw, ends)), 0))
    return replace(pattern, components=tuple(with_bits(components)))


@composite
def neighbouring_rules(
    draw: st.DrawFn,
    contexts: Sequence[Context] = CONTEXTS,
    spans: Spans = None,
    *,
    opened: bool = False,
) -> Rule:
    """A rule with a repeated component that directly follows a repeated or an optional one.

    Args:
        draw: draws.
        contexts: the contexts to choose from.
        spans: the spans to stand in.
        opened: whether some ends of groups look at the event that opened the span.
    """
    context = chosen(draw, contexts)
    pattern = draw(grouped_patterns(context, in_span=spans is not None, neighbours=True))
    other = draw(st.integers(0, 5))
    if other == 0:
        pattern = with_further(draw, pattern, opened=opened)
    elif other == 1 or opened:
        pattern = _with_ends(draw, pattern, opened=opened)
    return rules_of(draw, pattern, spans)
