"""The components of a pattern, and which events satisfy them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

from spark_pace.core.expr import Column, Previous
from spark_pace.core.plan.rule import Absence, Conjunct, Pattern
from tests.oracle.expressions import Bindings, Row, conjuncts_of, holds, nodes_of
from tests.oracle.stream import Bound, Placed

Asked = TypeVar("Asked", bound=Callable[..., Any])


def asked_once(function: Asked) -> Asked:
    """What the function says of a pattern, which its events do not change, is kept with the pattern."""

    @functools.wraps(function)
    def told(pattern: Pattern, *others: int) -> Any:
        kept = vars(pattern).setdefault("_asked_once", {})
        asked = (function.__name__, *others)
        if asked not in kept:
            kept[asked] = function(pattern, *others)
        return kept[asked]

    return cast(Asked, told)


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


@asked_once
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
