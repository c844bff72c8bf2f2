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
  the order; then that one waits for it. `matched_at` is the end of the last window that its choice waits for:
  for a window by count the time of the event that fills it, or of the stream's last one if none does, and the
  end of the span if that comes before.
- With an optional component in last place a match is decided at the event that makes its group full, else at
  the end of its window; in `latest, zero` and `earliest, zero`, where a selection may have several matches,
  always there. In a span with `merge: selection` it is released at the span's end, which tells in which order
  the span's matches end.
- Strict contiguity compares positions of the rule's stream, of one key.
- A pattern inside a span is evaluated over the span's events as over a whole stream, and its match is decided
  at its last event. There are two exceptions where nobody can know then. In a count span it is decided where
  the span is full. With `next, selected` it is decided where the span's earlier initiators are known to have
  no match: at the end of their windows, or where the span ends.
- The events of a production set stand in stream order, those of a conjunction too, and so are compared.
- What an event's `prev` is does not depend on what was used up or closed: it is the event n places before in
  the rule's stream of the key, inside a span in the span.
- A condition that mentions `open` is looked at inside spans alone. Which events are in the rule's stream is
  decided by what stands beside it under no `or` or `not`; if nothing does, every event is.
- The match of a span that aggregates is that of a Python operator which gives one row or none. A column
  without a component in its `emit` or `where` is the same in all of the span's events: one of them is read.
"""

from __future__ import annotations

import importlib
import itertools
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from spark_pace.core.plan.rule import CountSpan, Pattern, PredicateSpan, Rule
from tests.oracle.candidates import forwards
from tests.oracle.components import called, opened_by
from tests.oracle.contexts import CONTEXTS, Picked, may_wait, nothing_waits
from tests.oracle.expressions import Bindings, holds, value_of
from tests.oracle.folds import fold_rows
from tests.oracle.row_pattern_rules import found_rows
from tests.oracle.rules_stream import end_of, in_stream_order, json_text, keyed_streams
from tests.oracle.spans import Delivered, spans_of
from tests.oracle.stream import END, Event, Placed, Position, Production, Stream


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
    matches, events = list[Match](), list(events)
    for key_text, stream in keyed_streams(rule, in_stream_order(rule, events)):
        key = None if key_text is None else json.loads(key_text)
        if rule.fold:
            of_key = fold_matches(rule, key, stream)
        elif rule.rows:
            of_key = row_pattern_matches(rule, key, stream, max(event.time for event in events))
        elif rule.span:
            of_key = spans_matches(rule, key, stream)
        else:
            of_key = pattern_matches(rule, key, stream, end_of(rule, stream))
        of_key.sort(key=lambda match: match.order)
        if rule.merge == "selection" and rule.pattern is not None and may_wait(rule.pattern):
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


# ---------------------------------------------------------------- matches of patterns


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
        behind = [min(one.behind, end), *earlier] if waits else []
        ending = Ending(matched_at(pattern, stream, one), decided, max([decided, *behind]))
        matches.append(match_of(rule, key, opening, one.production, ending))
    return matches


@dataclass(frozen=True)
class Ending:
    """When a match is one, where that is decided, and where it can be released."""

    matched_at: int
    decided: Position
    releasable: Position


def matched_at(pattern: Pattern, stream: Stream, one: Picked, span: Delivered | None = None) -> int:
    """The time of the last event, or of the end up to which it is open which candidates are forbidden."""
    if not may_wait(pattern):
        return one.production[-1].placed.time
    if span is not None and one.decided > span.resolved:
        return span.ended_at
    return int(one.decided[0]) if one.decided < END else stream[-1].time


def match_of(
    rule: Rule,
    key: dict[str, Any] | None,
    opening: tuple[int, int],
    production: Production,
    ending: Ending,
) -> Match:
    """`opening`: the selection's id, and when it was opened."""
    assert rule.pattern is not None
    last = production[-1].placed
    rank = forwards(production)
    order = (opening[0], last.seq, rank) if rule.merge == "selection" else (ending.decided, opening[0], rank)
    here = in_fields(rule.pattern, production)
    fields = {emit.name: value_of(emit.expr, here) for emit in rule.emit if emit.expr is not None}
    events = tuple(shown(called(rule.pattern, bound), bound.placed) for bound in production)
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


def in_fields(pattern: Pattern, production: Production) -> Bindings:
    """What names in `emit` stand for: a disjunction's own name and the member's for the same event."""
    members = [member.name for component in pattern.components for member in component.members]
    named = [
        (name, bound.placed.row)
        for bound in production
        for name in {pattern.components[bound.component].name, called(pattern, bound)}
    ]
    befores = {
        name: bound.placed.before
        for bound in production
        for name in (pattern.components[bound.component].name, called(pattern, bound))
    }
    others = [one.name for one in pattern.components if pattern.order == "disjunction"]
    absent = {name: dict.fromkeys(production[0].placed.row) for name in [*members, *others]}
    groups = {
        name: [row for own, row in named if own == name]
        for name in [*members, *(component.name for component in pattern.components)]
    }
    singles = opened_by(production[0].placed) | absent | dict(named)
    return Bindings(event=production[0].placed.row, bound=singles, groups=groups, befores=befores)


