"""The candidates of a pattern: every way to place its components, looked at one after the other.

A component that is not negated is positive. A candidate is found by its anchors: the event of each component
that stands for one event, the first event of a group in first place, the last event of a group in last place.
All else that belongs to a group follows from its neighbours. The components of a conjunction are all anchors,
and stand in any order, but for those of a sequence in it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence

from spark_pace.core.expr import Column, Previous
from spark_pace.core.plan.rule import Absence, Conjunct, Pattern
from tests.oracle.expressions import Bindings, Row, conjuncts_of, holds, nodes_of
from tests.oracle.inner_sequences import is_in_order
from tests.oracle.stream import Bound, Placed, Production, Stream, inside

Matching = list[list[bool]]  # by component, then by place in the stream


def satisfies(pattern: Pattern, index: int, placed: Placed) -> bool:
    if index == 0 and any(is_preceded(pattern, absence, placed) for absence in pattern.absences):
        return False
    if pattern.components[index].members:
        return standing(pattern, index, placed) is not None
    here = Bindings(event=placed.row, before=placed.before, bound=opened_by(placed))
    return holds(pattern.components[index].predicate, here) and not ends_the_group(pattern, index, placed)


def ends_the_group(pattern: Pattern, index: int, placed: Placed) -> bool:
    """Whether the event satisfies the condition at which the component's group ends."""
    until = pattern.components[index].until
    here = Bindings(event=placed.row, before=placed.before, bound=opened_by(placed))
    return until is not None and holds(until.predicate, here)


def may_join(pattern: Pattern, index: int, group: Sequence[Placed], placed: Placed) -> bool:
    """Whether the event meets the condition on what the group has so far, if it has an event already."""
    component = pattern.components[index]
    if component.further is None or not group:
        return True
    return holds(component.further, beside(component.name, group, placed))


def beside(name: str, group: Sequence[Placed], placed: Placed) -> Bindings:
    """The event as that of a component whose group has these before it."""
    return Bindings(
        bound={name: placed.row} | opened_by(placed),
        groups={name: [one.row for one in group]},
        befores={name: placed.before},
    )


def standing(pattern: Pattern, index: int, placed: Placed) -> str | None:
    """The member of a disjunction that the event stands for: the first that it matches; None for none."""
    here = Bindings(event=placed.row, before=placed.before, bound=opened_by(placed))
    for member in pattern.components[index].members:
        if holds(member.predicate, here):
            return member.name
    return None


def called(pattern: Pattern, bound: Bound) -> str:
    """What the event is called in a match: the component, or the member that stands for it."""
    member = standing(pattern, bound.component, bound.placed)
    return pattern.components[bound.component].name if member is None else member


def is_fulfilled(pattern: Pattern, conjunct: Conjunct, here: Bindings) -> bool:
    """Whether conditions hold; one that names a member is asked only where that member stands."""
    if conjunct.stated is None:
        return holds(conjunct.expr, here)
    members = {member.name for component in pattern.components for member in component.members}
    for part in conjuncts_of(conjunct.stated):
        named = {node.component for node in nodes_of(part) if isinstance(node, Column | Previous)}
        if named & members <= {*here.bound} and not holds(part, here):
            return False
    return True


def is_preceded(pattern: Pattern, absence: Absence, placed: Placed) -> bool:
    """Whether an event that the negated component in first place names stands before this one."""
    for earlier in placed.earlier:
        if absence.within_us is not None and placed.time - earlier.time > absence.within_us:
            continue
        alone = Bindings(event=earlier.row, before=earlier.before, bound=opened_by(earlier))
        names = {absence.component.name: earlier.row, pattern.components[0].name: placed.row}
        both = Bindings(bound=names)
        if holds(absence.component.predicate, alone) and all(holds(one, both) for one in absence.where):
            return True
    return False


def opened_by(placed: Placed) -> dict[str, Row]:
    """What ``open`` stands for, inside a span that an event opened."""
    return {} if placed.opening is None else {"open": placed.opening}


def positives(pattern: Pattern) -> list[int]:
    """The components that are not negated, without an optional one in last place."""
    every = [index for index, component in enumerate(pattern.components) if not component.negated]
    return [index for index in every if index != optional_last(pattern)]


def optional_last(pattern: Pattern) -> int | None:
    """The optional component in last place."""
    last = len(pattern.components) - 1
    return last if last and pattern.order == "sequence" and least_of(pattern, last) == 0 else None


def beginning(pattern: Pattern) -> list[int]:
    """The components that a match can begin with: the first, and the next one if that is optional."""
    order = positives(pattern)
    return order[: 1 + (least_of(pattern, order[0]) == 0)]


def inner_negatives(pattern: Pattern) -> list[int]:
    return [index for index in range(positives(pattern)[-1]) if pattern.components[index].negated]


def trailing_negatives(pattern: Pattern) -> list[int]:
    """The negated components behind the last positive one."""
    behind = range(positives(pattern)[-1] + 1, len(pattern.components))
    return [index for index in behind if pattern.components[index].negated]


def stands_for_a_group(pattern: Pattern, index: int) -> bool:
    return pattern.components[index].times is not None


def least_of(pattern: Pattern, index: int) -> int:
    times = pattern.components[index].times
    return 1 if times is None else times.least


