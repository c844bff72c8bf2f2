"""Builds the answer for one event: its tests, part by part, its selections, its matches, and what failed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_pace.core.expr import (
    Column,
    Columns,
    EventColumns,
    Expr,
    Previous,
    conjunction,
    evaluate,
    evaluate_mask,
    walk,
)
from spark_pace.core.expr.canonical_text import canonical_duration, canonical_text
from spark_pace.core.match.row_patterns.rows import Rows, SlotColumns
from spark_pace.core.match.stream import Horizon, Stream
from spark_pace.core.operate.lane_matches import SpanAggregates
from spark_pace.core.operate.span_patterns import Inside, SpanColumns
from spark_pace.core.plan.conditions import conjuncts, earlier_columns, of_other_events
from spark_pace.core.plan.earlier_tests import filters_back
from spark_pace.core.plan.members import names_of
from spark_pace.core.plan.row_pattern import Computed, MatchNumber, Navigation, RowPattern, Slot
from spark_pace.core.plan.rule import Absence, CountSpan, PredicateSpan, PythonFold, Rule, StateMachine
from spark_pace.core.split import folds_and_row_patterns as folds
from spark_pace.core.split.panes import ContentsOfEvents
from spark_pace.core.tables import NOTHING_US, TIME, Ints, with_column
from spark_pace.reasons.answer import (
    ROWS_UNTOLD,
    Candidate,
    ComponentTest,
    ConditionTest,
    FoldStep,
    Reason,
    Why,
    iso,
    plain,
)
from spark_pace.reasons.near_misses import MOST_CANDIDATES, near_misses
from spark_pace.reasons.question import Place, Source, asked, is_of_input, reason_at
from spark_pace.reasons.rule_stream import (
    MOST_MATCHES,
    OfKey,
    OfSpan,
    Opened,
    Stretch,
    at_source,
    before_filter,
    columns_of,
    having,
    in_values,
    match_told,
    matches_of_key,
    of_key,
    ref,
    spans_in,
    with_decisions,
)

_SLOT = re.compile(r"`@(\d+)`")
Beside = tuple[Stream, int, int]  # a stream with all attributes; an event's row; where stream or span begin
MOST_SELECTIONS = 20
MOST_SPANS = 5  # spans for which the answer says what failed
MOST_UPPER = 3  # matches of each lower rule that are followed upwards


def tests_beside(rule: Rule, beside: Beside) -> tuple[ComponentTest, ...]:
    """The tests against each component, with what stands before the event."""
    conditions = [*(condition for _, _, condition in _conditions(rule)), *_ends(rule).values()]
    return tuple(_components(rule, _columns(beside, conditions), beside))


def passing(rule: Rule, events: pa.Table) -> dict[str, int]:
    """How many of the events pass the filter and each component, but negated ones.

    Components whose conditions read other events are left out.
    """
    columns, filtered = EventColumns(events), [] if rule.filter is None else conjuncts(rule.filter)
    of_filter = [part for part in filtered if not of_other_events(part)]
    return {
        name: int(np.count_nonzero(evaluate_mask(conjunction([*of_filter, condition]), columns)))
        for name, negated, condition in _conditions(rule)
        if not negated and not of_other_events(condition)
    }


def _columns(beside: Beside, conditions: Sequence[Expr]) -> SpanColumns:
    stream, row, first = beside
    return SpanColumns(stream, earlier_columns(conditions), np.array([row]), np.array([first]))


def _components(rule: Rule, columns: Columns, beside: Beside | None) -> Iterator[ComponentTest]:
    """The tests against each component; `beside` is None if the other events are not known."""
    ends, behind = _ends(rule), _behind_absences(rule)
    for name, negated, condition in _conditions(rule):
        tests = list(_tests(condition, columns, known=beside is not None))
        if name in ends:
            parts = list(_tests(ends[name], columns, known=beside is not None))
            ended = _all(parts)
            values = {read: value for one in parts for read, value in one.values.items()}
            text = f"not until {canonical_text(ends[name])}"
            tests.append(ConditionTest(text, None if ended is None else not ended, values))
        if name in behind and rule.pattern is not None:
            first = rule.pattern.components[0].name
            tests += [_absence(one, first, beside) for one in rule.pattern.absences]
        yield ComponentTest(name, negated, _all(tests), tuple(tests))


def _all(tests: Sequence[ConditionTest]) -> bool | None:
    """Whether all hold; None if none fails but some are not known."""
    holds = [one.holds for one in tests]
    return False if False in holds else None if None in holds else True


def _conditions(rule: Rule) -> list[tuple[str, bool, Expr]]:
    """(name, is negated, condition) of each component or move, and of a span's `open` and `close`.

    Those of a disjunction are its members'.
    """
    if isinstance(rule.fold, StateMachine):
        conditions = rule.fold.conditions
        return [
            (name, False, conjunction([] if move.condition is None else [conditions[move.condition]]))
            for name, move in zip(move_names(rule.fold), rule.fold.moves, strict=True)
        ]
    every = () if rule.pattern is None else rule.pattern.every
    told = list[tuple[str, bool, Expr]]()
    for component in every:
        told += [(one.name, component.negated, one.predicate) for one in component.members or [component]]
    if isinstance(rule.span, PredicateSpan):
        closes = conjunction([*conjuncts(rule.span.close), *rule.span.close_where])
        told += [("span opens", False, rule.span.open), ("span closes", False, closes)]
    return told


def _ends(rule: Rule) -> dict[str, Expr]:
    """The condition at which the group of a component ends, by the component's name."""
    components = () if rule.pattern is None else rule.pattern.components
    return {one.name: one.until.predicate for one in components if one.until is not None}


