"""Hypothesis strategies: disjunctions of sequences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import strategies as st

from spark_pace.core.plan.rule import Component, Conjunct, Context, Pattern, Rule
from spark_pace.core.plan.shape import in_turn
from tests.support.draws import chosen, composite
from tests.support.form_strategies import (
    Spans,
    changed_components,
    open_conditions,
    previous_conditions,
    rules_of,
)
from tests.support.strategies import CONTEXTS, condition, conjuncts, predicates, window_or_none, windows

LENGTHS = ([2, 1], [1, 2], [2, 2], [2, 2], [2, 2], [3, 1], [2, 3], [1, 2, 1], [2, 1, 2], [3, 2], [2, 2, 1])


@composite
def alternative_patterns(
    draw: st.DrawFn, context: Context, *, in_span: bool = False, close_window: bool = False
) -> Pattern:
    """A disjunction of two or three alternatives, one of them a sequence; by chance with conditions."""
    parts, bits = list[range](), 0
    for length in chosen(draw, list(LENGTHS)):
        parts.append(range(bits, bits + length))
        bits += length
    components = list[Component]()
    for own in parts:
        for place in range(len(own)):
            shared = chosen(draw, [False, False, True]) and place < len(components)
            predicate = components[place].predicate if shared else draw(predicates())
            components.append(Component("pqrstu"[len(components)], predicate))
    where = [one for own in parts if len(own) > 1 for one in _conditions(draw, components, own)]
    order = [one for own in parts for one in in_turn(components, own)]
    within = draw(window_or_none() if in_span else windows())
    close = "window" if close_window else "completion"
    whole = (*where, *order)
    return Pattern(tuple(components), whole, within, context, close, order="disjunction")


def _conditions(draw: st.DrawFn, components: Sequence[Component], own: range) -> list[Conjunct]:
    """Conditions over the components of one alternative, by chance one of which columns test."""
    names = tuple(components[index].name for index in own)
    found = [draw(conjuncts(names)) for _ in range(chosen(draw, [0, 0, 1, 1, 2]))]
    found = [replace(one, components=tuple(own[index] for index in one.components)) for one in found]
    if found and draw(st.integers(0, 5)) == 0:
        found[0] = replace(found[0], expr=condition("coalesce", found[0].expr, found[0].expr))
    return found


@composite
def alternative_rules(
    draw: st.DrawFn,
    contexts: Sequence[Context] = CONTEXTS,
    spans: Spans = None,
    *,
    earlier: bool = False,
    opened: bool = False,
) -> Rule:
    """A disjunction of sequences in one of the contexts, by chance with ``close: window``.

    Args:
        draw: draws.
        contexts: the contexts to choose from.
        spans: the spans to stand in.
        earlier: whether some components look at events before.
        opened: whether some components look at the event that opened the span.
    """
    context = chosen(draw, contexts)
    close_window = spans is None and context == CONTEXTS[0] and draw(st.integers(0, 2)) == 2
    pattern = draw(alternative_patterns(context, in_span=spans is not None, close_window=close_window))
    if earlier:
        pattern = changed_components(draw, pattern, previous_conditions)
    if opened:
        pattern = changed_components(draw, pattern, open_conditions)
    return rules_of(draw, pattern, spans)
