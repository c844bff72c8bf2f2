"""Checks of what `why` tells of events that would be a match but for some constraints, by the oracle.

Without the constraints that are told the events are a match; with any one of them there is no match with the
event in that place. What is said of each constraint is so of the events.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import combinations

from spark_pace.core.expr import Call, Expr, Literal
from spark_pace.core.expr.canonical_text import canonical_text
from spark_pace.core.plan.rule import Component, Conjunct, Pattern, Within
from spark_pace.reasons.answer import Member, Reason
from tests.oracle.alternatives import alternatives, is_of_alternative, walk_of
from tests.oracle.candidates import candidates, survives
from tests.oracle.components import (
    beside,
    ends_the_group,
    is_fulfilled,
    least_of,
    may_join,
    optional_last,
    positives,
    satisfies,
    trailing_negatives,
)
from tests.oracle.contexts import CONTEXTS as CONTEXTS_OF_ORACLE
from tests.oracle.contexts import initiators
from tests.oracle.expressions import conjuncts_of, holds
from tests.oracle.optional_last import is_meant, with_optional_last
from tests.oracle.stream import Bound, Placed, Production, inside
from tests.oracle.walk import take, walk
from tests.support.told_by_why import Home, Told
from tests.support.told_tests import check_values

NEVER = Literal(False, "BOOLEAN")
OF_CONTEXT = ("closed", "used up", "not chosen")


def check_miss(told: Told) -> None:
    """What is told of events that are no match."""
    reasons, pattern = told.candidate.reasons, stated(told.pattern)
    for reason in reasons:
        CHECKS[reason.kind](told, reason)
    if any(one.kind == "missing" and one.condition is not None for one in reasons):
        assert {one.kind for one in reasons} == {"missing"}
        return
    if is_left_out(told):
        return
    asked = asked_of(reasons)
    of_context = [one for one in reasons if one not in asked]
    walking = told.pattern.context.selection == "next" and not of_context
    assert told.production in found(told, without(pattern, asked), walking=walking)
    for one in [*asked, *([None] if asked else [])]:  # None: nothing is taken away
        left = [] if one is None else [other for other in asked if other is not one]
        rest = found(told, without(pattern, left), walking=walking)
        assert not [other for other in rest if stands_there(told, other)], one
    if not asked:
        assert len(of_context) == 1


def asked_of(reasons: Sequence[Reason]) -> list[Reason]:
    """What the pattern asks of the events, without what the context does."""
    return [one for one in reasons if one.kind not in OF_CONTEXT and one.condition is not None]


def stated(pattern: Pattern) -> Pattern:
    """The pattern without the window that `contiguity: strict` implies."""
    most = [1 if one.times is None else one.times.most or 0 for one in pattern.components]
    implied = pattern.contiguity == "strict" and pattern.within == Within(events=sum(most))
    return replace(pattern, within=None) if implied and not pattern.components[-1].negated else pattern


def is_left_out(told: Told) -> bool:
    """Whether the event belongs to no group of its component, whatever is taken away."""
    reason = told.candidate.reasons[0]
    names = [one.name for one in told.pattern.components]
    return reason.kind == "group" and reason.condition in names


def found(told: Told, pattern: Pattern, *, walking: bool) -> list[Production]:
    """The candidates of a pattern, or its walks."""
    if walking:
        starts = initiators(pattern, told.home)
        walks = [one for start in starts for one in walks_of(pattern, told.home, start)]
        return [with_optional_last(pattern, told.home, one) for one in walks if one is not None]
    every = [one for one in candidates_of(pattern, told.home) if survives(pattern, told.home, one)]
    last = optional_last(pattern)
    if last is not None and pattern.taking and Bound(told.asked, last) in told.production:
        return [production for one in every for production in meant(told, pattern, one)]
    return [with_optional_last(pattern, told.home, one) for one in every]


def candidates_of(pattern: Pattern, home: Home) -> list[Production]:
    """The candidates of a pattern; of a disjunction of sequences those of each alternative."""
    if pattern.order != "disjunction":
        return candidates(pattern, home)
    several = ((own, events) for own in alternatives(pattern) for events in combinations(home, len(own)))
    every = (tuple(map(Bound, events, own)) for own, events in several)
    return [one for one in every if is_of_alternative(pattern, one)]


def walks_of(pattern: Pattern, home: Home, start: Placed) -> list[Production | None]:
    """The walk from an initiator; of a disjunction of sequences that of each alternative."""
    if pattern.order != "disjunction":
        return [walk(pattern, home, start)]
    return [walk_of(pattern, home, start, listed) for listed in alternatives(pattern)]


def meant(told: Told, pattern: Pattern, production: Production) -> list[Production]:
    """The candidate with the event that is asked about behind it, if it is one that conditions allow."""
    bound, last = Bound(told.asked, len(pattern.components) - 1), production[-1].placed
    there = last.seq < bound.placed.seq and inside(pattern.within, production[0].placed, bound.placed)
    return [(*production, bound)] if there and is_meant(pattern, production, bound) else []


def stands_there(told: Told, production: Production) -> bool:
    """Whether the event stands for the same component; where it stops events, whether it is these."""
    role = next((one.component for one in told.production if one.placed == told.asked), None)
    if role is None:
        return production == told.production
    return Bound(told.asked, role) in production


def without(pattern: Pattern, reasons: Sequence[Reason]) -> Pattern:
    """The pattern without what the reasons name."""
    for one in reasons:
        pattern = WITHOUT[one.kind](pattern, one)
    return pattern


def _changed(pattern: Pattern, change: Callable[[Component], Component]) -> Pattern:
    changed = replace(pattern, components=tuple(map(change, pattern.components)))
    assert changed != pattern
    return changed


def without_condition(pattern: Pattern, reason: Reason) -> Pattern:
    """A condition of `where`, or the order of two components of a sequence in a conjunction."""
    names = [one.name for one in pattern.components]

    def is_told(one: Conjunct) -> bool:
        if one.is_order:
            return reason.condition == ", then ".join(names[index] for index in one.components)
        return reason.condition in map(canonical_text, parts_of(one))

    where, taking = (
        tuple(one for one in each if not is_told(one)) for each in (pattern.where, pattern.taking)
    )
    assert (where, taking) != (pattern.where, pattern.taking)
    return replace(pattern, where=where, taking=taking)


def parts_of(one: Conjunct) -> list[Expr]:
    """What the rule states that makes a condition."""
    return [one.expr] if one.stated is None else conjuncts_of(one.stated)


def without_neighbours(pattern: Pattern, reason: Reason) -> Pattern:
    if reason.condition == "contiguity: strict":
        return replace(pattern, contiguity="relaxed")

    def change(one: Component) -> Component:
        return replace(one, follows="relaxed") if f"{one.name} follows: strict" == reason.condition else one

    return _changed(pattern, change)


def without_group(pattern: Pattern, reason: Reason) -> Pattern:
    """What a group asks: how many events, until when, and of each further one."""

    def change(one: Component) -> Component:
        if one.times is not None and reason.condition == f"{one.name} {one.times}":
            over = reason.values["count"] > one.times.least
            count = reason.values["count"]
            times = replace(one.times, most=None) if over else replace(one.times, least=count)
            return replace(one, times=times)
        if one.further is not None and reason.condition == canonical_text(one.further):
            return replace(one, further=None)
        if reason.condition == ended(one):
            assert one.until is not None
            ends = one.until.predicate
            known = (Call("not", (ends,), "BOOLEAN"), Call("is_null", (ends,), "BOOLEAN"))
            beside = Call("and", (one.predicate, Call("or", known, "BOOLEAN")), "BOOLEAN")
            return replace(one, until=None, predicate=beside)
        return one

    return _changed(pattern, change)


def ended(one: Component) -> str:
    """What ends the group of a component, as it is told."""
    return "" if one.until is None else f"{one.name} until {canonical_text(one.until.predicate)}"


def without_window(pattern: Pattern, reason: Reason) -> Pattern:
    """Negated components in last place forbid up to the end of the window, so they go with it."""
    last = trailing_negatives(pattern)
    components = enumerate(pattern.components)
    changed = (replace(one, predicate=NEVER) if index in last else one for index, one in components)
    return replace(pattern, within=None, components=tuple(changed))


def without_negated(pattern: Pattern, reason: Reason) -> Pattern:
    def change(one: Component) -> Component:
        return replace(one, predicate=NEVER) if f"not {one.name}" == reason.condition else one

    return _changed(pattern, change)


WITHOUT: dict[str, Callable[[Pattern, Reason], Pattern]] = {
    "where": without_condition,
    "order": without_condition,
    "within": without_window,
    "contiguity": without_neighbours,
    "group": without_group,
    "forbidden": without_negated,
}


# ---------------------------------------------------------------- what is said of each constraint


def check_where(told: Told, reason: Reason) -> None:
    every = (*told.pattern.conditions, *told.pattern.taking)
    parts = {part for one in every for part in parts_of(one)}
    (expr,) = {one for one in parts if canonical_text(one) == reason.condition}
    assert not holds(expr, told.bindings())
    check_values(reason.values, expr, told.bindings())


def check_within(told: Told, reason: Reason) -> None:
    first, last = told.production[0].placed, told.production[-1].placed
    assert not inside(told.pattern.within, first, last)


def check_group(told: Told, reason: Reason) -> None:
    components = {one.name: one for one in told.pattern.components}
    for name, component in components.items():
        group = [told.placed(one.event) for one in told.members if one.component == name]
        index = told.found.index(name)
        if reason.condition == f"{name} {component.times}":
            assert component.times is not None
            count = len(group)
            assert reason.values == {"count": count}
            assert count < component.times.least or (
                component.times.most is not None and count > component.times.most
            )
        elif component.further is not None and reason.condition == canonical_text(component.further):
            (by,) = reason.by
            refused, joined = told.placed(by.event), list[Placed]()
            for placed in group:
                if placed.seq < refused.seq and may_join(told.pattern, index, joined, placed):
                    joined.append(placed)
            assert not may_join(told.pattern, index, joined, refused)
            check_values(reason.values, component.further, beside(name, joined, refused))
        elif (
            " ended it" in reason.text
            and reason.condition is not None
            and reason.condition.startswith(f"{name} until ")
        ):
            (by,) = reason.by
            assert ends_the_group(told.pattern, index, told.placed(by.event))
            assert by.event.seq < group[-1].seq
        elif reason.condition == name:
            assert all(satisfies(told.pattern, index, told.placed(by.event)) for by in reason.by)


def check_contiguity(told: Told, reason: Reason) -> None:
    taken = [one.event for one in told.members]
    assert reason.by
    for member in reason.by:
        assert told.production[0].placed.seq < member.event.seq < told.production[-1].placed.seq
        assert member.event not in taken


def check_forbidden(told: Told, reason: Reason) -> None:
    assert reason.by
    for member in reason.by:
        index = told.found.index(member.component)
        assert told.pattern.components[index].negated
        assert satisfies(told.pattern, index, told.placed(member.event))
        here = told.bindings(member)
        asked = [one for one in told.pattern.where if index in one.components]
        assert all(is_fulfilled(told.pattern, one, here) for one in asked)
        assert told.production[0].placed.seq < member.event.seq


def check_missing(told: Told, reason: Reason) -> None:
    pattern = told.pattern
    if reason.condition is None:
        assert told.candidate.status == "unfinished"
        assert not told.is_delivered
        return
    index, taken = told.found.index(reason.condition), [one.placed for one in told.production]
    assert least_of(pattern, index) > 0
    for placed in told.home:
        if pattern.order == "conjunction" or is_between(told, reason.by, index, placed):
            assert placed in taken or not satisfies(pattern, index, placed)


def is_between(told: Told, by: Sequence[Member], index: int, placed: Placed) -> bool:
    """Whether an event stands behind those of components before another one, and before those behind it."""
    return all(
        (one.event.seq < placed.seq) == (told.found.index(one.component) < index)
        and one.event.seq != placed.seq
        for one in by
    )


def check_used_up(told: Told, reason: Reason) -> None:
    used, *match = reason.by
    assert used.event in [one.event for one in told.members]
    assert used.event in [one.event for one in match]
    assert [one.event.offset for one in match] in of_matches(told)


def of_matches(told: Told) -> list[list[int]]:
    """The offsets of the events of each match."""
    return [[event["offset"] for event in match["events"]] for match in told.matches]


def check_closed(told: Told, reason: Reason) -> None:
    """The selection that was opened by the first of two was closed by the other one's match, or ended."""
    last = core(told)[-1].placed
    (opening, *closing) = reason.by
    assert any(one.seq == opening.event.seq for one in initiators(told.pattern, told.home))
    assert opening.event.seq <= told.production[0].placed.seq
    if not closing and "was over" in reason.text:
        assert not inside(told.pattern.within, told.placed(opening.event), last)
    for member in closing:
        assert told.placed(member.event).seq < last.seq
        ends = [(one["events"][0]["seq"], one["events"][-1]["seq"]) for one in told.matches]
        if told.is_delivered:
            assert any(opening.event.seq <= first and end == member.event.seq for first, end in ends)
        else:
            opened, _ = CONTEXTS_OF_ORACLE[str(told.pattern.context)](told.pattern, told.home)
            (resolved,) = [one.resolved for one in opened if one.opening.seq == opening.event.seq]
            assert resolved == told.placed(member.event).position


