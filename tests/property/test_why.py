"""`why` never contradicts the engine: matches are those of `replay`, and what it calls false is false."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

from hypothesis import given, note
from hypothesis import strategies as st

from spark_pace.core.expr.render import to_text
from spark_pace.core.plan.rule import Component, Pattern, Rule
from spark_pace.io.replaying import replay_table
from spark_pace.io.replaying.why import Why, why
from spark_pace.io.replaying.why.answer import Candidate, EventRef, Member
from tests.oracle.expressions import Bindings, holds
from tests.oracle.stream import Event, Placed, inside
from tests.support.any_rule import any_rule
from tests.support.grouped_strategies import grouped_rules
from tests.support.results import table_of
from tests.support.strategies import CONTEXTS, rules
from tests.support.streams import dense_streams

ASKED = 2  # events of a stream


@dataclass(frozen=True)
class Answers:
    """The answers for some events of a table, by their rows, and what the oracle needs to check them."""

    rule: Rule
    events: list[Event]
    matches: list[dict[str, Any]]
    told: dict[int, Why]

    @property
    def pattern(self) -> Pattern:
        assert self.rule.pattern is not None
        return self.rule.pattern

    def row(self, ref: EventRef) -> dict[str, Any]:
        return self.events[ref.offset].row

    def placed(self, ref: EventRef) -> Placed:
        return Placed(self.events[ref.offset], ref.offset, ref.seq)

    def bindings(self, members: list[Member], forbidding: Member | None = None) -> Bindings:
        grouped = {one.name for one in self.pattern.components if one.times is not None}
        groups = {name: [self.row(m.event) for m in members if m.component == name] for name in grouped}
        bound = {member.component: self.row(member.event) for member in members}
        if forbidding is not None:
            bound[forbidding.component] = self.row(forbidding.event)
        return Bindings(bound=bound, groups=groups)


def answers(rule: Rule, events: list[Event], places: set[int]) -> Answers:
    table = table_of(rule, events).select([field.name for field in rule.schema.fields])
    matches = [] if rule.operator else replay_table([rule], table).matches.to_pylist()
    told = {place: why([rule], table, rule=rule.name, at=f"table:{place}") for place in places}
    return Answers(rule, events, matches, told)


def check(rule: Rule, events: list[Event], seed: int) -> None:
    places = Random(seed).sample(range(len(events)), ASKED)
    found = answers(rule, events, set(places))
    for place, answer in found.told.items():
        note(f"{place}: {answer}")
        with_it = [
            one["out_seq"] for one in found.matches if place in [event["offset"] for event in one["events"]]
        ]
        assert [match.out_seq for match in answer.matches] == with_it
        if answer.untold:
            continue
        there = {selection.selection_id for selection in answer.selections if selection.there}
        assert {match.selection_id for match in answer.matches} <= there
        for candidate in answer.candidates:
            assert candidate.selection_id in {one.selection_id for one in answer.selections}
            CHECKS[candidate.kind](found, answer, candidate)
        if (
            rule.span is None
            and rule.forget_key_after_us is None
            and answer.seq is not None
            and not answer.matches
        ):
            assert answer.candidates or not could_begin(found, answer)


def could_begin(found: Answers, answer: Why) -> bool:
    """Whether the event can stand for a component, and an initiator stands before it."""
    roles = [one.component for one in answer.components if one.holds and not one.negated]
    here, initiator = found.events[answer.offset], found.pattern.components[0]
    before = any(other.time < here.time and can_be(found, initiator, other, here) for other in found.events)
    return initiator.name in roles or (bool(roles) and before)


def can_be(found: Answers, component: Component, event: Event, beside: Event) -> bool:
    """Whether an event is in the rule's stream of another's key, and can stand for a component."""
    passes = found.rule.filter is None or holds(found.rule.filter, Bindings(event=event.row))
    same = all(event.row[name] == beside.row[name] for name in found.rule.partition_by)
    return passes and same and holds(component.predicate, Bindings(event=event.row))


# ---------------------------------------------------------------- what is called false is false


def members_of(candidate: Candidate) -> list[Member]:
    tried = [] if candidate.tried is None else [candidate.tried]
    return [*candidate.events, *tried]


def check_where(found: Answers, answer: Why, candidate: Candidate) -> None:
    (expr,) = {one.expr for one in found.pattern.where if to_text(one.expr) == candidate.condition}
    assert not holds(expr, found.bindings(members_of(candidate)))


def check_within(found: Answers, answer: Why, candidate: Candidate) -> None:
    assert candidate.tried is not None
    first, last = found.placed(candidate.events[0].event), found.placed(candidate.tried.event)
    assert not inside(found.pattern.within, first, last)


def check_group(found: Answers, answer: Why, candidate: Candidate) -> None:
    assert candidate.condition is not None
    name = candidate.condition.split(" ")[0]
    (times,) = {one.times for one in found.pattern.components if one.name == name}
    assert times is not None
    if candidate.values:
        count = sum(member.component == name for member in {*members_of(candidate)})
        assert candidate.values == {"count": count}
        assert count < times.least or (times.most is not None and count > times.most)


def check_contiguity(found: Answers, answer: Why, candidate: Candidate) -> None:
    assert candidate.tried is not None
    for member in candidate.by:
        assert candidate.events[0].event.seq < member.event.seq < candidate.tried.event.seq
        assert member.event not in [one.event for one in candidate.events]


def check_forbidden(found: Answers, answer: Why, candidate: Candidate) -> None:
    for member in candidate.by:
        index, component = next(
            (k, one) for k, one in enumerate(found.pattern.components) if one.name == member.component
        )
        assert component.negated
        assert holds(component.predicate, Bindings(event=found.row(member.event)))
        here = found.bindings(members_of(candidate), member)
        assert all(holds(one.expr, here) for one in found.pattern.where if index in one.components)
        assert candidate.events[0].event.seq < member.event.seq


def check_missing(found: Answers, answer: Why, candidate: Candidate) -> None:
    assert candidate.tried is None
    if found.rule.span is not None or candidate.text.startswith("no event can be"):
        return
    within = found.pattern.within
    if found.rule.forget_key_after_us is not None or (within is not None and within.events is not None):
        return
    component = next(one for one in found.pattern.components if one.name == candidate.condition)
    first, last = (found.events[one.event.offset] for one in (candidate.events[0], *candidate.by))
    used = {event["offset"] for match in found.matches for event in match["events"]}
    for place, event in enumerate(found.events):
        close = within is None or event.time - first.time <= (within.time_us or 0)
        free = str(found.pattern.context) != "earliest, selected" or place not in used
        assert not (event.time > last.time and close and free and can_be(found, component, event, first))


def check_used_up(found: Answers, answer: Why, candidate: Candidate) -> None:
    assert candidate.tried is not None
    (match,) = [one for one in found.matches if one["out_seq"] == candidate.values["out_seq"]]
    assert candidate.tried.event.offset in [event["offset"] for event in match["events"]]


def check_closed(found: Answers, answer: Why, candidate: Candidate) -> None:
    assert candidate.tried is not None
    (selection,) = [one for one in answer.selections if one.selection_id == candidate.selection_id]
    assert selection.closed_by is None or selection.closed_by.seq < candidate.tried.event.seq


def check_order(found: Answers, answer: Why, candidate: Candidate) -> None:
    assert found.pattern.context.selection == "next"
    component = next(one for one in found.pattern.components if one.name == candidate.condition)
    assert not holds(component.predicate, Bindings(event=found.events[answer.offset].row))


def check_not_chosen(found: Answers, answer: Why, candidate: Candidate) -> None:
    offsets = [member.event.offset for member in candidate.by]
    assert offsets in [[event["offset"] for event in match["events"]] for match in found.matches]


CHECKS: dict[str, Callable[[Answers, Why, Candidate], None]] = {
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


CHOSEN = st.sampled_from(CONTEXTS)
RULES = st.one_of(
    CHOSEN.flatmap(lambda context: rules(context)),
    CHOSEN.flatmap(lambda context: rules(context, where=True)),
    CHOSEN.flatmap(lambda context: grouped_rules(context)),
    CHOSEN.flatmap(lambda context: grouped_rules(context)),
    any_rule(),
)


@given(RULES, dense_streams(), st.integers(0, 2**32 - 1))
def test_what_is_said_of_an_event_is_true(rule: Rule, events: list[Event], seed: int) -> None:
    check(rule, events, seed)
