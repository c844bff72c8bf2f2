"""The oracle agrees with other readings of the same definitions, where there is a cheap one."""

from __future__ import annotations

import itertools
import math

from hypothesis import given
from hypothesis import strategies as st

from spark_pace.core.plan.rule import Component, Context, Pattern, Rule, Times, Within
from tests.oracle.candidates import candidates, forwards, survives
from tests.oracle.contexts import CONTEXTS as PICKED_BY
from tests.oracle.contexts import Event, Picked
from tests.oracle.expressions import Bindings, holds
from tests.oracle.matches import Match, evaluate
from tests.oracle.stream import Placed
from tests.support.checks import WIDE, told
from tests.support.form_strategies import IN_CONJUNCTION, conjunctive_patterns
from tests.support.forms import FORMS, form
from tests.support.grouped_strategies import SHAPES, grouped_patterns, grouped_rules
from tests.support.strategies import CONTEXTS, spans, typed
from tests.support.streams import SECOND, dense_streams, streams

CHOSEN = st.sampled_from(CONTEXTS)


def every_rule() -> st.SearchStrategy[Rule]:
    return st.one_of(
        CHOSEN.flatmap(lambda context: grouped_rules(context)),
        CHOSEN.flatmap(lambda context: grouped_rules(context)),
        CHOSEN.flatmap(lambda context: grouped_rules(context, spans=spans())),
        grouped_rules(CONTEXTS[0], close_window=True),
        st.sampled_from(list(FORMS)).flatmap(form),
        st.sampled_from(list(FORMS)).flatmap(form),
    )


# ---------------------------------------------------------------- what is released rests on the past


@WIDE
@given(every_rule(), st.one_of(dense_streams(), dense_streams(), streams()))
def test_no_later_event_changes_what_is_released(rule: Rule, events: list[Event]) -> None:
    """At every frontier behind which something is released, and at the time of every event."""
    matches = evaluate(rule, events)
    ends = {match.releasable[0] for match in matches} | {event.time for event in events}
    for frontier in sorted({end + more for end in ends if end != math.inf for more in (0, 1)}):
        past = [event for event in events if event.time < frontier]
        # as text, for nan is not equal to itself
        assert repr(released(matches, frontier)) == repr(released(evaluate(rule, past), frontier))


def released(matches: list[Match], frontier: float) -> list[Match]:
    return [match for match in matches if match.releasable[0] < frontier]


# ---------------------------------------------------------------- candidates, told by their roles

Roles = tuple[int | None, ...]  # of every event the component that it stands for


def by_roles(pattern: Pattern, stream: list[Placed]) -> list[Roles]:
    """All ways to give the events roles that make a candidate, one that nothing forbids."""
    positive = [index for index, component in enumerate(pattern.components) if not component.negated]
    choices = [[None, *(index for index in positive if fits(pattern, index, placed))] for placed in stream]
    return [roles for roles in itertools.product(*choices) if is_match(pattern, stream, roles)]


def fits(pattern: Pattern, index: int, placed: Placed) -> bool:
    return holds(pattern.components[index].predicate, Bindings(event=placed.row))


def is_match(pattern: Pattern, stream: list[Placed], roles: Roles) -> bool:
    taken = [(place, role) for place, role in enumerate(roles) if role is not None]
    if not taken:
        return False
    if not stand_in_order(pattern, [role for _, role in taken]):
        return False
    first, last = taken[0][0], taken[-1][0]
    if pattern.contiguity == "strict" and last - first + 1 != len(taken):
        return False
    follows = [role for (before, _), (place, role) in itertools.pairwise(taken) if place != before + 1]
    if any(pattern.components[role].follows == "strict" for role in follows):
        return False
    if not near(pattern, stream[first], stream[last]):
        return False
    for index, component in enumerate(pattern.components):
        number = sum(role == index for _, role in taken)
        times = component.times or Times(1 - component.negated, 1)
        if number < times.least or number > (number if times.most is None else times.most):
            return False
    left_out = [
        (place, index)
        for place in range(first, last)
        if roles[place] is None
        for index, component in enumerate(pattern.components)
        if component.times and fits(pattern, index, stream[place])
    ]
    if any(might_stand(roles, index, place) for place, index in left_out):
        return False
    if not begin_in_time(pattern, stream, roles):
        return False
    negated = {index for index, component in enumerate(pattern.components) if component.negated}
    here = bound_by(pattern, stream, roles)
    return all(
        holds(one.expr, here) for one in pattern.conditions if not negated & set(one.components)
    ) and not any(
        forbids(pattern, stream, roles, index, place) for index in negated for place in range(len(stream))
    )


def stand_in_order(pattern: Pattern, taken: list[int]) -> bool:
    """Whether the components of a sequence follow each other, and those of each sequence in a conjunction."""
    if pattern.order == "sequence":
        return taken == sorted(taken)
    pairs = (one.components for one in pattern.where if one.is_order)
    return not any(
        first in taken[at:] and second in taken[:at] for first, second in pairs for at in range(len(taken))
    )


