"""`why` never contradicts the engine: matches are those of `replay`, and what it calls false is false."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from random import Random

import pytest
from hypothesis import given, note
from hypothesis import strategies as st

from spark_pace.core.expr import conjunction
from spark_pace.core.expr.canonical_text import canonical_text
from spark_pace.core.plan.rule import PredicateSpan, PythonFold, Rule, StateMachine
from spark_pace.reasons import Why, near_misses
from spark_pace.reasons.answer import ComponentTest
from spark_pace.reasons.explanation import MOST_SPANS
from tests.oracle.components import opened_by, satisfies
from tests.oracle.expressions import Bindings, conjuncts_of, holds
from tests.oracle.stream import Event
from tests.support.drawn_rules import FORMS, any_rule, rules
from tests.support.streams import dense_streams
from tests.support.told_by_why import Answers, Home, Told, answers
from tests.support.told_misses import check_miss
from tests.support.told_tests import check_before, check_not_ended, check_tests, check_values

ASKED = 2  # events of a stream


@pytest.fixture(autouse=True, scope="module")
def _as_with_few_components() -> Iterator[None]:
    """Let all events of a short stream be tried, however many components and groups there are."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(near_misses, "MOST_GROUPED", near_misses.MOST_TRIED**3)
        patch.setattr(near_misses, "MOST_TRIED", near_misses.MOST_TRIED**3)
        yield


def check(rule: Rule, events: list[Event], seed: int) -> None:
    places = Random(seed).sample(range(len(events)), ASKED)
    found = answers(rule, events, set(places))
    for place, answer in found.told.items():
        note(f"{place}: {answer}")
        is_called = not isinstance(rule.fold, PythonFold)  # `why` does not call a fold's function
        expected = found.with_event(answer) if is_called else []
        assert [match.out_seq for match in answer.matches] == expected
        if rule.fold is not None:
            check_folded(found, answer)
            continue
        check_components(found, answer)
        there = {selection.selection_id for selection in answer.selections if selection.there}
        assert {match.selection_id for match in answer.matches} <= there
        undelivered = {one.selection_id for one in answer.selections if one.state == "open"}
        assert there - undelivered <= {*found.homes(answer)} <= there or rule.span is None
        assert bool(answer.untold) == (rule.operator is not None)
        if rule.pattern is None:
            check_aggregated(found, answer)
            continue
        for candidate in answer.candidates:
            told = Told(found, answer, candidate, found.home(answer, candidate.selection_id))
            assert len({told.placed(one.event) for one in told.members}) == len(told.members)
            check_miss(told)
        assert answer.candidates or answer.matches or not stands_for_one(found, answer)


def check_folded(found: Answers, answer: Why) -> None:
    """The state before the event and the move that it takes are those of a walk from its first event."""
    stream, machine, step = found.stream(answer), found.rule.fold, answer.fold
    assert bool(answer.untold) == (found.rule.function is not None)
    if stream is None or not isinstance(machine, StateMachine):
        assert step is None or step.before is None
        return
    state = 0
    for placed in stream:
        here, taken = Bindings(event=placed.row, before=placed.before), None
        for number, move in enumerate(machine.moves, 1):
            fits = move.condition is None or holds(machine.conditions[move.condition], here)
            taken = number if taken is None and state in move.sources and fits else taken
        if placed.event.offset == answer.offset:
            assert step is not None
            assert (step.before, step.move) == (machine.states[state], taken)
            return
        state = state if taken is None else machine.moves[taken - 1].target
    raise AssertionError("the event is not in its stream")


def check_aggregated(found: Answers, answer: Why) -> None:
    """Every span that holds the event has its match, or a condition that is false of its events."""
    if found.rule.operator is not None:
        return
    homes, having = found.homes(answer), found.rule.having
    matched = {match.selection_id for match in answer.matches}
    failed = {one.selection_id for one in answer.selections if one.there} - matched
    assert len(answer.candidates) + answer.more_candidates >= len(failed)
    assert {one.selection_id for one in answer.candidates} <= failed or answer.more_selections
    for candidate in answer.candidates:
        if candidate.status == "failed":
            assert having is not None
            (reason,) = candidate.reasons
            (part,) = {one for one in conjuncts_of(having) if canonical_text(one) == reason.condition}
            rows = [placed.row for placed in homes[candidate.selection_id]]
            here = Bindings(event=rows[0], bound={"open": rows[0]}, span=rows)
            assert not holds(part, here)
            check_values(reason.values, part, here)
        else:
            assert candidate.selection_id not in homes


