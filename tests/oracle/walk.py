"""The walk of `next`: each component takes the first event that will do, without second thoughts."""

from __future__ import annotations

from collections.abc import Sequence

from spark_pace.core.plan.rule import Pattern
from tests.oracle.alternatives import first_walk
from tests.oracle.candidates import is_forbidden
from tests.oracle.components import (
    bindings_of,
    ends_the_group,
    is_fulfilled,
    least_of,
    may_join,
    most_of,
    positives,
    satisfies,
    stands_for_a_group,
)
from tests.oracle.stream import Bound, Placed, Production, Stream, inside


def walk(pattern: Pattern, stream: Stream, initiator: Placed) -> Production | None:
    """What the walk from this initiator takes; None where it does not end well."""
    if pattern.order == "disjunction":
        return first_walk(pattern, stream, initiator)
    taken = take(pattern, stream, initiator)
    if taken is None:
        return None
    negatives = [index for index, component in enumerate(pattern.components) if component.negated]
    if any(is_forbidden(pattern, stream, taken, index) for index in negatives):
        return None
    return taken


def take(pattern: Pattern, stream: Stream, initiator: Placed) -> Production | None:
    order = positives(pattern)
    taken = [Bound(initiator, order[0])]
    step = 0  # the component order[step] is looked at
    if least_of(pattern, order[0]) == 0 and begins_without_first(pattern, initiator, order):
        taken, step = [Bound(initiator, order[1])], 2
    elif not satisfies(pattern, order[0], initiator):
        return None
    elif not stands_for_a_group(pattern, order[0]) or ends_in_last_place(pattern, taken, order[0]):
        step = 1
    for placed in stream:
        if step == len(order):
            break
        if placed.seq <= initiator.seq:
            continue
        if not inside(pattern.within, initiator, placed):
            return None
        further = goes_behind_the_group(pattern, taken, placed, order[step:])
        if further:
            step += further
            behind = order[step]
            taken.append(Bound(placed, behind))
            still = stands_for_a_group(pattern, behind) and not ends_in_last_place(pattern, taken, behind)
            step += 0 if still else 1
        elif joins_the_group(pattern, stream, taken, placed, order[step]):
            taken.append(Bound(placed, order[step]))
            if order[step] == order[-1] and ends_in_last_place(pattern, taken, order[step]):
                step += 1
        elif stands_alone(pattern, taken, placed, order[step]):
            taken.append(Bound(placed, order[step]))
            step += 1
        elif pattern.contiguity == "strict":
            return None
    return tuple(taken) if step == len(order) else None


def begins_without_first(pattern: Pattern, initiator: Placed, order: Sequence[int]) -> bool:
    """Whether the initiator is the next component's, so that an optional one in first place has no event."""
    return satisfies(pattern, order[1], initiator) and decided_hold(
        pattern, [Bound(initiator, order[1])], order[:2]
    )


def goes_behind_the_group(
    pattern: Pattern, taken: Sequence[Bound], placed: Placed, ahead: Sequence[int]
) -> int:
    """How many components further the event goes if the group that is looked at may end here; 0 if it stays.

    It goes to the next one, or over optional ones to one behind them: to the last one that it can go to.
    """
    group = ahead[0]
    if not stands_for_a_group(pattern, group) or size_of(taken, group) < least_of(pattern, group):
        return 0
    for further in reversed(range(1, len(ahead))):
        passed, behind = ahead[:further], ahead[further]
        if any(least_of(pattern, one) > 0 for one in passed[1:]):
            continue
        completed = passed if stands_for_a_group(pattern, behind) else [*passed, behind]
        if (
            satisfies(pattern, behind, placed)
            and stands_right(pattern, taken, placed, behind)
            and decided_hold(pattern, [*taken, Bound(placed, behind)], completed)
        ):
            return further
    return 0


def joins_the_group(
    pattern: Pattern, stream: Stream, taken: Sequence[Bound], placed: Placed, index: int
) -> bool:
    most = most_of(pattern, index)
    return (
        stands_for_a_group(pattern, index)
        and satisfies(pattern, index, placed)
        and not has_ended(pattern, stream, taken, placed, index)
        and may_join(pattern, index, [one.placed for one in taken if one.component == index], placed)
        and (most is None or size_of(taken, index) < most)
    )


def has_ended(pattern: Pattern, stream: Stream, taken: Sequence[Bound], placed: Placed, index: int) -> bool:
    """Whether an event before this one, behind what the walk took before the group, has ended it."""
    before = [bound.placed for bound in taken if bound.component < index] or [taken[0].placed]
    if pattern.components[index].follows == "strict" and placed.seq != taken[-1].placed.seq + 1:
        return True
    return any(
        before[-1].seq < other.seq < placed.seq and ends_the_group(pattern, index, other) for other in stream
    )


def stands_alone(pattern: Pattern, taken: Sequence[Bound], placed: Placed, index: int) -> bool:
    return (
        not stands_for_a_group(pattern, index)
        and satisfies(pattern, index, placed)
        and stands_right(pattern, taken, placed, index)
        and decided_hold(pattern, [*taken, Bound(placed, index)], (index,))
    )


def stands_right(pattern: Pattern, taken: Sequence[Bound], placed: Placed, index: int) -> bool:
    """Whether the event directly follows the last one taken, if the component asks for that."""
    return pattern.components[index].follows == "relaxed" or placed.seq == taken[-1].placed.seq + 1


def ends_in_last_place(pattern: Pattern, taken: Sequence[Bound], index: int) -> bool:
    """Whether the group with what it has now ends the walk, if no component comes after it."""
    return (
        index == positives(pattern)[-1]
        and size_of(taken, index) >= least_of(pattern, index)
        and decided_hold(pattern, taken, (index,))
    )


def size_of(taken: Sequence[Bound], index: int) -> int:
    return sum(bound.component == index for bound in taken)


def decided_hold(pattern: Pattern, taken: Sequence[Bound], completed: Sequence[int]) -> bool:
    """Whether the conditions hold that are decided by completing these components."""
    here = bindings_of(pattern, taken)
    return all(
        is_fulfilled(pattern, conjunct, here)
        for conjunct in pattern.where
        if not any(pattern.components[index].negated for index in conjunct.components)
        and max(conjunct.components) in completed
    )
