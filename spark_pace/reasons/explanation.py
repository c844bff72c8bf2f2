"""Builds the answer for one event: its tests, its selections, its matches, and what failed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_pace.core.columns import TIME, Ints
from spark_pace.core.expr import EventColumns, evaluate_mask
from spark_pace.core.expr.canonical_text import canonical_text
from spark_pace.core.match.stream import Stream
from spark_pace.core.match.window import Horizon
from spark_pace.core.operate.span_patterns import Inside
from spark_pace.core.plan.fold import PythonFold
from spark_pace.core.plan.previous_tests import filters_back
from spark_pace.core.plan.rule import CountSpan, Rule
from spark_pace.core.tables import with_column
from spark_pace.reasons.aggregate_spans import aggregated
from spark_pace.reasons.answer import Why
from spark_pace.reasons.answer_parts import Candidate, ConditionTest, FoldStep
from spark_pace.reasons.candidates_of_event import MOST_CANDIDATES, OfSpan, candidates_of
from spark_pace.reasons.condition_tests import (
    component_tests,
    filter_tests,
    filter_tests_beside,
    passing,
    tests_beside,
)
from spark_pace.reasons.fold_steps import folded
from spark_pace.reasons.question import Asked, Place, Source, asked, bad_reason, is_of_input, late_reason
from spark_pace.reasons.row_pattern_tests import rows_told
from spark_pace.reasons.rule_stream import (
    MOST_MATCHES,
    OfKey,
    at_source,
    before_filter,
    match_told,
    matches_of,
    of_key,
)
from spark_pace.reasons.selections import MOST_SPANS, Opened, selections_of, spans_in, with_decisions
from spark_pace.reasons.stretch import Stretch, Taken
from spark_pace.reasons.wording import iso, plain

MOST_SELECTIONS = 20
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
            return filter_tests_beside(source.rule, own.stream, own.row)
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
    if rule.fold is not None:
        matches, taken = matches_of(source.plan, source.on_time, own)
        return folded(rule, rule.fold, own, _with_matches(own, matches, taken, why))
    if rule.rows is not None:
        matches, taken = matches_of(source.plan, source.on_time, own)
        return rows_told(rule.rows, own, _with_matches(own, matches, taken, why))
    if pattern is None:
        spans = spans_in(rule, own.stream, own.horizon)
        why = _with_selections(why, own.stream, spans, own.row)
        return _with_tests(rule, own, spans, why if rule.operator else aggregated(source, own, spans, why))
    matches, taken = matches_of(source.plan, source.on_time, own)
    why = _with_matches(own, matches, taken, why)
    if rule.span is not None:
        ids: Ints = matches["selection_id"].to_numpy()
        return _inside_spans(rule, own, taken, ids, why)
    known = tests_beside(rule, own.stream, own.row, 0)
    why = replace(why, components=tuple(known.get(one.component, one) for one in why.components))
    stretch = Stretch.of(own.stream, pattern, own.horizon, taken)
    opened = selections_of(stretch)
    why = _with_selections(why, own.stream, opened, own.row)
    told = with_decisions(why.selections, matches, pc.max(source.given.on_time[TIME]).as_py())
    why = replace(why, selections=told)
    found, more = candidates_of(stretch, opened, own.row, None)
    return replace(why, candidates=tuple(found), more_candidates=more)


def _with_matches(own: OfKey, matches: pa.Table, taken: list[Taken], why: Why) -> Why:
    part = [place for place, one in enumerate(taken) if own.row in one.rows]
    told = matches.take(pa.array(part[:MOST_MATCHES], pa.int64())).to_pylist()
    mine = tuple(map(match_told, told))
    return replace(why, matches=mine, more_matches=max(0, len(part) - MOST_MATCHES))


def _with_selections(why: Why, stream: Stream, opened: Opened, row: int) -> Why:
    here = opened.at(row)
    told = [opened.told(stream, index, there=True) for index in here[::-1][:MOST_SELECTIONS].tolist()]
    if not told:
        told = [opened.told(stream, index, there=False) for index in opened.before(row).tolist()]
    more = max(0, len(here) - MOST_SELECTIONS)
    return replace(why, selections=tuple(told), more_selections=more)


def _with_tests(rule: Rule, own: OfKey, spans: Opened, why: Why) -> Why:
    """Add to each span's selection the tests that depend on the span."""
    first = spans.openings[spans.at(own.row)[::-1]].tolist()
    if not first:
        return why
    beside = [tests_beside(rule, own.stream, own.row, row) for row in first[: len(why.selections)]]
    both = zip(why.selections, beside, strict=True)
    return replace(
        why, selections=tuple(replace(one, components=tuple(tests.values())) for one, tests in both)
    )


def _inside_spans(rule: Rule, own: OfKey, taken: list[Taken], ids: Ints, why: Why) -> Why:
    """Add the spans that hold the event, its tests in each, and the candidates that failed in each."""
    spans = spans_in(rule, own.stream, own.horizon)
    why = _with_selections(why, own.stream, spans, own.row)
    why = _with_tests(rule, own, spans, why)
    here = spans.at(own.row)
    found: list[Candidate] = []
    more = 0
    for index in here[::-1][:MOST_SPANS].tolist():
        mine = [one for one, number in zip(taken, ids, strict=True) if number == spans.ids[index]]
        stretch = _span(rule, own, (int(spans.openings[index]), int(spans.last_row()[index]) + 1), mine)
        waits = spans.waits(index)
        span = OfSpan(int(spans.ids[index]), waits, not (waits and isinstance(rule.span, CountSpan)))
        row = own.row - int(spans.openings[index])
        some, left = candidates_of(stretch, selections_of(stretch), row, span)
        found, more = found + some, more + left
    more += len(here[:-MOST_SPANS])
    found.sort(key=lambda candidate: -len(candidate.events))
    more += len(found[MOST_CANDIDATES:])
    return replace(why, candidates=tuple(found[:MOST_CANDIDATES]), more_candidates=more)


def _span(rule: Rule, own: OfKey, ends: tuple[int, int], matches: list[Taken]) -> Stretch:
    """The stretch of a span, as the engine sees it; `ends` is its first row and the row after its last."""
    assert rule.pattern is not None
    low, rows = ends[0], np.arange(*ends)
    inside = Inside.of(rule, own.stream)
    seen = inside.take(rows, np.full(len(rows), low), np.zeros(1, np.int64)).events
    events = own.stream.events.slice(low, len(rows)).combine_chunks()
    for name in seen.column_names:  # the masks, and what is the opening event's
        events = with_column(events, name, seen[name].combine_chunks())
    horizon = Horizon(own.horizon.frontier_us, np.ones(1, np.bool_), own.horizon.seen_us)
    taken = [Taken(one.out_seq, one.rows - low, one.end - low) for one in matches]
    stream = Stream(events, np.zeros(1, np.int64))
    return Stretch.of(stream, rule.pattern, horizon, taken, inside.pattern)