def stands_for_one(found: Answers, answer: Why) -> bool:
    """Whether the event can stand for a component."""
    looked_at = [one.selection_id for one in answer.selections if one.there][:MOST_SPANS]
    spans = [home for number, home in found.homes(answer).items() if number in looked_at]
    stream = found.stream(answer)
    homes = spans if found.rule.span is not None else [] if stream is None else [stream]
    for home in homes:
        (here,) = [placed for placed in home if placed.event.offset == answer.offset]
        roles = [
            index
            for index, one in enumerate(found.pattern.components)
            if not one.negated and satisfies(found.pattern, index, here)
        ]
        if roles:
            return True
    return False


# ---------------------------------------------------------------- what the event can be


def check_components(found: Answers, answer: Why) -> None:
    """What is said of single conditions is so, and nothing that can be said is left out."""
    rule, stream, row = found.rule, found.stream(answer), found.events[answer.offset].row
    if rule.filter is not None:
        before = found.before_filter(answer)
        check_tests(answer.filter, rule.filter, Bindings(event=row, before=before), known=True)
    assert (answer.seq is None) == (stream is None)
    home = stream if rule.span is None else None
    check_in(found, answer, answer.components, home)
    for selection in answer.selections:
        if selection.there and rule.pattern is not None:
            inner = found.home(answer, selection.selection_id) if rule.span is not None else None
            check_in(found, answer, selection.components, inner)


def check_in(found: Answers, answer: Why, told: Iterable[ComponentTest], home: Home | None) -> None:
    """`home`: what stands before the event, as far as that is known."""
    rule, row = found.rule, found.events[answer.offset].row
    listed = () if rule.pattern is None else rule.pattern.every
    conditions = {one.name: one.predicate for each in listed for one in each.members or [each]}
    ends = {one.name: one.until.predicate for one in listed if one.until is not None}
    if isinstance(rule.span, PredicateSpan):
        closes = conjunction([rule.span.close, *rule.span.close_where])
        conditions |= {"span opens": rule.span.open, "span closes": closes}
    here, placed = Bindings(event=row), None
    if home is not None:
        (placed,) = [one for one in home if one.event.offset == answer.offset]
        here = Bindings(event=row, before=placed.before, bound=opened_by(placed))
    for component in told:
        of_itself = component.conditions
        if rule.pattern is not None and component.component == rule.pattern.components[0].name:
            of_itself = of_itself[: len(of_itself) - len(rule.pattern.absences)]
            check_before(rule.pattern, placed, component.conditions[len(of_itself) :])
        if component.component in ends:
            *of_itself, last = of_itself
            check_not_ended(last, ends[component.component], here, known=home is not None)
        check_tests(of_itself, conditions[component.component], here, known=home is not None)
        tests = [test.holds for test in component.conditions]
        assert component.holds == (False if False in tests else None if None in tests else True)


RULES = st.one_of(
    *map(rules, ("plain", "plain, where", "grouped", "grouped")),
    *(
        rules(FORMS[name])
        for name in (
            "conjunction",
            "prev",
            "prev_in_span",
            "open",
            "all_in_one",
            "aggregates",
            "disjunction",
            "alternatives",
            "previous_values",
            "filtered_back",
        )
    ),
    *(
        rules(FORMS[name + place])
        for name in ("until", "further", "optional_first", "optional_last", "neighbouring")
        for place in ("", "_in_span")
    ),
    any_rule(),
    any_rule(),
)


@given(RULES, dense_streams(), st.integers(0, 2**32 - 1))
def test_what_is_said_of_an_event_is_true(rule: Rule, events: list[Event], seed: int) -> None:
    check(rule, events, seed)
