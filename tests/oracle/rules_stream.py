"""The rule's stream: which events belong to it, in what order, and where the stream of a key ends."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from spark_pace.core.expr import Expr
from spark_pace.core.plan.rule import Component, CountSpan, Pattern, PredicateSpan, Rule, SessionSpan
from tests.oracle.expressions import Bindings, Row, conjuncts_of, has_open, has_previous, holds
from tests.oracle.stream import END, Event, Placed, Position, Stream


def in_stream_order(rule: Rule, events: Iterable[Event]) -> list[Event]:
    def order(event: Event) -> tuple[Any, ...]:
        ties = [(event.row[name] is not None, event.row[name]) for name in rule.schema.tie_break]
        return (
            event.time,
            [(known, value if known else 0) for known, value in ties],
            event.source,
            event.offset,
        )

    return sorted(events, key=order)


def json_text(key: dict[str, Any] | None) -> str:
    return json.dumps(key, separators=(",", ":"), ensure_ascii=False)


def keyed_streams(rule: Rule, events: Sequence[Event]) -> list[tuple[str | None, list[Placed]]]:
    """The rule's stream of every key; several of one key where there are gaps that end them."""
    ended: list[tuple[str | None, list[Placed]]] = []
    streams: dict[str | None, list[Placed]] = {}
    unfiltered: dict[str | None, list[Row]] = {}
    for place, event in enumerate(events):
        key = json_text({name: event.row[name] for name in rule.partition_by}) if rule.partition_by else None
        earlier = unfiltered.setdefault(key, [])
        belongs = in_rules_stream(rule, event, earlier)
        earlier.append(event.row)
        if belongs:
            stream = streams.setdefault(key, [])
            if stream and (event.time, 0, place) > end_of(rule, stream):
                ended.append((key, stream))
                stream = streams[key] = []
            before = [placed.row for placed in stream]
            stream.append(Placed(event, place, len(stream), before, earlier=[*stream]))
    return [*ended, *streams.items()]


def end_of(rule: Rule, stream: Stream) -> Position:
    """Where the stream of a key ends, if no more events come."""
    if rule.forget_key_after_us is None:
        return END
    return (stream[-1].time + rule.forget_key_after_us, 1, 0)


def in_rules_stream(rule: Rule, event: Event, earlier: Sequence[Row]) -> bool:
    """`earlier`: all events of the key before it, whether they pass the filter or not."""
    here = Bindings(event=event.row, before=earlier)
    if rule.filter is not None and not holds(rule.filter, here):
        return False
    in_all = isinstance(rule.span, CountSpan | SessionSpan)
    fields = [one.expr for one in rule.emit if one.expr is not None]
    if rule.pattern is None or in_all or counts_events(rule.pattern) or any(map(has_previous, fields)):
        return True
    every = all_components(rule.pattern)
    predicates = [one.predicate for component in every for one in component.members or [component]]
    predicates += [ending.predicate for ending in rule.pattern.endings]
    if isinstance(rule.span, PredicateSpan):
        predicates += [rule.span.open, rule.span.close]
    return any(holds_but_for_open(predicate, here) for predicate in predicates)


def counts_events(pattern: Pattern) -> bool:
    """Whether every event counts: by number, as a neighbour, or as one before."""
    return (
        pattern.contiguity == "strict"
        or any(component.follows == "strict" for component in pattern.components)
        or (pattern.within is not None and pattern.within.events is not None)
        or any(has_previous(component.predicate) for component in all_components(pattern))
        or any(has_previous(conjunct.expr) for conjunct in (*pattern.where, *pattern.taking))
        or any(one.further is not None and has_previous(one.further) for one in pattern.components)
        or any(has_previous(ending.predicate) for ending in pattern.endings)
    )


def all_components(pattern: Pattern) -> list[Component]:
    """The components, negated ones in first place included."""
    return [*(absence.component for absence in pattern.absences), *pattern.components]


def holds_but_for_open(predicate: Expr, here: Bindings) -> bool:
    """Whether all holds that does not mention the opening event."""
    return all(holds(part, here) for part in conjuncts_of(predicate) if not has_open(part))