def core(told: Told) -> Production:
    """Its events without those of an optional component in last place."""
    return tuple(one for one in told.production if one.component != optional_last(told.pattern))


def check_order(told: Told, reason: Reason) -> None:
    second, first = reason.by
    assert reason.condition == f"{first.component}, then {second.component}"
    assert second.event.seq < first.event.seq


def check_not_chosen(told: Told, reason: Reason) -> None:
    """Another candidate is a match, or the walk came another way."""
    offsets = [member.event.offset for member in reason.by]
    if offsets in of_matches(told):
        return
    assert told.pattern.context.selection == "next"
    pattern = without(stated(told.pattern), asked_of(told.candidate.reasons))
    pattern, count = replace(pattern, taking=()), len({one.component for one in reason.by})
    taken = take(pattern_of_first(pattern, count), told.home, told.placed(reason.by[0].event))
    assert taken is not None
    assert [one.placed.event.offset for one in taken] == offsets


def pattern_of_first(pattern: Pattern, count: int) -> Pattern:
    """The pattern up to its n-th component that is not negated."""
    last = positives(pattern)[count - 1]
    where = tuple(one for one in pattern.where if max(one.components) <= last)
    return replace(pattern, components=pattern.components[: last + 1], where=where)


CHECKS: dict[str, Callable[[Told, Reason], None]] = {
    "where": check_where,
    "within": check_within,
    "group": check_group,
    "contiguity": check_contiguity,
    "forbidden": check_forbidden,
    "missing": check_missing,
    "used up": check_used_up,
    "closed": check_closed,
    "order": check_order,
    "not chosen": check_not_chosen,
}
