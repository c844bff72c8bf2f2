"""What a rule means, computed the slow way: `docs/semantics.md` read literally, one event at a time.

The stream is bounded and complete: every event given is on time, and at the end all windows end. All
candidates are enumerated, and each context picks from them as its definition says. Nothing here is shared
with the core but the nodes of rules and expressions.

Where the definitions leave something open, this is how they are read:

- A position is (time, phase, place). An event's is (its time, 0, its place in the order of the whole stream).
  The end of a window that opened at T is (T + within, 1, 0), after all events of that time; a grid window's
  is (end - 1 us, 1, 0); a count window ends at the event that fills it, or with the input if it never fills.
  Matches of different keys with one releasable position are in the order of their keys' text.
- What resolves a selection: in `earliest, selected` a match of its initiator; in `each, zero` and `next,
  zero` the first completion; in `latest, zero`, `earliest, zero` and with `close: window` only the window's
  end.
- `next, selected`: with both merge orders a match is releasable only when all earlier selections of its key
  are resolved, for nobody knows before that their initiators have no match.
- A plain sequence without `within`: a match is releasable where it is decided.
- `forget_key_after: T` makes streams of the stream of a key: one ends where the next event is more than T
  later, at the position (time of its last event + T, 1, 0), and so do the selections that are open there. It
  is evaluated as if no other had its key.
- Grid spans: selection ids count the windows that hold an event, in their order. A count span that never
  fills gives nothing, whatever runs in it.
- The match of a Python operator: `seq` is that of the span's last event; `matched_at` is the closing event's
  time, or the window's end where that decided (k * every + size for a grid window). Several rows of one span
  keep the operator's order.
- With a negated component in last place a match is decided where its context says, but inside a span at the
  span's end at the latest. With `merge: selection` it may be decided later than one that comes after it in
  the order; then that one waits for it. `matched_at` is the end of the window that starts at the match's own
  first event, whatever else its choice waits for: for a window by count the time of the last event in it,
  and the end of the span if that comes before.
- Strict contiguity compares positions of the rule's stream, of one key.
- A pattern inside a span is evaluated over the span's events as over a whole stream, and its match is decided
  at its last event. There are two exceptions where nobody can know then. In a count span it is decided where
  the span is full. With `next, selected` it is decided where the span's earlier initiators are known to have
  no match: at the end of their windows, or where the span ends.
"""

from __future__ import annotations

import importlib
import itertools
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from spark_pace.core.plan.rule import CountSpan, Pattern, PredicateSpan, Rule
from tests.oracle.candidates import forwards, trailing_negatives
from tests.oracle.contexts import CONTEXTS
from tests.oracle.expressions import Bindings, holds, value_of
from tests.oracle.spans import Delivered, spans_of
from tests.oracle.stream import END, Event, Placed, Position, Production, Stream, inside, window_end


@dataclass(frozen=True)
class Match:
    """A row of the result. `events`: (component, seq, time, source, offset). Times in microseconds."""

    key: dict[str, Any] | None
    selection_id: int
    seq: int
    opened_at: int
    matched_at: int
    fields: dict[str, Any]
    events: tuple[tuple[str, int, int, str, int], ...]
    decided: Position
    releasable: Position
    order: tuple[Any, ...]


@dataclass(frozen=True)
class Span:
    """A selection as a Python operator sees it (`events` as a list of rows)."""

    rule: str
    selection_id: int
    key: dict[str, Any] | None
    events: list[dict[str, Any]]
    opening: dict[str, Any]
    closing: dict[str, Any] | None


def evaluate(rule: Rule, events: Iterable[Event]) -> list[Match]:
    """All matches of the rule on a bounded stream, in the order of the output."""
    matches: list[Match] = []
    for key_text, stream in keyed_streams(rule, in_stream_order(rule, events)):
        key = None if key_text is None else json.loads(key_text)
        of_key = (
            spans_matches(rule, key, stream)
            if rule.span
            else pattern_matches(rule, key, stream, end_of(rule, stream))
        )
        of_key.sort(key=lambda match: match.order)
        if rule.merge == "selection" and rule.pattern is not None and trailing_negatives(rule.pattern):
            of_key = after_each_other(of_key)
        releases = [match.releasable for match in of_key]
        assert releases == sorted(releases), (
            "the order of a key's matches is not the order in which they can be released"
        )
        matches += of_key
    return sorted(matches, key=lambda match: (match.releasable, json_text(match.key)))


def after_each_other(matches: list[Match]) -> list[Match]:
    """No match is released before one that comes before it, though that may be decided later."""
    latest = itertools.accumulate((match.releasable for match in matches), max)
    return [replace(match, releasable=releasable) for match, releasable in zip(matches, latest, strict=True)]


# ---------------------------------------------------------------- streams


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
    for place, event in enumerate(events):
        if in_rules_stream(rule, event):
            key = (
                json_text({name: event.row[name] for name in rule.partition_by})
                if rule.partition_by
                else None
            )
            stream = streams.setdefault(key, [])
            if stream and (event.time, 0, place) > end_of(rule, stream):
                ended.append((key, stream))
                stream = streams[key] = []
            stream.append(Placed(event, place, len(stream)))
    return [*ended, *streams.items()]


def end_of(rule: Rule, stream: Stream) -> Position:
    """Where the stream of a key ends, if no more events come."""
    if rule.forget_key_after_us is None:
        return END
    return (stream[-1].time + rule.forget_key_after_us, 1, 0)