def begin_in_time(pattern: Pattern, stream: list[Placed], roles: Roles) -> bool:
    """Whether each group behind another begins with its first event once that has its least number.

    No event that matches it stands before, from there to the first event of it or of a component behind it.
    """
    positive = [index for index, component in enumerate(pattern.components) if not component.negated]
    times = [pattern.components[index].times for index in positive]
    for number in range(1, len(positive)):
        before = number - 1
        if times[before] is None or times[number] is None:
            continue
        while before and times[before - 1] is not None and times[before] == Times(0, times[before].most):
            before -= 1
        own = [place for place, role in enumerate(roles) if role == positive[before]]
        others = [place for place, role in enumerate(roles) if role is not None and role < positive[before]]
        enough = own[times[before].least - 1] if times[before].least else others[-1]
        begins = next(
            place for place, role in enumerate(roles) if role is not None and role >= positive[number]
        )
        if any(fits(pattern, positive[number], stream[place]) for place in range(enough + 1, begins)):
            return False
    return True


def might_stand(roles: Roles, index: int, place: int) -> bool:
    """Whether the order of components would allow the event to stand for this one."""
    before = [role for role in roles[:place] if role is not None]
    after = [role for role in roles[place + 1 :] if role is not None]
    return max(before, default=-1) <= index <= min(after, default=len(roles) + index)


def forbids(pattern: Pattern, stream: list[Placed], roles: Roles, index: int, place: int) -> bool:
    """Whether the event stands where the negated component would, and fulfils its conditions."""
    if roles[place] is not None or not might_stand(roles, index, place):
        return False
    first = next(placed for placed, role in zip(stream, roles, strict=True) if role is not None)
    here = bound_by(pattern, stream, (*roles[:place], index, *roles[place + 1 :]))
    return (
        stream[place].seq > first.seq
        and near(pattern, first, stream[place])
        and fits(pattern, index, stream[place])
        and all(holds(one.expr, here) for one in pattern.where if index in one.components)
    )


def near(pattern: Pattern, first: Placed, last: Placed) -> bool:
    within = pattern.within
    if within is None:
        return True
    if within.events is not None and last.seq > first.seq + within.events - 1:
        return False
    return within.time_us is None or last.time <= first.time + within.time_us


def bound_by(pattern: Pattern, stream: list[Placed], roles: Roles) -> Bindings:
    rows = {
        component.name: [placed.row for placed, role in zip(stream, roles, strict=True) if role == index]
        for index, component in enumerate(pattern.components)
    }
    return Bindings(bound={name: of[0] for name, of in rows.items() if of}, groups=rows)


@given(
    st.one_of(
        CHOSEN.flatmap(lambda context: grouped_patterns(context)),
        CHOSEN.flatmap(lambda context: grouped_patterns(context, neighbours=True)),
        st.sampled_from(IN_CONJUNCTION).flatmap(lambda context: conjunctive_patterns(context)),
    ),
    st.lists(dense_streams(7), min_size=5),
)
def test_the_candidates_are_all_assignments_of_roles_that_fulfil_the_definition(
    pattern: Pattern, several: list[list[Event]]
) -> None:
    for events in several:
        stream = placed_in_order(events)
        found = [one for one in candidates(pattern, stream) if survives(pattern, stream, one)]
        taken = [{bound.placed.seq: bound.component for bound in one} for one in found]
        roles = [str(tuple(map(one.get, range(len(stream))))) for one in taken]
        assert sorted(roles) == sorted(map(str, by_roles(pattern, stream))), list(map(told, events))


def placed_in_order(events: list[Event]) -> list[Placed]:
    return [Placed(event, place, place) for place, event in enumerate(events)]


# ---------------------------------------------------------------- the walk, told by candidates


@st.composite
def separate_patterns(draw: st.DrawFn) -> Pattern:
    """Components that no event can stand for two of, groups without a maximum unless it is strict."""
    shape = draw(st.sampled_from([shape for shape in SHAPES if len(shape) < 4]))
    strict = draw(st.booleans())
    most = st.sampled_from([None, 1, 2]) if strict else st.none()
    components = []
    for place, (kind, letter) in enumerate(zip(shape, "abc", strict=False)):
        least = draw(st.integers(1 if place in (0, len(shape) - 1) else 0, 2))
        times = Times(least, draw(most.map(lambda more, least=least: more and least + more)))
        components.append(Component(letter, typed(letter), times if kind == "group" else None))
    within = draw(st.sampled_from([Within(time_us=9 * SECOND), Within(events=9)]))
    contiguity = "strict" if strict else "relaxed"
    return Pattern(tuple(components), (), within, Context("next", "zero"), "completion", contiguity)


@given(separate_patterns(), st.one_of(streams(), dense_streams()))
def test_the_walk_takes_the_least_of_the_first_completions(pattern: Pattern, events: list[Event]) -> None:
    stream = placed_in_order(events)
    _, walked = PICKED_BY["next, zero"](pattern, stream)
    _, completed = PICKED_BY["each, zero"](pattern, stream)
    least: dict[int, Picked] = {}
    for one in sorted(completed, key=lambda one: forwards(one.production)):
        least.setdefault(one.selection, one)
    assert walked == sorted(least.values(), key=lambda one: one.selection)
