"""`why` never contradicts the engine: matches are those of `replay`, and what it calls false is false."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from random import Random

from hypothesis import given, note
from hypothesis import strategies as st

from spark_pace.core.expr import conjunction
from spark_pace.core.expr.canonical_text import canonical_text
from spark_pace.core.plan.fold import PythonFold, StateMachine
from spark_pace.core.plan.rule import PredicateSpan, Rule
from spark_pace.reasons import Why
from spark_pace.reasons.answer_parts import ComponentTest
from spark_pace.reasons.selections import MOST_SPANS
from tests.oracle.alternatives import alternatives
from tests.oracle.candidates import is_candidate
from tests.oracle.components import ends_the_group, is_fulfilled, opened_by, satisfies
from tests.oracle.contexts import CONTEXTS as CONTEXTS_OF_ORACLE
from tests.oracle.contexts import initiators
from tests.oracle.expressions import Bindings, conjuncts_of, holds
from tests.oracle.stream import Bound, Event, inside
from tests.support.any_rule import any_rule
from tests.support.forms import form
from tests.support.grouped_strategies import grouped_rules
from tests.support.strategies import CONTEXTS, rules
from tests.support.streams import dense_streams
from tests.support.told_by_why import Answers, Home, Told, answers, check_inner_order
from tests.support.told_tests import check_before, check_further, check_not_ended, check_tests, check_values

ASKED = 2  # events of a stream


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
            (selection,) = [one for one in answer.selections if one.selection_id == candidate.selection_id]
            assert candidate.status == "failed" or selection.state == "open"
            told = Told(found, answer, candidate, found.home(answer, candidate.selection_id))
            assert len({told.placed(one.event) for one in told.members}) == len(told.members)
            CHECKS[candidate.kind](told)
        assert answer.candidates or answer.matches or not could_begin(found, answer)


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
            (part,) = {one for one in conjuncts_of(having) if canonical_text(one) == candidate.condition}
            rows = [placed.row for placed in homes[candidate.selection_id]]
            here = Bindings(event=rows[0], bound={"open": rows[0]}, span=rows)
            assert not holds(part, here)
            check_values(candidate.values, part, here)
        else:
            assert candidate.selection_id not in homes


def could_begin(found: Answers, answer: Why) -> bool:
    """Whether the event can stand for a component, and an initiator stands before it, or is it."""
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
        if roles and any(one.seq <= here.seq for one in initiators(found.pattern, home)):
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


# ---------------------------------------------------------------- what is called false is false


def check_where(told: Told) -> None:
    every = (*told.pattern.conditions, *told.pattern.taking)
    stated = [[one.expr] if one.stated is None else conjuncts_of(one.stated) for one in every]
    (expr,) = {one for parts in stated for one in parts if canonical_text(one) == told.candidate.condition}
    assert not holds(expr, told.bindings())
    check_values(told.candidate.values, expr, told.bindings())


def check_within(told: Told) -> None:
    assert told.candidate.tried is not None
    first, last = told.placed(told.candidate.events[0].event), told.placed(told.candidate.tried.event)
    assert not inside(told.pattern.within, first, last)


def check_group(told: Told) -> None:
    candidate = told.candidate
    assert candidate.condition is not None
    if check_further(told):
        return
    name = candidate.condition.split(" ")[0]
    index = told.found.index(name)
    times = told.pattern.components[index].times
    assert times is not None
    ended = " ended it" in candidate.text
    if ended:
        (by,) = candidate.by
        if told.pattern.components[index].runs:
            taken = [one.event.seq for one in candidate.events if one.event.seq < by.event.seq]
            broken = by.event.seq == max(taken) + 1
        else:
            broken = False
        assert broken or ends_the_group(told.pattern, index, told.placed(by.event))
        assert candidate.events[0].event.seq < by.event.seq <= candidate.tried.event.seq
    if candidate.values:
        count = sum(member.component == name for member in {*told.members})
        over = ended and candidate.tried.component == name
        assert candidate.values == {"count": count - over}
        assert over or count < times.least or (times.most is not None and count > times.most)


def check_contiguity(told: Told) -> None:
    candidate = told.candidate
    assert candidate.tried is not None
    name = candidate.tried.component  # empty: a walk also says so of an event that can stand for none
    follows = told.pattern.components[told.found.index(name)].follows if name else "relaxed"
    assert candidate.condition == f"{'contiguity' if follows == 'relaxed' else 'follows'}: strict"
    assert "strict" in (told.pattern.contiguity, follows)
    for member in candidate.by:
        assert candidate.events[0].event.seq < told.placed(member.event).seq < candidate.tried.event.seq
        assert member.event not in [one.event for one in candidate.events]


def check_forbidden(told: Told) -> None:
    for member in told.candidate.by:
        index = told.found.index(member.component)
        assert told.pattern.components[index].negated
        assert satisfies(told.pattern, index, told.placed(member.event))
        here = told.bindings(member)
        asked = [one for one in told.pattern.where if index in one.components]
        assert all(is_fulfilled(told.pattern, one, here) for one in asked)
        assert told.candidate.events[0].event.seq < member.event.seq


def check_missing(told: Told) -> None:
    candidate, pattern = told.candidate, told.pattern
    assert candidate.tried is None
    if candidate.condition is None:
        assert candidate.status == "unfinished"
        assert not told.is_delivered
        return
    index = told.found.index(candidate.condition)
    first, (behind, *until) = told.placed(candidate.events[0].event), candidate.by
    used = {event["offset"] for match in told.matches for event in match["events"]}
    used |= {member.event.offset for member in candidate.events}
    uses_up = "that is not used up" in candidate.text or pattern.order == "conjunction"
    for placed in told.home:
        between = placed.seq > behind.event.seq and all(placed.seq < end.event.seq for end in until)
        if between and inside(pattern.within, first, placed):
            free = not uses_up or placed.event.offset not in used
            assert not (free and satisfies(pattern, index, placed))


def check_used_up(told: Told) -> None:
    assert told.candidate.tried is not None
    (match,) = [one for one in told.matches if one["out_seq"] == told.candidate.values["out_seq"]]
    assert told.candidate.tried.event.offset in [event["offset"] for event in match["events"]]


def check_closed(told: Told) -> None:
    """The selection that was opened by the first of two was closed by the other one's match, or ended."""
    assert told.candidate.tried is not None
    (opening, *closing), tried = told.candidate.by, told.placed(told.candidate.tried.event)
    assert any(one.seq == opening.event.seq for one in initiators(told.pattern, told.home))
    assert opening.event.seq <= told.candidate.events[0].event.seq
    if not closing:
        assert not inside(told.pattern.within, told.placed(opening.event), tried)
    for member in closing:
        assert told.placed(member.event).seq < tried.seq
        ends = [(one["events"][0]["seq"], one["events"][-1]["seq"]) for one in told.matches]
        if told.is_delivered:
            assert any(opening.event.seq <= first and last == member.event.seq for first, last in ends)
        else:
            opened, _ = CONTEXTS_OF_ORACLE[str(told.pattern.context)](told.pattern, told.home)
            (resolved,) = [one.resolved for one in opened if one.opening.seq == opening.event.seq]
            assert resolved == told.placed(member.event).position