def _behind_absences(rule: Rule) -> set[str]:
    """The component behind negated ones in first place, and its members; none if there are none of those."""
    there = rule.pattern is not None and rule.pattern.absences
    return {*names_of(rule.pattern.components[0])} if rule.pattern is not None and there else set()


def move_names(machine: StateMachine) -> list[str]:
    """A name for each move: its number, and the states that it leads from and to."""
    names = []
    for number, move in enumerate(machine.moves, 1):
        every = len(move.sources) == len(machine.states)
        sources = "any" if every else " or ".join(machine.states[source] for source in move.sources)
        names.append(f"move {number}, from {sources} to {machine.states[move.target]}")
    return names


def _tests(condition: Expr, columns: Columns, *, known: bool) -> Iterator[ConditionTest]:
    """Test each part; `known` is True if the other events that it reads are known."""
    for part in conjuncts(condition):
        knows = known or not of_other_events(part)
        nodes = [node for node in walk(part) if isinstance(node, Column | Previous)]
        read = {canonical_text(node): node for node in nodes if knows or not of_other_events(node)}
        values = {name: plain(evaluate(node, columns)[0].as_py()) for name, node in read.items()}
        holds = bool(evaluate_mask(part, columns)[0]) if knows else None
        yield ConditionTest(canonical_text(part), holds, values)


# ---------------------------------------------------------------- negated components in first place


def _absence(absence: Absence, first: str, beside: Beside | None) -> ConditionTest:
    """The test that no event before forbids an event to be `first`; its value is the last one that does."""
    name = absence.component.name
    near = "" if absence.within_us is None else f" within {canonical_duration(absence.within_us)}"
    where = f" where {canonical_text(conjunction(absence.where))}" if absence.where else ""
    text = f"not {name}{near}{where}"
    if beside is None:
        return ConditionTest(text, None, {})
    stream, found = beside[0], _forbidding(absence, first, beside)
    if not len(found):
        return ConditionTest(text, True, {})
    last = ref(stream, int(found[-1]))
    told = f"#{last.seq}, {last.source}:{last.offset} at {last.event_time}"
    return ConditionTest(text, False, {name: told})


def _forbidding(absence: Absence, first: str, beside: Beside) -> Ints:
    """int64[m], the rows of the events that forbid the event to stand for the component `first`."""
    stream, row, start = beside
    rows = np.arange(start, row)
    if absence.within_us is not None:
        rows = rows[stream.time[rows] >= stream.time[row] - absence.within_us]
    predicate = absence.component.predicate
    columns = SpanColumns(stream, earlier_columns([predicate]), rows, np.full(len(rows), start))
    rows = rows[evaluate_mask(predicate, columns)]
    pairs = np.column_stack([rows, np.full_like(rows, row)])
    both = columns_of(stream, {absence.component.name: (0,), first: (1,)}, pairs, np.arange(2) + 0 * pairs)
    return rows[evaluate_mask(conjunction(absence.where), both)]


# ---------------------------------------------------------------- row patterns


def rows_told(rows: RowPattern, own: OfKey, why: Why) -> Why:
    """Add the tests of the conditions that do not read the match so far, and say what is not told."""
    known = Rows(own.stream.events, np.array([0, own.stream.rows], np.int64))
    told = []
    for name, one in zip(rows.variables, rows.conditions, strict=True):
        tests = [_of_rows(part, rows.variables, known, own.row) for part in one.fixed]
        tests += [ConditionTest(_text(part, rows.variables), None, {}) for part in one.of_match]
        told.append(ComponentTest(name, False, _all(tests), tuple(tests)))
    return replace(why, components=tuple(told), untold=(ROWS_UNTOLD,))


