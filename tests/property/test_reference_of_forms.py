"""The oracle agrees with other readings of conjunctions, earlier and opening events, and aggregates."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_pace.core.expr import Aggregate, Call, Column, Expr, Literal, Previous
from spark_pace.core.plan.rule import Context, EmitField, Pattern, PredicateSpan, Rule, Span
from spark_pace.core.plan.shape import sequences_of
from tests.oracle.contexts import CONTEXTS as PICKED_BY
from tests.oracle.contexts import Event, Selections
from tests.oracle.expressions import Bindings, holds
from tests.oracle.matches import evaluate, seen_inside
from tests.oracle.rules_stream import in_stream_order, keyed_streams
from tests.oracle.spans import spans_of
from tests.oracle.stream import Placed, Stream
from tests.property.test_reference import near
from tests.support.checks import NARROW
from tests.support.form_strategies import IN_CONJUNCTION, conjunctive_patterns
from tests.support.forms import form
from tests.support.strategies import CONTEXTS, forgetful, rule, schemas, spans, varied
from tests.support.streams import dense_streams, streams

STREAMS = st.one_of(dense_streams(), streams())

# ---------------------------------------------------------------- conjunctions, event after event

Taken = dict[int, Placed]  # by component
Production = tuple[tuple[int, int], ...]  # seq and component, in order of seq
Found = list[tuple[int, Production]]  # with the selection's id


def fits(pattern: Pattern, placed: Placed) -> list[int]:
    here = Bindings(event=placed.row)
    return [index for index, one in enumerate(pattern.components) if holds(one.predicate, here)]


def opens(pattern: Pattern, placed: Placed) -> bool:
    """Whether a set may begin with the event: as a component that stands behind no other in a sequence."""
    return any(index not in dict(before(pattern)).values() for index in fits(pattern, placed))


def before(pattern: Pattern) -> list[tuple[int, int]]:
    """Pairs of components, the first directly before the second in a sequence in the conjunction."""
    return [pair for one in sequences_of(pattern) for pair in itertools.pairwise(one)]


def longer(pattern: Pattern, sets: list[Taken], placed: Placed) -> list[Taken]:
    """The sets that the event makes of those so far, and of nothing."""
    return [
        {**taken, index: placed}
        for taken in [{}, *sets]
        for index in fits(pattern, placed)
        if index not in taken and all(first in taken for first, second in before(pattern) if second == index)
    ]


def split(pattern: Pattern, sets: list[Taken]) -> tuple[list[Taken], list[Taken]]:
    """The sets that wait for more events, and the whole ones that fulfil all conditions."""
    inside = [taken for taken in sets if near(pattern, min_of(taken), max_of(taken))]
    whole = [taken for taken in inside if len(taken) == len(pattern.components)]
    names = [one.name for one in pattern.components]
    return [taken for taken in inside if taken not in whole], [
        taken
        for taken in whole
        if all(
            holds(one.expr, Bindings(bound={names[index]: placed.row for index, placed in taken.items()}))
            for one in pattern.conditions
        )
    ]


def min_of(taken: Taken) -> Placed:
    return min(taken.values(), key=lambda placed: placed.seq)


def max_of(taken: Taken) -> Placed:
    return max(taken.values(), key=lambda placed: placed.seq)


def told(taken: Taken) -> Production:
    return tuple(sorted((placed.seq, index) for index, placed in taken.items()))


def earliest(sets: list[Taken]) -> Taken:
    return min(sets, key=lambda taken: list(zip(*told(taken), strict=True)))


def latest(sets: list[Taken]) -> Taken:
    return max(sets, key=lambda taken: list(zip(*reversed(told(taken)), strict=True)))


def with_all_open(pattern: Pattern, stream: Stream) -> Found:
    """Contexts in which every initiator opens a selection; sets whose events are used up are thrown away."""
    found, waiting = Found(), list[Taken]()
    ids: dict[Placed, int] = {}
    closed: set[Placed] = set()
    for placed in stream:
        if opens(pattern, placed):
            ids[placed] = len(ids)
        more, whole = split(pattern, longer(pattern, waiting, placed))
        waiting += more
        whole = [taken for taken in whole if min_of(taken) not in closed]
        if pattern.context.selection == "each":
            closed |= {min_of(taken) for taken in whole if pattern.close == "completion"}
        elif whole:
            whole = [(latest if pattern.context.selection == "latest" else earliest)(whole)]
        found += [(ids[min_of(taken)], told(taken)) for taken in whole]
        if pattern.context.consumption == "selected" and whole:
            used = set(whole[0].values())
            waiting = [taken for taken in waiting if not used & set(taken.values())]
    return found


def with_one_open(pattern: Pattern, stream: Stream) -> Found:
    found, start, selection = Found(), 0, -1
    while start < len(stream):
        start += 1
        opening = stream[start - 1]
        if not opens(pattern, opening):
            continue
        selection += 1
        waiting = list[Taken]()
        for placed in stream[start - 1 :]:
            if not near(pattern, opening, placed):
                break
            more, whole = split(pattern, longer(pattern, waiting, placed))
            waiting += more
            if whole:
                found += [(selection, one) for one in chosen(pattern, stream[start - 1 :], whole)]
                start = stream.index(placed) + 1
                break
    return found


def chosen(pattern: Pattern, since: Stream, whole: list[Taken]) -> list[Production]:
    if pattern.context.selection == "each":
        return [told(taken) for taken in whole]
    if pattern.context.selection == "latest":
        return [told(latest(whole))]
    last = max_of(whole[0]).seq
    return [
        tuple((one.seq, min(fits(pattern, one))) for one in since if one.seq <= last and fits(pattern, one))
    ]


def as_found(selections: Selections) -> Found:
    return [
        (one.selection, tuple((bound.placed.seq, bound.component) for bound in one.production))
        for one in selections[1]
    ]


@pytest.mark.parametrize("context", IN_CONJUNCTION, ids=str)
@NARROW
@given(data=st.data())
def test_conjunctions_are_what_is_found_event_after_event(context: Context, data: st.DataObject) -> None:
    close_window = context == CONTEXTS[0] and data.draw(st.booleans())
    pattern = data.draw(
        conjunctive_patterns(context, in_span=data.draw(st.booleans()), close_window=close_window)
    )
    stream = [Placed(event, place, place) for place, event in enumerate(data.draw(STREAMS))]
    one_open = context.consumption == "selected" and context.selection != "earliest"
    found = (with_one_open if one_open else with_all_open)(pattern, stream)
    assert sorted(as_found(PICKED_BY[str(context)](pattern, stream))) == sorted(found)


# ------------------------------------- earlier events as columns, the opening event as constants


def rewritten(expr: Expr, opening: dict[str, Any]) -> Expr:
    if isinstance(expr, Previous):
        return Column(None, f"{expr.attribute} {expr.back} before", expr.type)
    if isinstance(expr, Column) and expr.component == "open":
        return Literal(opening[expr.attribute], expr.type)
    if isinstance(expr, Call):
        return replace(expr, arguments=tuple(rewritten(one, opening) for one in expr.arguments))
    return expr


def rewritten_pattern(pattern: Pattern, opening: dict[str, Any]) -> Pattern:
    return replace(
        pattern,
        components=tuple(
            replace(one, predicate=rewritten(one.predicate, opening)) for one in pattern.components
        ),
        where=tuple(
            one if one.is_order else replace(one, expr=rewritten(one.expr, opening)) for one in pattern.where
        ),
    )


def with_columns(stream: Stream) -> list[Placed]:
    """The events with the attributes of those up to three before."""
    rows = [dict(placed.row) for placed in stream]
    for place, row in enumerate(rows):
        for back in (1, 2, 3):
            before = stream[place - back].row if place >= back else dict.fromkeys(stream[0].row)
            row |= {f"{name} {back} before": value for name, value in before.items()}
    return [
        Placed(replace(placed.event, row=row), placed.place, placed.seq)
        for placed, row in zip(stream, rows, strict=True)
    ]


def streams_of_pattern(
    rule: Rule, events: list[Event]
) -> Iterator[tuple[list[Placed], list[Placed], dict[str, Any]]]:
    """What a pattern looks at as the oracle has it, and as the events alone say; the opening event."""
    for _, stream in keyed_streams(rule, in_stream_order(rule, events)):
        if rule.span is None:
            yield stream, with_columns(stream), {}
            continue
        for span in spans_of(rule, stream):
            opening = dict(span.events[0].row) if isinstance(rule.span, PredicateSpan) else {}
            yield seen_inside(rule, span), with_columns(span.events), opening


@pytest.mark.parametrize(
    "name", ["prev", "prev_in_span", "prev_in_conjunction", "open", "open_in_conjunction", "all_in_one"]
)
@NARROW
@given(data=st.data())
def test_earlier_events_are_columns_and_the_opening_event_is_constants(
    name: str, data: st.DataObject
) -> None:
    rule = data.draw(form(name).flatmap(forgetful) if data.draw(st.booleans()) else form(name))
    assert rule.pattern is not None
    pick = PICKED_BY[str(rule.pattern.context)]
    for stream, other, opening in streams_of_pattern(rule, data.draw(STREAMS)):
        found = as_found(pick(rewritten_pattern(rule.pattern, opening), other))
        assert as_found(pick(rule.pattern, stream)) == found


@given(form("prev"), st.booleans().flatmap(lambda many: dense_streams() if many else streams()), st.data())
def test_a_rule_with_earlier_events_has_all_events_that_pass_its_filter(
    drawn: Rule, events: list[Event], data: st.DataObject
) -> None:
    rule = data.draw(forgetful(drawn)) if data.draw(st.booleans()) else drawn
    kept = [one for one in events if rule.filter is None or holds(rule.filter, Bindings(event=one.row))]
    in_streams = keyed_streams(rule, in_stream_order(rule, events))
    assert sum(len(stream) for _, stream in in_streams) == len(kept)
    for _, stream in in_streams:
        for one, next_one in itertools.pairwise(stream):
            assert next_one.before[-1] == one.row
            gap_us = next_one.time - one.time
            assert rule.forget_key_after_us is None or gap_us <= rule.forget_key_after_us


# ---------------------------------------------------------------- aggregates as a Python operator's rows


@given(spans(), schemas(), STREAMS, st.data())
def test_a_span_that_aggregates_is_one_with_an_operator_that_does(
    span: Span, schema: Any, events: list[Event], data: st.DataObject
) -> None:
    with_operator = varied(data.draw, rule(schema, None, span, "tests.support.operators:summary"))
    computed = (
        EmitField("n", "BIGINT", Aggregate("count", None, None, "BIGINT")),
        EmitField("first", "STRING", Aggregate("first", None, "id", "STRING")),
        EmitField("last", "STRING", Aggregate("last", None, "id", "STRING")),
        EmitField(
            "total",
            "BIGINT",
            Call("coalesce", (Aggregate("sum", None, "x", "BIGINT"), Literal(0, "BIGINT")), "BIGINT"),
        ),
    )
    aggregating = replace(with_operator, operator=None, emit=computed)
    assert evaluate(aggregating, events) == evaluate(with_operator, events)
    several = Call(">", (Aggregate("count", None, None, "BIGINT"), Literal(2, "BIGINT")), "BIGINT")
    matches = [match for match in evaluate(with_operator, events) if match.fields["n"] > 2]
    assert evaluate(replace(aggregating, having=several), events) == matches
