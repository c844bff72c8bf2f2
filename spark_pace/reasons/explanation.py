"""Builds the answer for one event: its tests, its selections, its matches, and what failed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_pace.core.columns import NOTHING_US, TIME, Ints
from spark_pace.core.contents import ContentsOfEvents
from spark_pace.core.expr import EventColumns, evaluate_mask
from spark_pace.core.expr.canonical_text import canonical_text
from spark_pace.core.match.stream import Stream
from spark_pace.core.match.window import Horizon
from spark_pace.core.operate.aggregates import SpanAggregates
from spark_pace.core.operate.span_patterns import Inside
from spark_pace.core.plan.conditions import conjuncts
from spark_pace.core.plan.fold import PythonFold, StateMachine
from spark_pace.core.plan.previous_tests import filters_back
from spark_pace.core.plan.rule import CountSpan, PredicateSpan, Rule
from spark_pace.core.split.folds import columns_of_states, walk
from spark_pace.core.tables import with_column
from spark_pace.reasons.answer import Candidate, ConditionTest, FoldStep, Reason, Why, iso, plain
from spark_pace.reasons.condition_tests import (
    component_tests,
    filter_tests,
    filter_tests_beside,
    move_names,
    passing,
    rows_told,
    tests_beside,
)
from spark_pace.reasons.near_misses import MOST_CANDIDATES, near_misses
from spark_pace.reasons.question import Asked, Place, Source, asked, bad_reason, is_of_input, late_reason
from spark_pace.reasons.rule_stream import (
    MOST_MATCHES,
    OfKey,
    at_source,
    before_filter,
    having,
    match_told,
    matches_of_key,
    of_key,
)
from spark_pace.reasons.stretch import (
    OfSpan,
    Opened,
    Stretch,
    in_values,
    spans_in,
    with_decisions,
)

MOST_SELECTIONS = 20
MOST_SPANS = 5  # spans for which the answer says what failed
MOST_UPPER = 3  # matches of each lower rule that are followed upwards


def explained(source: Source, place: Place) -> Why:
    """The whole answer for the event at a place."""
    rule, reason = source.rule, bad_reason(source, place)
    told = place.no_record if reason is None else f"it is a bad record: {reason}"
    why = Why(rule.name, None, place.source, place.offset, None, None, told, {})
    if told is not None:
        return why
    if not at_source(source.read.events, place.source, place.offset).any():
        return _of_input(source, place, why)
    events = source.read.events
    event = events.filter(pa.array(at_source(events, place.source, place.offset)))
    attributes = {
        one.name: plain(event[one.name][0].as_py()) for one in rule.schema.fields if one.name[0] != "@"
    }
    why = replace(
        why,
        event_time=iso(event[TIME][0].as_py()),
        attributes=attributes,
        filter=_filter_tests(source, place, event),
        components=component_tests(rule, event),
        passing=passing(rule, source.on_time),
        of_events=source.on_time.num_rows,
        untold=_untold(rule),
    )
    if place.row is None:
        late = late_reason(source, place)
        told = _not_in_stream(source, event, why) if late is None else f"it is late: {late}"
        return _with_lower(source, place, replace(why, not_in_stream=told))
    assert source.task is not None
    own = of_key(source.task, place.row)
    why = replace(why, key=own.key, seq=int(own.stream.seq[own.row]))
    return _with_lower(source, place, _in_stream(source, own, why))


def _filter_tests(source: Source, place: Place, event: pa.Table) -> tuple[ConditionTest, ...]:
    if filters_back(source.rule):
        own = before_filter(source.plan, source.on_time, place.source, place.offset)
        if own is not None:
            return filter_tests_beside(source.rule, (own.stream, own.row, 0))
    return filter_tests(source.rule, event)


def _with_lower(source: Source, place: Place, why: Why) -> Why:
    if source.lower is None:
        return why
    why = replace(why, made_of=source.lower.made_of(place.source, place.offset, why.matches))
    return _with_levels(source, place, why) if is_of_input(source, place) else why


def _of_input(source: Source, place: Place, why: Why) -> Why:
    """The answer for an event that a rule over rules does not read."""
    names = [one.rule.name for one in source.lower_sources()]
    why = replace(why, not_in_stream=f"its events are matches of {', '.join(names)}")
    return _with_levels(source, place, why)


def _with_levels(source: Source, place: Place, why: Why) -> Why:
    """Add what lower rules say of an event of the input, then what the rule says of their matches with it."""
    lower = tuple(explained(one, asked(one, place.asked)) for one in source.lower_sources())
    upper = []
    for one in lower:
        found = [*one.matches, *(match for beside in one.upper for match in beside.matches)]
        numbers = list(dict.fromkeys(match.out_seq for match in found))
        at = (Asked(f"{one.rule}:{number}", None) for number in numbers[:MOST_UPPER])
        upper += [explained(source, asked(source, position)) for position in at]
    return replace(why, lower=lower, upper=tuple(upper))


def _untold(rule: Rule) -> tuple[str, ...]:
    if rule.operator:
        return ("what the operator makes of a span",)
    return ("what the function makes of an event",) if rule.function else ()


def _not_in_stream(source: Source, event: pa.Table, why: Why) -> str:
    heartbeat = source.plan.heartbeat
    if heartbeat is not None and evaluate_mask(heartbeat, EventColumns(event))[0]:
        return f"it is a heartbeat: {canonical_text(heartbeat)}"
    false = [test.condition for test in why.filter if test.holds is False]
    if false:
        return f"the filter does not hold: {false[0]}"
    planned = source.plan.rules[0]
    every = planned.takes_all if planned.filtering is None else planned.filtering.others_count
    if every or any(component.holds is not False for component in why.components):
        equal = ", ".join(source.plan.order.deduplicate_on)
        return f"it is a repeat: an event not long before is equal in {equal}"
    return "it matches no component"


def _in_stream(source: Source, own: OfKey, why: Why) -> Why:
    rule, pattern = source.rule, source.rule.pattern
    if isinstance(rule.fold, PythonFold):
        return replace(why, fold=FoldStep())
    if rule.operator is not None:  # which is not called
        return _with_spans(rule, own, spans_in(rule, own.stream, own.horizon), why)
    matches = matches_of_key(source.plan, source.on_time, own)
    if rule.fold is not None:
        return folded(rule, rule.fold, own, _with_matches(own, matches, why))
    if rule.rows is not None:
        return rows_told(rule.rows, own, _with_matches(own, matches, why))
    if pattern is None:
        spans = spans_in(rule, own.stream, own.horizon)
        return aggregated(rule, own, spans, matches, _with_spans(rule, own, spans, why))
    why = _with_matches(own, matches, why)
    if rule.span is not None:
        spans = spans_in(rule, own.stream, own.horizon)
        here = spans.at(own.row)[::-1].tolist()
        stretches = (_span(rule, own, spans, index) for index in here[:MOST_SPANS])
        found = [one for stretch, row in stretches for one in near_misses(stretch, row)]
        found.sort(key=lambda candidate: -len(candidate.events))
        return _with_candidates(_with_spans(rule, own, spans, why), found, len(here[MOST_SPANS:]))
    known = tests_beside(rule, (own.stream, own.row, 0))
    stretch = Stretch.of(own.stream, pattern, own.horizon, None)
    why = _with_selections(why, own.stream, stretch.selections, own.row)
    newest_us = pc.max(source.given.on_time[TIME]).as_py()
    why = replace(
        why,
        components=tuple(known.get(one.component, one) for one in why.components),
        selections=with_decisions(why.selections, matches, newest_us),
    )
    return _with_candidates(why, near_misses(stretch, own.row))


def _with_candidates(why: Why, found: Sequence[Candidate], more: int = 0) -> Why:
    told, left = tuple(found[:MOST_CANDIDATES]), len(found[MOST_CANDIDATES:])
    return replace(why, candidates=told, more_candidates=more + left)


def _with_matches(own: OfKey, matches: pa.Table, why: Why, rows: Ints | None = None) -> Why:
    """Add the matches with the event, or those of some rows of the table."""
    rows = having(matches, own) if rows is None else rows
    told = map(match_told, matches.take(pa.array(rows[:MOST_MATCHES])).to_pylist())
    return replace(why, matches=tuple(told), more_matches=len(rows[MOST_MATCHES:]))


def _with_selections(why: Why, stream: Stream, opened: Opened, row: int) -> Why:
    here = opened.at(row)
    told = [opened.told(stream, index, there=True) for index in here[::-1][:MOST_SELECTIONS].tolist()]
    if not told:
        told = [opened.told(stream, index, there=False) for index in opened.before(row).tolist()]
    more = max(0, len(here) - MOST_SELECTIONS)
    return replace(why, selections=tuple(told), more_selections=more)


def _with_spans(rule: Rule, own: OfKey, spans: Opened, why: Why) -> Why:
    """Add the spans that hold the event, each with the tests that depend on it."""
    why = _with_selections(why, own.stream, spans, own.row)
    first = spans.openings[spans.at(own.row)[::-1]].tolist()
    tests = (tuple(tests_beside(rule, (own.stream, own.row, row)).values()) for row in first)
    there = [replace(one, components=next(tests)) if one.there else one for one in why.selections]
    return replace(why, selections=tuple(there))


def _span(rule: Rule, own: OfKey, spans: Opened, index: int) -> tuple[Stretch, int]:
    """The stretch of a span, as the engine sees it, and the row of the event in it."""
    assert rule.pattern is not None
    low, waits = int(spans.openings[index]), spans.waits(index)
    rows = np.arange(low, spans.last_row()[index] + 1)
    seen = Inside.of(rule, own.stream).take(rows, np.full(len(rows), low), np.zeros(1, np.int64)).events
    events = own.stream.events.slice(low, len(rows)).combine_chunks()
    for name in seen.column_names:  # the masks, and what is the opening event's
        events = with_column(events, name, seen[name].combine_chunks())
    horizon = Horizon(own.horizon.frontier_us, np.ones(1, np.bool_), own.horizon.seen_us)
    delivered = not (waits and isinstance(rule.span, CountSpan))
    span = OfSpan(int(spans.ids[index]), waits, delivered, isinstance(rule.span, PredicateSpan))
    return Stretch.of(Stream(events, np.zeros(1, np.int64)), rule.pattern, horizon, span), own.row - low


def aggregated(rule: Rule, own: OfKey, spans: Opened, matches: pa.Table, why: Why) -> Why:
    """Add to the answer the matches of the spans that hold the event, and why its other spans have none."""
    here = spans.at(own.row)
    opened_us: Ints = matches["opened_at"].cast(pa.int64()).to_numpy()
    ids: Ints = matches["selection_id"].to_numpy()
    mine = np.flatnonzero(np.isin(ids, spans.ids[here]) & np.isin(opened_us, spans.opened_us[here]))
    failed = [index for index in here[::-1].tolist() if spans.ids[index] not in ids[mine]]
    found = [_failed(rule, own, spans, index) for index in failed[:MOST_SPANS]]
    return _with_candidates(_with_matches(own, matches, why, mine), found, len(failed[MOST_SPANS:]))


def _failed(rule: Rule, own: OfKey, spans: Opened, index: int) -> Candidate:
    """Explain why a span has no match: it was not full, or its condition is false."""
    number = int(spans.ids[index])
    if isinstance(rule.span, CountSpan) and spans.waits(index):
        return Candidate(number, (), "unfinished", (Reason("missing", "waits for the end of its span"),))
    ends = spans.openings[index : index + 1], spans.last_row()[index : index + 1] + 1
    columns = SpanAggregates(ContentsOfEvents(own.stream), *ends)
    conditions = [] if rule.having is None else conjuncts(rule.having)
    part = next(one for one in conditions if not evaluate_mask(one, columns)[0])
    text, values = in_values(columns, part)
    return Candidate(number, (), "failed", (Reason("where", text, canonical_text(part), values),))


def folded(rule: Rule, machine: StateMachine, own: OfKey, why: Why) -> Why:
    """Add the state before the event, the tests of the moves that leave it, and the move that is taken."""
    begin = {column.name: pa.nulls(1, column.type) for column in columns_of_states(rule)}
    walked = walk(own.stream, machine, begin)
    state, since = int(walked.before[own.row]), int(walked.before_since[own.row])
    number = int(walked.taken[own.row])
    taken = None if number < 0 else machine.moves[number]
    step = FoldStep(
        before=machine.states[state],
        since=None if since == NOTHING_US else iso(since),
        after=machine.states[state if taken is None else taken.target],
        move=None if taken is None else number + 1,
    )
    known = tests_beside(rule, (own.stream, own.row, 0))
    moves = zip(move_names(machine), machine.moves, strict=True)
    leaving = {name for name, move in moves if state in move.sources}
    told = tuple(known.get(one.component, one) for one in why.components if one.component in leaving)
    return replace(why, fold=step, components=told)