def _of_rows(part: Computed, names: Sequence[str], known: Rows, row: int) -> ConditionTest:
    columns, values = [], dict[str, Any]()
    for slot in part.slots:
        assert isinstance(slot, Navigation) and slot.of is not None, slot
        columns.append(known.shifted(slot.of, slot.shift))
        values[_slot_text(slot, names)] = plain(columns[-1][row].as_py())
    holds = pc.fill_null(evaluate(part.expr, SlotColumns(known.rows, columns)), False)[row].as_py()
    return ConditionTest(_text(part, names), holds, values)


def _text(part: Computed, names: Sequence[str]) -> str:
    """The condition with what slots read in place of their numbers."""
    return _SLOT.sub(lambda found: _slot_text(part.slots[int(found[1])], names), canonical_text(part.expr))


def _slot_text(slot: Slot, names: Sequence[str]) -> str:
    if isinstance(slot, MatchNumber):
        return "match_number()"
    rows = "" if slot.variables is None else "|".join(names[one] for one in slot.variables) + "."
    if not isinstance(slot, Navigation):
        return f"{slot.function}({rows}{'*' if slot.of is None else canonical_text(slot.of)})"
    text = f"classifier({rows[:-1]})" if slot.of is None else f"{rows}{canonical_text(slot.of)}"
    if slot.first or slot.back:
        text = f"{'first' if slot.first else 'last'}({text}{f', {slot.back}' if slot.back else ''})"
    if not slot.shift:
        return text
    return f"{'prev' if slot.shift < 0 else 'next'}({text}, {abs(slot.shift)})"


def explained(source: Source, place: Place) -> Why:
    """The whole answer for the event at a place."""
    rule, reason = source.rule, reason_at(source.read.bad, place)
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
        components=tuple(_components(rule, EventColumns(event), None)),
        passing=passing(rule, source.on_time),
        of_events=source.on_time.num_rows,
        untold=_untold(rule),
    )
    if place.row is None:
        late = reason_at(source.given.late, place)
        told = _not_in_stream(source, event, why) if late is None else f"it is late: {late}"
        return _with_lower(source, place, replace(why, not_in_stream=told))
    assert source.task is not None
    own = of_key(source.task, place.row)
    why = replace(why, key=own.key, seq=int(own.stream.seq[own.row]))
    return _with_lower(source, place, _in_stream(source, own, why))


def _filter_tests(source: Source, place: Place, event: pa.Table) -> tuple[ConditionTest, ...]:
    """The tests against the parts of the filter, which may look back at events before it."""
    rule, own = source.rule, None
    columns: Columns = EventColumns(event)
    if rule.filter is None:
        return ()
    if filters_back(rule):
        own = before_filter(source.plan, source.on_time, place.source, place.offset)
    if own is not None:
        columns = _columns((own.stream, own.row, 0), [rule.filter])
    return tuple(_tests(rule.filter, columns, known=own is not None))


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
    lower = tuple(explained(one, asked(one, place.text)) for one in source.lower_sources())
    upper = []
    for one in lower:
        found = [*one.matches, *(match for beside in one.upper for match in beside.matches)]
        numbers = list(dict.fromkeys(match.out_seq for match in found))
        at = (f"{one.rule}:{number}" for number in numbers[:MOST_UPPER])
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
    stretch = Stretch.of(own.stream, pattern, own.horizon, None)
    why = _with_selections(why, own.stream, stretch.selections, own.row)
    newest_us = pc.max(source.given.on_time[TIME]).as_py()
    why = replace(
        why,
        components=tests_beside(rule, (own.stream, own.row, 0)),
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
    unknown = {one.component for one in why.components if None in [test.holds for test in one.conditions]}
    tests = (tests_beside(rule, (own.stream, own.row, row)) if unknown else () for row in first)
    told = (tuple(one for one in each if one.component in unknown) for each in tests)
    there = [replace(one, components=next(told)) if one.there else one for one in why.selections]
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
    begin = {column.name: pa.nulls(1, column.type) for column in folds.columns_of_states(rule)}
    walked = folds.walk(own.stream, machine, begin)
    state, since = int(walked.before[own.row]), int(walked.before_since[own.row])
    number = int(walked.taken[own.row])
    taken = None if number < 0 else machine.moves[number]
    step = FoldStep(
        before=machine.states[state],
        since=None if since == NOTHING_US else iso(since),
        after=machine.states[state if taken is None else taken.target],
        move=None if taken is None else number + 1,
    )
    tests = zip(tests_beside(rule, (own.stream, own.row, 0)), machine.moves, strict=True)
    return replace(why, fold=step, components=tuple(one for one, move in tests if state in move.sources))