def shown(component: str, placed: Placed) -> tuple[str, int, int, str, int]:
    return component, placed.seq, placed.time, placed.event.source, placed.event.offset


# ---------------------------------------------------------------- folds


def fold_matches(rule: Rule, key: dict[str, Any] | None, stream: Stream) -> list[Match]:
    matches = []
    for number, (placed, fields) in enumerate(fold_rows(rule, stream)):
        at, events = placed.position, (shown("event", placed),)
        matches.append(
            Match(key, number, placed.seq, placed.time, placed.time, fields, events, at, at, (at, number))
        )
    return matches


def row_pattern_matches(rule: Rule, key: dict[str, Any] | None, stream: Stream, last: int) -> list[Match]:
    matches = []
    for number, found in enumerate(found_rows(rule, stream, end_of(rule, stream), last)):
        events, at = tuple(shown(*one) for one in found.events), found.decided
        matches.append(Match(key, number, *found.told, events, at, at, (at, number)))
    return matches


# ---------------------------------------------------------------- spans


def spans_matches(rule: Rule, key: dict[str, Any] | None, stream: Stream) -> list[Match]:
    spans = spans_of(rule, stream)
    matches: list[Match] = []
    for span in spans:
        own = rule.pattern is not None and may_wait(rule.pattern)
        until = span.selection_id + own if rule.merge == "selection" else 0
        earlier = [before.resolved for before in spans[:until]]
        if rule.pattern is not None:
            matches += inner_matches(rule, key, span, earlier)
        else:
            matches += matches_of_rows(rule, key, span, earlier)
    return matches


def seen_inside(rule: Rule, span: Delivered) -> list[Placed]:
    """The span's events as if they were the whole stream."""
    rows = [placed.row for placed in span.events]
    opening = rows[0] if isinstance(rule.span, PredicateSpan) else None
    seen: list[Placed] = []
    for number, placed in enumerate(span.events):
        seen.append(replace(placed, before=rows[:number], opening=opening, earlier=[*seen]))
    return seen


def inner_matches(
    rule: Rule, key: dict[str, Any] | None, span: Delivered, earlier: list[Position]
) -> list[Match]:
    pattern = rule.pattern
    assert pattern is not None
    stream = seen_inside(rule, span)
    opened, picked = CONTEXTS[str(pattern.context)](pattern, stream)
    matches = []
    for one in picked:
        decided = min(one.decided, span.resolved)
        if isinstance(rule.span, CountSpan):
            decided = span.resolved
        elif str(pattern.context) == "next, selected" and not nothing_waits(pattern):
            decided = max(
                [decided, *(min(before.resolved, span.resolved) for before in opened[: one.selection])]
            )
        at = matched_at(pattern, stream, one, span)
        ending = Ending(at, decided, max([decided, *earlier]))
        opening = (span.selection_id, span.opened_at)
        matches.append(match_of(rule, key, opening, one.production, ending))
    return matches


def matches_of_rows(
    rule: Rule, key: dict[str, Any] | None, span: Delivered, earlier: list[Position]
) -> list[Match]:
    """The matches that do not tell their events: of a Python operator, or of aggregates."""
    seq = span.events[-1].seq
    releasable = max([span.resolved, *earlier])
    matches = []
    for number, fields in enumerate(
        operator_rows(rule, key, span) if rule.operator else aggregated_rows(rule, span)
    ):
        order = (
            (span.selection_id, seq, number)
            if rule.merge == "selection"
            else (span.resolved, span.selection_id, number)
        )
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


def operator_rows(rule: Rule, key: dict[str, Any] | None, span: Delivered) -> Iterator[dict[str, Any]]:
    assert rule.operator is not None
    module, name = rule.operator.split(":")
    rows = [dict(placed.row) for placed in span.events]
    closing = dict(span.closing.row) if span.closing else None
    seen = Span(rule.name, span.selection_id, key, rows, rows[0], closing)
    for row in getattr(importlib.import_module(module), name)(seen):
        yield {emit.name: row.get(emit.name) for emit in rule.emit}


def aggregated_rows(rule: Rule, span: Delivered) -> Iterator[dict[str, Any]]:
    """One row where the condition holds; it is over aggregates, and so are the fields."""
    placed = seen_inside(rule, span)[-1]
    rows = [placed.row for placed in span.events]
    here = Bindings(event=placed.row, bound=opened_by(placed), span=rows)
    if rule.having is None or holds(rule.having, here):
        yield {emit.name: value_of(emit.expr, here) for emit in rule.emit if emit.expr is not None}
