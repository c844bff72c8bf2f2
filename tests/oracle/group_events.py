"""The events that belong to the components of a candidate, as far as its anchors say so."""

from __future__ import annotations

from spark_pace.core.plan.rule import Pattern
from tests.oracle.components import (
    ends_the_group,
    least_of,
    may_join,
    positives,
    stands_for_a_group,
)
from tests.oracle.stream import Matching, Stream


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
