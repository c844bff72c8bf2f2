"""The events that belong to the components of a candidate, as far as its anchors say so."""

from __future__ import annotations

from spark_pace.core.plan.rule import Pattern
from tests.oracle.components import (
    asked_once,
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

    None do from the event on that ends the group, nor from that on with which one begins that directly
    follows it; an anchor of the group that is not in it is no candidate.
    """
    until = len(stream)
    for other in groups_behind(pattern, index):
        begins = begin_of(pattern, stream, matching, anchors, other)
        if begins is None and least_of(pattern, other) > 0:
            return []
        until = until if begins is None else min(until, begins)
    return gathered(pattern, stream, matching, anchors, index, until)


@asked_once
def directly_before(pattern: Pattern, index: int) -> int | None:
    """The group that this group directly follows, negated ones aside; None if there is none."""
    before = [other for other in positives(pattern) if other < index][-1:]
    both = before and stands_for_a_group(pattern, before[0]) and stands_for_a_group(pattern, index)
    return before[0] if both else None


@asked_once
def groups_behind(pattern: Pattern, index: int) -> list[int]:
    """The groups, one directly behind the other, of which the first with an event ends this one.

    They are those up to the first that is not optional.
    """
    found: list[int] = []
    for other in positives(pattern):
        if directly_before(pattern, other) == (found or [index])[-1]:
            found.append(other)
            if least_of(pattern, other) > 0:
                break
    return found


def begin_of(
    pattern: Pattern, stream: Stream, matching: Matching, anchors: list[tuple[int, int]], index: int
) -> int | None:
    """Where a group begins that directly follows others: with its first event once they have their least.

    The last of them that is not optional says when; where all are, the event before them. None if it has no
    event there. An optional group is empty where one behind it has begun by then.
    """
    before = directly_before(pattern, index)
    assert before is not None
    while least_of(pattern, before) == 0 and directly_before(pattern, before) is not None:
        before = directly_before(pattern, before)
        assert before is not None
    least = least_of(pattern, before)
    own = gathered(pattern, stream, matching, anchors, before, len(stream))
    if len(own) < least:
        return None
    last = own[least - 1] if least else [place for anchored, place in anchors if anchored < before][-1]
    for place in range(last + 1, len(stream)):
        if matching[index][place]:
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
    if directly_before(pattern, index) is not None:
        begins = begin_of(pattern, stream, matching, anchors, index)
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
