"""What an optional component in last place takes, event after event behind a candidate."""

from __future__ import annotations

from spark_pace.core.plan.rule import Pattern
from tests.oracle.components import (
    bindings_of,
    ends_the_group,
    is_fulfilled,
    may_join,
    most_of,
    optional_last,
    positives,
    satisfies,
    stands_for_a_group,
)
from tests.oracle.stream import Bound, Placed, Production, Stream, inside


def with_optional_last(pattern: Pattern, stream: Stream, production: Production) -> Production:
    """The production set with the events of an optional component in last place, as many as there are.

    These are the first that match it behind the last event, up to the end of the window.
    """
    index = optional_last(pattern)
    if index is None:
        return production
    component, last, taken = pattern.components[index], production[-1].placed, list[Placed]()
    neighbours = "strict" in (component.follows, pattern.contiguity)
    for placed in (one for one in stream if one.seq > last.seq):
        if is_full(pattern, len(taken)) or not inside(pattern.within, production[0].placed, placed):
            break
        joins = satisfies(pattern, index, placed) and may_join(pattern, index, taken, placed)
        joins = joins and is_meant(pattern, production, Bound(placed, index))
        directly = placed.seq == (taken[-1] if taken else last).seq + 1
        if ends_the_group(pattern, index, placed) or (neighbours and not (joins and directly)):
            break
        if joins:
            taken.append(placed)
    return (*production, *(Bound(placed, index) for placed in taken))


def is_meant(pattern: Pattern, production: Production, behind: Bound) -> bool:
    """Whether the conditions hold that say which event an optional component in last place takes."""
    here = bindings_of(pattern, production)
    here.groups = {**here.groups, pattern.components[behind.component].name: [behind.placed.row]}
    return all(is_fulfilled(pattern, conjunct, here) for conjunct in pattern.taking)


def is_full(pattern: Pattern, events: int) -> bool:
    """Whether an optional component in last place that has so many events takes no more."""
    index = optional_last(pattern)
    return index is not None and events == most_of(pattern, index)


def reads_others(pattern: Pattern) -> bool:
    """Whether what an optional component in last place takes depends on more than the first and last event.

    In *each, zero* all matches of a selection have the same of these.
    """
    order = positives(pattern)
    ends = [order[-1]] if stands_for_a_group(pattern, order[0]) else [order[0], order[-1]]
    return any({*one.components} - {*ends, optional_last(pattern)} for one in pattern.taking)