def check_order(told: Told) -> None:
    if told.pattern.order == "conjunction":
        check_inner_order(told)
        return
    if told.pattern.order == "disjunction" and not told.candidate.events:
        assert told.found.index(told.candidate.condition) in [one[0] for one in alternatives(told.pattern)]
        return
    assert told.pattern.context.selection == "next" and told.candidate.condition is not None
    (here,) = [placed for placed in told.home if placed.event.offset == told.answer.offset]
    assert not satisfies(told.pattern, told.found.index(told.candidate.condition), here)


def check_not_chosen(told: Told) -> None:
    offsets = [member.event.offset for member in told.candidate.by]
    assert offsets in [[event["offset"] for event in match["events"]] for match in told.matches]
    if str(told.pattern.context) != "earliest, selected":
        bound = [Bound(told.placed(one.event), told.found.index(one.component)) for one in told.members]
        assert is_candidate(told.pattern, told.home, tuple(sorted(bound, key=lambda one: one.placed.seq)))


CHECKS: dict[str, Callable[[Told], None]] = {
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
    *map(
        form,
        (
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
        ),
    ),
    *(
        form(name + place)
        for name in ("until", "further", "optional_first", "optional_last", "neighbouring")
        for place in ("", "_in_span")
    ),
    any_rule(),
    any_rule(),
)


@given(RULES, dense_streams(), st.integers(0, 2**32 - 1))
def test_what_is_said_of_an_event_is_true(rule: Rule, events: list[Event], seed: int) -> None:
    check(rule, events, seed)
