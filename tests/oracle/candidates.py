"""The candidates of a pattern: every way to place its components, looked at one after the other.

A component that is not negated is positive. A candidate is found by its anchors: the event of each component
that stands for one event, the first event of a group in first place, the last event of a group in last place.
All else that belongs to a group follows from its neighbours; where a group directly follows another
one, see `tests.oracle.group_events`. The components of a conjunction are all anchors,
and stand in any order, but for those of a sequence in it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from spark_pace.core.plan.rule import Pattern
from tests.oracle.alternatives import candidates_of_alternatives, is_of_alternative
from tests.oracle.components import (
    beginning,
    bindings_of,
    inner_negatives,
    is_fulfilled,
    least_of,
    most_of,
    positives,
    satisfies,
    stands_for_a_group,
    trailing_negatives,
)
from tests.oracle.group_events import places_of
from tests.oracle.inner_sequences import is_in_order
from tests.oracle.stream import Bound, Matching, Production, Stream, inside


def candidates(pattern: Pattern, stream: Stream) -> list[Production]:
    """Every candidate, whatever stands behind its last event: `survives` looks at that."""
    if pattern.order == "disjunction":
        return candidates_of_alternatives(pattern, stream)
    matching = [
        [satisfies(pattern, index, placed) for placed in stream] for index in range(len(pattern.components))
    ]
    found = []
    for anchors in anchorings(pattern, matching, len(stream)):
        taken = [
            Bound(stream[place], index)
            for index in positives(pattern)
            for place in places_of(pattern, stream, matching, anchors, index)
        ]
        production = tuple(sorted(taken, key=lambda bound: bound.placed.seq))
        if is_candidate(pattern, stream, production):
            found.append(production)
    return found


def anchorings(pattern: Pattern, matching: Matching, size: int) -> Iterator[list[tuple[int, int]]]:
    """Pairs of component and place, in the order of both."""
    order = positives(pattern)
    for first in beginning(pattern):
        anchored = [
            index
            for index in order
            if index >= first and (index in (first, order[-1]) or not stands_for_a_group(pattern, index))
        ]
        yield from placed_anchors(pattern, matching, size, anchored)


def placed_anchors(
    pattern: Pattern, matching: Matching, size: int, anchored: list[int]
) -> Iterator[list[tuple[int, int]]]:
    """The same for these components, in order."""
    order = positives(pattern)
    alone = len(order) == 1 and stands_for_a_group(pattern, order[0])
    if alone:
        anchored = [order[0], order[0]]
    for places in itertools.product(*([p for p in range(size) if matching[index][p]] for index in anchored)):
        pairs = itertools.pairwise(places)
        if pattern.order == "conjunction":
            fits = len({*places}) == len(places)
        else:
            fits = all(one <= other if alone else one < other for one, other in pairs)
        if fits:
            yield list(zip(anchored, places, strict=True))


def is_candidate(pattern: Pattern, stream: Stream, production: Production) -> bool:
    if pattern.order == "disjunction":
        return is_of_alternative(pattern, production)
    for index in positives(pattern):
        count = sum(bound.component == index for bound in production)
        most = most_of(pattern, index)
        if count < least_of(pattern, index) or (most is not None and count > most):
            return False
    places = [bound.placed.seq for bound in production]
    fits = inside(pattern.within, production[0].placed, production[-1].placed)
    if not fits or not is_in_order(pattern, production):
        return False
    if pattern.contiguity == "strict" and places != list(range(places[0], places[0] + len(places))):
        return False
    for before, bound in itertools.pairwise(production):
        follows = (
            pattern.components[bound.component].follows == "strict"
            and pattern.components[bound.component].times is None
        )
        if follows and bound.placed.seq != before.placed.seq + 1:
            return False
    here = bindings_of(pattern, production)
    of_positives = [
        conjunct
        for conjunct in pattern.conditions
        if not any(pattern.components[index].negated for index in conjunct.components)
    ]
    return all(is_fulfilled(pattern, conjunct, here) for conjunct in of_positives) and not any(
        is_forbidden(pattern, stream, production, index) for index in inner_negatives(pattern)
    )


# ---------------------------------------------------------------- negated components


def is_forbidden(pattern: Pattern, stream: Stream, production: Production, negated: int) -> bool:
    """Whether an event that forbids stands between the events around the negated component.

    An empty group is not there, so nothing forbids before the first event of all. Behind the last component
    it is all up to the window's end.
    """
    before = [bound.placed for bound in production if bound.component < negated]
    after = [bound.placed for bound in production if bound.component > negated]
    if not before:  # an optional component in first place has no event
        return False
    for placed in stream:
        reaches = placed.seq < after[0].seq if after else inside(pattern.within, production[0].placed, placed)
        if placed.seq > before[-1].seq and reaches and forbids(pattern, production, Bound(placed, negated)):
            return True
    return False


def forbids(pattern: Pattern, production: Production, bound: Bound) -> bool:
    here = bindings_of(pattern, production, bound)
    return satisfies(pattern, bound.component, bound.placed) and all(
        is_fulfilled(pattern, conjunct, here)
        for conjunct in pattern.where
        if bound.component in conjunct.components
    )


def survives(pattern: Pattern, stream: Stream, production: Production) -> bool:
    """Whether nothing forbids the candidate up to the end of the window that starts at its first event."""
    return not any(is_forbidden(pattern, stream, production, index) for index in trailing_negatives(pattern))


# ---------------------------------------------------------------- comparison


def forwards(production: Production) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Orders candidates by their positions, then their components, first to last."""
    return tuple(bound.placed.seq for bound in production), tuple(bound.component for bound in production)


def backwards(production: Production) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The same, last back to first."""
    places, components = forwards(production)
    return places[::-1], components[::-1]