def in_rules_stream(rule: Rule, event: Event) -> bool:
    here = Bindings(event=event.row)
    if rule.filter is not None and not holds(rule.filter, here):
        return False
    counts = rule.pattern is not None and (
        rule.pattern.contiguity == "strict"
        or (rule.pattern.within is not None and rule.pattern.within.events is not None)
    )
    if counts or isinstance(rule.span, CountSpan) or rule.operator is not None:
        return True
    predicates = [component.predicate for component in rule.pattern.components] if rule.pattern else []
    if isinstance(rule.span, PredicateSpan):
        predicates += [rule.span.open, rule.span.close]
    return any(holds(predicate, here) for predicate in predicates)


# ---------------------------------------------------------------- matches of patterns


def nothing_waits(pattern: Pattern) -> bool:
    """Whether it is a plain sequence without a window."""
    return (
        pattern.within is None
        and not pattern.where
        and pattern.contiguity == "relaxed"
        and not any(component.negated or component.times for component in pattern.components)
    )


def pattern_matches(rule: Rule, key: dict[str, Any] | None, stream: Stream, end: Position) -> list[Match]:
    pattern = rule.pattern
    assert pattern is not None
    opened, picked = CONTEXTS[str(pattern.context)](pattern, stream)
    waits = not nothing_waits(pattern) and (
        rule.merge == "selection" or str(pattern.context) == "next, selected"
    )
    matches = []
    for one in picked:
        earlier = [min(selection.resolved, end) for selection in opened[: one.selection]] if waits else []
        decided = min(one.decided, end)
        opening = (one.selection, opened[one.selection].opening.time)
        ending = Ending(matched_at(pattern, stream, one.production), decided, max([decided, *earlier]))
        matches.append(match_of(rule, key, opening, one.production, ending))
    return matches


@dataclass(frozen=True)
class Ending:
    """When a match is one, where that is decided, and where it can be released."""

    matched_at: int
    decided: Position
    releasable: Position


def matched_at(
    pattern: Pattern, stream: Stream, production: Production, span: Delivered | None = None
) -> int:
    """The time of the last event, or of the end up to which nothing may forbid the match."""
    if not trailing_negatives(pattern):
        return production[-1].placed.time
    first, within = production[0].placed, pattern.within
    if span is not None and window_end(within, stream, first) > span.resolved:
        return span.ended_at
    assert within is not None
    if within.time_us is not None:
        return first.time + within.time_us
    return max(placed.time for placed in stream if inside(within, first, placed))


def match_of(
    rule: Rule,
    key: dict[str, Any] | None,
    opening: tuple[int, int],
    production: Production,
    ending: Ending,
) -> Match:
    """`opening`: the selection's id, and when it was opened."""
    assert rule.pattern is not None
    names = [component.name for component in rule.pattern.components]
    last = production[-1].placed
    rank = forwards(production)
    order = (opening[0], last.seq, rank) if rule.merge == "selection" else (ending.decided, opening[0], rank)
    here = Bindings(
        bound={names[bound.component]: bound.placed.row for bound in production},
        groups={
            name: [bound.placed.row for bound in production if names[bound.component] == name]
            for name in names
        },
    )
    fields = {emit.name: value_of(emit.expr, here) for emit in rule.emit if emit.expr is not None}
    events = tuple(shown(names[bound.component], bound.placed) for bound in production)
    return Match(
        key,
        opening[0],
        last.seq,
        opening[1],
        ending.matched_at,
        fields,
        events,
        ending.decided,
        ending.releasable,
        order,
    )


def shown(component: str, placed: Placed) -> tuple[str, int, int, str, int]:
    return component, placed.seq, placed.time, placed.event.source, placed.event.offset


# ---------------------------------------------------------------- spans


def spans_matches(rule: Rule, key: dict[str, Any] | None, stream: Stream) -> list[Match]:
    spans = spans_of(rule, stream)
    matches: list[Match] = []
    for span in spans:
        earlier = (
            [before.resolved for before in spans[: span.selection_id]] if rule.merge == "selection" else []
        )
        matches += (
            operator_matches(rule, key, span, earlier)
            if rule.operator
            else inner_matches(rule, key, span, earlier)
        )
    return matches


def inner_matches(
    rule: Rule, key: dict[str, Any] | None, span: Delivered, earlier: list[Position]
) -> list[Match]:
    pattern = rule.pattern
    assert pattern is not None
    opened, picked = CONTEXTS[str(pattern.context)](pattern, span.events)
    matches = []
    for one in picked:
        decided = min(one.decided, span.resolved)
        if isinstance(rule.span, CountSpan):
            decided = span.resolved
        elif str(pattern.context) == "next, selected" and not nothing_waits(pattern):
            decided = max(
                [decided, *(min(before.resolved, span.resolved) for before in opened[: one.selection])]
            )
        at = matched_at(pattern, span.events, one.production, span)
        ending = Ending(at, decided, max([decided, *earlier]))
        opening = (span.selection_id, span.opened_at)
        matches.append(match_of(rule, key, opening, one.production, ending))
    return matches


def operator_matches(
    rule: Rule, key: dict[str, Any] | None, span: Delivered, earlier: list[Position]
) -> list[Match]:
    assert rule.operator is not None
    module, name = rule.operator.split(":")
    rows = [dict(placed.row) for placed in span.events]
    closing = dict(span.closing.row) if span.closing else None
    seen = Span(rule.name, span.selection_id, key, rows, rows[0], closing)
    seq = span.events[-1].seq
    releasable = max([span.resolved, *earlier])
    matches = []
    for number, row in enumerate(getattr(importlib.import_module(module), name)(seen)):
        order = (
            (span.selection_id, seq, number)
            if rule.merge == "selection"
            else (span.resolved, span.selection_id, number)
        )
        fields = {emit.name: row.get(emit.name) for emit in rule.emit}
        matches.append(
            Match(
                key,
                span.selection_id,
                seq,
                span.opened_at,
                span.ended_at,
                fields,
                (),
                span.resolved,
                releasable,
                order,
            )
        )
    return matches
