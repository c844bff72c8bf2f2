"""Turns the facts about a rule into lines of text, and into values for JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from spark_pace.core.plan.lower_rules import EVENTS
from spark_pace.errors import counted
from spark_pace.rules.explanation.cost import METHODS
from spark_pace.rules.explanation.facts import (
    INTAKE,
    ComponentFacts,
    ConditionFacts,
    Cost,
    Explanation,
    FoldFacts,
    KeyFacts,
    LevelFacts,
    OrderFacts,
    ParallelFacts,
    PatternFacts,
    RowPatternFacts,
    SpanFacts,
    StepCost,
)

_AT_THE_INTAKE = f"[{INTAKE}, on whole columns]"


def json_value(explanation: Explanation) -> dict[str, Any]:
    """The facts as values that JSON has."""
    return json.loads(json.dumps(asdict(explanation)))  # type: ignore[no-any-return]


def lines_of(explanation: Explanation) -> Iterator[str]:
    """The facts as lines of text; a line without a label belongs to the line before."""
    yield f"rule {explanation.rule}"
    for label, text in _labelled(explanation):
        yield f"  {label:<12} {text}"


def _labelled(told: Explanation) -> Iterator[tuple[str, str]]:
    if told.levels is not None:
        yield from _levels(told.levels)
    if told.filter is not None:
        yield "filter", _decided(told.filter)
    if told.pattern is not None:
        yield from _pattern(told.pattern)
    if told.operator is not None:
        yield "operator", f"{told.operator}, called once for each span"
    if told.fold is not None:
        yield from _fold(told.fold)
    if told.match_recognize is not None:
        yield from _row_pattern(told.match_recognize)
    if told.aggregates is not None:
        yield "aggregates", f"of {told.aggregates.of} in each span, when it is closed"
        if told.aggregates.where is not None:
            yield "where", f"{told.aggregates.where.condition}  [on {told.aggregates.where.decided}]"
    if told.span is not None:
        yield from _span(told.span)
    yield "key", _key_of(told)
    for place, one in enumerate(told.lookup):
        by = ", ".join(one.on)
        yield "" if place else "lookup", f"{', '.join(one.attributes)}: of the row in {one.path} for {by}"
    if told.json is not None:
        yield "json", f"read by {told.json}"
    yield "splitter", told.splitter
    if told.levels is None:
        yield "parallel", _parallel(told.parallel)
        yield "", told.parallel.why
    else:
        yield "parallel", "nothing: rules over rules run in the merger, on one core of the driver"
    keys = f"; {told.carried.keys}" if told.carried.keys is not None else ""
    last = f"; for prev: {', '.join(told.carried.last_values)}" if told.carried.last_values else ""
    yield "carried", f"{told.carried.events}{keys}{last}"
    yield from (("", f"for not {kept}") for kept in told.carried.forbidding)
    yield "bounded by", told.carried.bound
    yield "order", _order(told.order)
    emitted = ", ".join(f"{field.name} {field.type}" for field in told.emits)
    yield "emits", emitted or "the fixed columns only"
    yield from zip(["costs", *[""] * 9], _cost(told.cost), strict=False)


def _levels(levels: LevelFacts) -> Iterator[tuple[str, str]]:
    for place, lower in enumerate(levels.reads):
        which = "" if lower.condition is None else f" with {lower.condition}"
        waits = "" if lower.waits is None else f"; one that waits does so for {lower.waits} at most"
        what = "events of the input" if lower.rule == EVENTS else f"matches of {lower.rule}"
        yield "" if place else "from", f"{what}{which}{waits}"
    waits = "for nothing"
    if levels.waits is not None:
        waits = f"while a match below that waits may come before it, {levels.waits} at most"
    yield "level", f"{levels.level} above the rules over events; what it reads waits {waits}"
    if levels.warning is not None:
        yield "warning", levels.warning


def _pattern(pattern: PatternFacts) -> Iterator[tuple[str, str]]:
    for place, component in enumerate(pattern.components):
        name = f"not {component.name}" if component.negated else component.name
        times = "" if component.times is None else f" {component.times}"
        label = "" if place else pattern.order
        if component.members:
            yield label, f"{name}: the first of these that an event matches"
            yield from (("", f"  {one.name}: {_tested(one.parts)}") for one in component.members)
        else:
            yield label, f"{name}{times}: {_tested(component.parts)}"
    if pattern.order == "conjunction":
        yield "roles", "in any order; an event that matches several may stand for any one of them"
    if pattern.order == "disjunction":
        yield "roles", "one of these; the same events are the first one that they can be"
    for sequence in pattern.sequences:
        yield "in order", ", then ".join(sequence)
    for component in pattern.components:
        yield from _form(component)
    for condition in pattern.where:
        yield "where", f"{condition.condition}  [on {condition.decided}]"
    if pattern.strict is not None:
        yield "contiguity", f"strict: {pattern.strict} counts, and none stands between two of a match"
    window = f", within {pattern.within}" if pattern.within is not None else ""
    close = ", close: window" if pattern.close == "window" else ""
    yield "context", f"{pattern.context}{window}{close}"


def _tested(parts: Sequence[ConditionFacts]) -> str:
    if parts[-1].decided == INTAKE:
        return f"{parts[-1].condition}  {_AT_THE_INTAKE}"
    return "; ".join(f"{part.condition}  [{part.decided}]" for part in parts)


def _form(component: ComponentFacts) -> Iterator[tuple[str, str]]:
    if component.takes is not None:
        yield "group", f"{component.name}: {component.takes}"
    if component.follows is not None:
        yield "follows", f"{component.name}: {component.follows}"
    if component.forbids is not None:
        end = "" if component.decided_by is None else ";"
        yield "forbids", f"{component.name}: {component.forbids}{end}"
    if component.decided_by is not None:
        yield "", f"a match is decided there: {component.decided_by}"


def _fold(fold: FoldFacts) -> Iterator[tuple[str, str]]:
    if fold.function is not None:
        yield "fold", f"{fold.function}, version {fold.version}, called in stream order"
        return
    yield "fold", f"a key begins in {fold.initial}; an event takes the first move that fits"
    states = {fold.initial, *(move.target for move in fold.moves)}
    for move in fold.moves:
        sources = "any" if states == set(move.sources) else ", ".join(move.sources)
        when = "any event" if move.condition is None else _decided(move.condition)
        emits = "" if move.emits else ", without a match"
        yield "", f"{sources} to {move.target}{emits}: {when}"


def _row_pattern(rows: RowPatternFacts) -> Iterator[tuple[str, str]]:
    yield "rows", f"{rows.pattern}{'' if rows.within is None else f', within {rows.within}'}"
    for one in rows.variables:
        yield "", f"{one.name}: {'every event' if one.tested is None else f'tested {one.tested}'}"
    how = "compiled code" if rows.compiled else "Python, from one event to the next"
    waits = f"; a match waits for {counted(rows.behind, 'event')} behind its last one" if rows.behind else ""
    yield "search", f"by {how}; after a match {rows.then}{waits}"


def _key_of(told: Explanation) -> str:
    if told.key.partition_by:
        return _key(told.key)
    if told.fold is not None:
        return "none: one state"
    return _key(told.key) if told.match_recognize is None else "none: one stream"


def _decided(condition: ConditionFacts) -> str:
    at = _AT_THE_INTAKE if condition.decided == INTAKE else f"[{condition.decided}]"
    return f"{condition.condition}  {at}"


def _span(span: SpanFacts) -> Iterator[tuple[str, str]]:
    if span.every is not None:
        yield "span", f"{span.size} long, one every {span.every}"
    elif span.gap is not None:
        yield "span", f"sessions, each over {span.gap} after its last event"
        if span.within is not None:
            yield "", f"or {span.within} after its first one"
    else:
        yield "span", f"opens at {span.open}"
        yield "", f"closes at {span.close}, or {span.within} after it opened"


def _key(key: KeyFacts) -> str:
    if not key.partition_by:
        kept = "" if key.join is None else f"; of what is carried, a batch looks at values of {key.join}"
        return f"none: one stream, split into selections{kept}"
    forgotten = f", each forgotten {key.forget_after} after its last event" if key.forget_after else ""
    return ", ".join(key.partition_by) + forgotten


_OPERATORS = {
    "work on spans": "operators work on lanes of whole spans",
    "match": "operators match lanes of {lanes}",
    "enumerate": "operators enumerate the matches inside closed selections",
    "compute fields": "operators compute the fields of the matches",
    "make rows": "operators make the rows of the matches",
}
_LANES = {"keys": "whole keys", "selections": "neighbouring selections"}


def _parallel(parallel: ParallelFacts) -> str:
    keys = "; keys are spread over buckets" if parallel.buckets else ""
    lanes = _LANES.get(parallel.lanes, parallel.lanes)
    return _OPERATORS[parallel.operators].format(lanes=lanes) + keys


def _order(order: OrderFacts) -> str:
    by = "by the position at which a match is decided" if order.by == "detection" else "by selection"
    waits = f"until {' and '.join(order.waits_until)}" if order.waits_until else "for nothing"
    return f"{by}; a match waits {waits}"


def _cost(cost: Cost) -> Iterator[str]:
    yield f"each event: {_counted(cost.conditions_per_event, 'condition')} at the intake"
    yield f"each carried event: looked at {cost.carried}"
    if cost.search is not None and (cost.search.steps or cost.search.method != "nearest"):
        compiled = " (compiled)" if cost.search.compiled else ""
        yield f"each {cost.search.each}: {METHODS[cost.search.method]}{compiled}"
        for step in cost.search.steps:
            yield f"  {_step(step)}"
    yield f"each match: its events, and {_counted(cost.fields_per_match, 'computed field')}"
    yield (
        f"how it grows: {cost.growth}"
        if cost.dominant is None
        else f"grows with the {cost.dominant}: {cost.growth}"
    )


def _counted(count: int, what: str) -> str:
    return counted(count, what) if count else f"no {what}s"


def _step(step: StepCost) -> str:
    found = "found by place" if step.equality is None else f"looked up by {step.equality}"
    tests = [f"{condition} by ranks" for condition in step.ranked]
    tests += [f"{condition} evaluated" for condition in step.evaluated]
    tests += ["what stands between counted"] if step.between else []
    return f"{step.component}: {found}{', then tested: ' if tests else ''}{', '.join(tests)}"
