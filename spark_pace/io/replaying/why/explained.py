"""The answer for one event: what it is, where it stands, which selections and matches, what failed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from spark_pace.core.columns import TIME, Ints
from spark_pace.core.expr import Column, EventColumns, Expr, Previous, evaluate_mask, walk
from spark_pace.core.expr.render import to_text
from spark_pace.core.match.search.search import Search
from spark_pace.core.match.stream import Stream
from spark_pace.core.match.window import Horizon
from spark_pace.core.plan.rule import Pattern, Rule
from spark_pace.io.replaying.why.answer import Candidate, ComponentTest, Why
from spark_pace.io.replaying.why.asked import Place, Source, bad_reason
from spark_pace.io.replaying.why.candidates import MOST_CANDIDATES, candidates_of
from spark_pace.io.replaying.why.found import OfKey, at_source, match_told, matches_of, of_key
from spark_pace.io.replaying.why.opened import Opened, selections_of, spans_in
from spark_pace.io.replaying.why.single import component_tests, filter_tests
from spark_pace.io.replaying.why.stretch import Stretch, Taken
from spark_pace.io.replaying.why.wording import iso, plain

MOST_MATCHES = 100
MOST_SELECTIONS = 20
MOST_SPANS = 5  # in which candidates are sought


def explained(source: Source, place: Place) -> Why:
    """All that is told of the event at a place."""
    rule, reason = source.rule, bad_reason(source, place)
    why = Why(rule.name, None, place.source, place.offset, None, None, reason, {})
    if reason is not None:
        return replace(why, not_in_stream=f"it is a bad record: {reason}")
    events = source.read.events
    event = events.filter(pa.array(at_source(events, place.source, place.offset)))
    attributes = {one.name: plain(event[one.name][0].as_py()) for one in rule.schema.fields}
    why = replace(
        why,
        event_time=iso(event[TIME][0].as_py()),
        attributes=attributes,
        filter=filter_tests(rule, event),
        components=component_tests(rule, event),
        untold=tuple(_untold(rule)),
    )
    if place.row is None:
        return replace(why, not_in_stream=_not_in_stream(source, event, why))
    assert source.task is not None
    own = of_key(source.task, place.row)
    why = replace(why, key=own.key, seq=int(own.stream.seq[own.row]))
    return _in_stream(source, own, why)


def _not_in_stream(source: Source, event: pa.Table, why: Why) -> str:
    heartbeat = source.plan.heartbeat
    if heartbeat is not None and evaluate_mask(heartbeat, EventColumns(event))[0]:
        return f"it is a heartbeat: {to_text(heartbeat)}"
    false = [test.condition for test in why.filter if test.holds is False]
    if false:
        return f"the filter does not hold: {false[0]}"
    if any(component.holds for component in why.components):
        equal = ", ".join(source.plan.order.deduplicate_on)
        return f"it is a repeat: an event not long before is equal in {equal}"
    return "it matches no component"


def _untold(rule: Rule) -> list[str]:
    """What of the rule is not explained here."""
    told = []
    pattern = rule.pattern
    if pattern is None:
        return [f"what {'the operator' if rule.operator else 'the rule'} makes of a span"]
    if pattern.order == "conjunction":
        what = "candidates" if rule.span is not None else "selections and candidates"
        told.append(f"{what} of a {pattern.order}")
    names = {component.name for component in pattern.components}
    exprs: list[Expr] = [component.predicate for component in pattern.components]
    nodes = [node for expr in [*exprs, *(one.expr for one in pattern.where)] for node in walk(expr)]
    if any(isinstance(node, Previous) for node in nodes):
        what = "candidates whose" if rule.span is not None else "parts of"
        told.append(f"{what} conditions that read an event before by prev")
    if any(isinstance(node, Column) and node.component not in {None, *names} for node in nodes):
        told.append("candidates whose conditions read the event that opens the span")
    return told


def _in_stream(source: Source, own: OfKey, why: Why) -> Why:
    rule, pattern = source.rule, source.rule.pattern
    if rule.span is None:
        why = replace(why, components=_as_the_engine_has_it(own, why))
    if pattern is not None:
        matches, taken = matches_of(source.plan, source.read.events, own)
        part = [place for place, one in enumerate(taken) if own.row in one.rows]
        told = matches.take(pa.array(part[:MOST_MATCHES], pa.int64())).to_pylist()
        mine = tuple(map(match_told, told))
        why = replace(why, matches=mine, more_matches=max(0, len(part) - MOST_MATCHES))
    if pattern is None or (pattern.order == "conjunction" and rule.span is None):
        return _with_spans(rule, own, why) if rule.span is not None else why
    if rule.span is not None:
        ids: Ints = matches["selection_id"].to_numpy()
        return _inside_spans(rule, pattern, own, taken, ids, why)
    stretch = Stretch(own.stream, pattern, Search(own.stream, pattern), own.horizon, tuple(taken))
    opened = selections_of(stretch)
    why = _with_selections(why, own.stream, opened, own.row)
    if why.untold and _blind(why):
        return why
    found, more = candidates_of(stretch, opened, own.row, None, None)
    return replace(why, candidates=tuple(found), more_candidates=more)


def _as_the_engine_has_it(own: OfKey, why: Why) -> tuple[ComponentTest, ...]:
    """The components; where a part of one is not told here, the engine says whether the event can be it."""
    return tuple(
        one if one.holds is not None else replace(one, holds=own.row in own.stream.matching(bit))
        for bit, one in enumerate(why.components)
    )


def _blind(why: Why) -> bool:
    """Whether candidates cannot be told of."""
    return any("candidates" in told for told in why.untold)


def _with_selections(why: Why, stream: Stream, opened: Opened, row: int) -> Why:
    here = opened.at(row)
    told = [opened.told(stream, index, there=True) for index in here[::-1][:MOST_SELECTIONS].tolist()]
    if not told:
        told = [opened.told(stream, index, there=False) for index in opened.before(row).tolist()]
    more = max(0, len(here) - MOST_SELECTIONS)
    return replace(why, selections=tuple(told), more_selections=more)


def _with_spans(rule: Rule, own: OfKey, why: Why) -> Why:
    return _with_selections(why, own.stream, spans_in(rule, own.stream, own.horizon), own.row)


def _inside_spans(rule: Rule, pattern: Pattern, own: OfKey, taken: list[Taken], ids: Ints, why: Why) -> Why:
    """The spans that hold the event, and what failed inside of each."""
    spans = spans_in(rule, own.stream, own.horizon)
    why = _with_selections(why, own.stream, spans, own.row)
    if _blind(why):
        return why
    here = spans.at(own.row)
    found: list[Candidate] = []
    more = 0
    for index in here[::-1][:MOST_SPANS].tolist():
        low, high = int(spans.openings[index]), int(spans.last_row()[index]) + 1
        inside = Stream(own.stream.events.slice(low, high - low).combine_chunks(), np.zeros(1, np.int64))
        horizon = Horizon(own.horizon.frontier_us, np.ones(1, np.bool_), own.horizon.seen_us)
        rows = [
            Taken(one.out_seq, one.rows - low)
            for one, number in zip(taken, ids, strict=True)
            if number == spans.ids[index]
        ]
        stretch = Stretch(inside, pattern, Search(inside, pattern), horizon, tuple(rows))
        number, waits = int(spans.ids[index]), spans.waits(index)
        some, left = candidates_of(stretch, selections_of(stretch), own.row - low, number, waits)
        found, more = found + some, more + left
    more += len(here[:-MOST_SPANS])
    found.sort(key=lambda candidate: -len(candidate.events))
    more += len(found[MOST_CANDIDATES:])
    return replace(why, candidates=tuple(found[:MOST_CANDIDATES]), more_candidates=more)