def most_of(pattern: Pattern, index: int) -> int | None:
    times = pattern.components[index].times
    return 1 if times is None else times.most


def bindings_of(pattern: Pattern, production: Sequence[Bound], forbidding: Bound | None = None) -> Bindings:
    """One event for each single component, a list of events for each group, and the event that may forbid."""
    singles = opened_by(production[0].placed)
    groups: dict[str, list[Row]] = {}
    for index in positives(pattern):
        rows = [bound.placed.row for bound in production if bound.component == index]
        if stands_for_a_group(pattern, index):
            groups[pattern.components[index].name] = rows
    befores: dict[str, Sequence[Row]] = {}
    for bound in [*production, *([] if forbidding is None else [forbidding])]:
        if not stands_for_a_group(pattern, bound.component):
            for name in {pattern.components[bound.component].name, called(pattern, bound)}:
                singles[name], befores[name] = bound.placed.row, bound.placed.before
    return Bindings(bound=singles, groups=groups, befores=befores)


# ---------------------------------------------------------------- candidates


def candidates(pattern: Pattern, stream: Stream) -> list[Production]:
    """Every candidate, whatever stands behind its last event: `survives` looks at that."""
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
    placings: Iterable[tuple[int, ...]]
    if pattern.order == "conjunction":
        placings = itertools.permutations(range(size), len(anchored))
    elif len(order) == 1 and stands_for_a_group(pattern, order[0]):
        placings = [(first, last) for first in range(size) for last in range(first, size)]
        anchored = [order[0], order[0]]
    else:
        placings = itertools.combinations(range(size), len(anchored))
    for places in placings:
        if all(matching[index][place] for index, place in zip(anchored, places, strict=True)):
            yield list(zip(anchored, places, strict=True))


def places_of(
    pattern: Pattern, stream: Stream, matching: Matching, anchors: list[tuple[int, int]], index: int
) -> list[int]:
    """Where the events of a component stand: all that match it between its neighbours' events.

    None do from the event on that ends the group; an anchor of the group that is not in it is no candidate.
    """
    if stands_for_a_group(pattern, index) and next_group(pattern, index) is not None:
        return places_before_next(pattern, stream, matching, anchors, index)
    return gathered(pattern, stream, matching, anchors, index, len(stream))


def next_group(pattern: Pattern, index: int) -> int | None:
    """The group that directly follows this component, negated ones aside; None if there is none."""
    behind = [other for other in positives(pattern) if other > index][:1]
    return behind[0] if behind and stands_for_a_group(pattern, behind[0]) else None


def places_before_next(
    pattern: Pattern, stream: Stream, matching: Matching, anchors: list[tuple[int, int]], index: int
) -> list[int]:
    """Where the events of a group stand that another group directly follows: before that one begins."""
    begins = begin_of_next(pattern, stream, matching, anchors, index)
    if begins is None:
        return []
    return gathered(pattern, stream, matching, anchors, index, begins)


def begin_of_next(
    pattern: Pattern, stream: Stream, matching: Matching, anchors: list[tuple[int, int]], index: int
) -> int | None:
    """Where the group behind this one begins: with the first event of it behind the least number of this one.

    None if it has no event there.
    """
    behind = next_group(pattern, index)
    assert behind is not None
    own = gathered(pattern, stream, matching, anchors, index, len(stream))
    least = least_of(pattern, index)
    if len(own) < least:
        return None
    last = own[least - 1] if least else [place for anchored, place in anchors if anchored < index][-1]
    for place in range(last + 1, len(stream)):
        if matching[behind][place]:
            return place
    return None


def gathered(
    pattern: Pattern,
    stream: Stream,
    matching: Matching,
    anchors: list[tuple[int, int]],
    index: int,
    until: int,
) -> list[int]:
    """Where the events of a component stand, before the place `until`."""
    own = [place for anchored, place in anchors if anchored == index]
    if index < anchors[0][0] and pattern.order == "sequence":
        return []  # an optional component in first place without an event
    if not stands_for_a_group(pattern, index):
        return own
    begins = None
    for other in positives(pattern):
        if other < index and stands_for_a_group(pattern, other) and next_group(pattern, other) == index:
            begins = begin_of_next(pattern, stream, matching, anchors, other)
            if begins is None:
                return []
    before = [place for anchored, place in anchors if anchored < index]
    after = [place for anchored, place in anchors if anchored > index]
    start = begins if begins is not None else before[-1] + 1 if before else own[0]
    stop = min(until, after[0] if after else own[-1] + 1)
    component = pattern.components[index]
    taken: list[int] = []
    for place in range(start, stop):
        if ends_the_group(pattern, index, stream[place]):
            break
        group = [stream[one] for one in taken]
        joins = matching[index][place] and may_join(pattern, index, group, stream[place])
        is_first = not before and place == own[0]  # nothing of the match stands before it
        if component.follows == "strict" and not is_first:
            neighbours = stream[place].seq == stream[place - 1].seq + 1
            if not (neighbours and joins):
                break
        if joins:
            taken.append(place)
    return [] if {*own} - {*taken} else taken


def is_candidate(pattern: Pattern, stream: Stream, production: Production) -> bool:
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
