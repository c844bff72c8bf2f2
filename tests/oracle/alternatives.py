"""Disjunctions of sequences: every way to take one of them, looked at one after the other."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from spark_pace.core.plan.rule import Pattern
from tests.oracle.components import bindings_of, is_fulfilled, satisfies
from tests.oracle.inner_sequences import first_ones, ordered_pairs
from tests.oracle.stream import Bound, Placed, Production, Stream, inside


def alternatives(pattern: Pattern) -> list[list[int]]:
    """The components of each alternative, in order: a first one, and what stands behind it."""
    behind = dict(ordered_pairs(pattern))
    found = []
    for first in first_ones(pattern):
        listed = [first]
        while listed[-1] in behind:
            listed.append(behind[listed[-1]])
        found.append(listed)
    return found


def candidates_of_alternatives(pattern: Pattern, stream: Stream) -> list[Production]:
    """The candidates of each alternative; the same events count for the first one that they are one of."""
    found: dict[tuple[Placed, ...], Production] = {}
    for listed in alternatives(pattern):
        for events in itertools.combinations(stream, len(listed)):
            taken = tuple(Bound(placed, index) for index, placed in zip(listed, events, strict=True))
            if is_of_alternative(pattern, taken):
                found.setdefault(events, taken)
    return list(found.values())


def is_of_alternative(pattern: Pattern, production: Production) -> bool:
    """Whether these are, in order, events of all components of an alternative, and fit together."""
    whole = [bound.component for bound in production] in alternatives(pattern)
    fits = inside(pattern.within, production[0].placed, production[-1].placed)
    return whole and fits and are_taken(pattern, production)


def are_taken(pattern: Pattern, taken: Sequence[Bound]) -> bool:
    """Whether the events match their components, and the conditions hold that name no others."""
    here, known = bindings_of(pattern, taken), {bound.component for bound in taken}
    return all(satisfies(pattern, bound.component, bound.placed) for bound in taken) and all(
        is_fulfilled(pattern, one, here) for one in pattern.conditions if known.issuperset(one.components)
    )


def first_walk(pattern: Pattern, stream: Stream, initiator: Placed) -> Production | None:
    """Of the walks of all alternatives from this initiator the one that ends first; of several the first."""
    walks = [walk_of(pattern, stream, initiator, listed) for listed in alternatives(pattern)]
    whole = [production for production in walks if production is not None]
    return min(whole, key=lambda production: production[-1].placed.seq, default=None)


def walk_of(pattern: Pattern, stream: Stream, initiator: Placed, listed: list[int]) -> Production | None:
    """What the walk of one alternative takes; None where it does not end well."""
    taken: list[Bound] = []
    for placed in stream:
        if len(taken) == len(listed) or placed.seq < initiator.seq:
            continue
        more = [*taken, Bound(placed, listed[len(taken)])]
        if inside(pattern.within, initiator, placed) and are_taken(pattern, more):
            taken = more
        elif placed == initiator:
            return None
    return tuple(taken) if len(taken) == len(listed) else None
