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
- A pattern inside a span is evaluated over the span's events as over a whole stream, and its match is decided
  at its last event. There are two exceptions where nobody can know then. In a count span it is decided where
  the span is full. With `next, selected` it is decided where the span's earlier initiators are known to have
  no match: at the end of their windows, or where the span ends.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from spark_pace.core.plan.rule import CountSpan, GridSpan, Pattern, PredicateSpan, Rule
from tests.oracle.contexts import CONTEXTS, END, Event, Placed, Position, Production, Stream
from tests.oracle.expressions import Bindings, holds, value_of


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
        releases = [match.releasable for match in of_key]
        assert releases == sorted(releases), (
            "the order of a key's matches is not the order in which they can be released"
        )
        matches += of_key
    return sorted(matches, key=lambda match: (match.releasable, json_text(match.key)))


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
    counts = (
        rule.pattern is not None
        and rule.pattern.within is not None
        and rule.pattern.within.events is not None
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
    return pattern.within is None and not pattern.where


def pattern_matches(rule: Rule, key: dict[str, Any] | None, stream: Stream, end: Position) -> list[Match]:
    pattern = rule.pattern
    assert pattern is not None
    opened, picked = CONTEXTS[str(pattern.context)](pattern, stream)
    waits = not nothing_waits(pattern) and (
        rule.merge == "selection" or str(pattern.context) == "next, selected"
    )
    matches = []
    for one in picked:
        decided = one.production[-1].placed.position
        earlier = [min(selection.resolved, end) for selection in opened[: one.selection]] if waits else []
        opened_at = opened[one.selection].opening.time
        matches.append(
            match_of(rule, key, one.selection, opened_at, one.production, decided, max([decided, *earlier]))
        )
    return matches


def match_of(
    rule: Rule,
    key: dict[str, Any] | None,
    selection_id: int,
    opened_at: int,
    production: Production,
    decided: Position,
    releasable: Position,
) -> Match:
    assert rule.pattern is not None
    names = [component.name for component in rule.pattern.components]
    last = production[-1].placed
    rank = tuple(bound.placed.seq for bound in production), tuple(bound.component for bound in production)
    order = (selection_id, last.seq, rank) if rule.merge == "selection" else (decided, selection_id, rank)
    here = Bindings(
        bound={names[bound.component]: bound.placed.row for bound in production},
        groups={
            name: [bound.placed.row for bound in production if names[bound.component] == name]
            for name in names
        },
    )
    fields = {emit.name: value_of(emit.expr, here) for emit in rule.emit if emit.expr is not None}
    events = tuple(
        (
            names[bound.component],
            bound.placed.seq,
            bound.placed.time,
            bound.placed.event.source,
            bound.placed.event.offset,
        )
        for bound in production
    )
    return Match(
        key, selection_id, last.seq, opened_at, last.time, fields, events, decided, releasable, order
    )


# ---------------------------------------------------------------- spans


@dataclass(frozen=True)
class Delivered:
    """A span: its events, where it is resolved, and the event that closed it (None: the window's end did)."""

    selection_id: int
    events: list[Placed]
    opened_at: int
    ended_at: int
    resolved: Position
    closing: Placed | None


def predicate_spans(span: PredicateSpan, stream: Stream) -> Iterator[Delivered]:
    openings = [placed for placed in stream if holds(span.open, Bindings(event=placed.row))]
    for selection, opening in enumerate(openings):
        window = [
            placed
            for placed in stream
            if placed.seq >= opening.seq and placed.time <= opening.time + span.within_us
        ]
        closing = next((placed for placed in window[1:] if closes(span, opening, placed)), None)
        if closing is None:
            ended_at = opening.time + span.within_us
            yield Delivered(selection, window, opening.time, ended_at, (ended_at, 1, 0), None)
        else:
            events = [placed for placed in window if placed.seq <= closing.seq]
            yield Delivered(selection, events, opening.time, closing.time, closing.position, closing)


def closes(span: PredicateSpan, opening: Placed, placed: Placed) -> bool:
    here = Bindings(event=placed.row, bound={"open": opening.row})
    return holds(span.close, here) and all(holds(conjunct, here) for conjunct in span.close_where)


def grid_spans(span: GridSpan, stream: Stream) -> Iterator[Delivered]:
    windows: dict[int, list[Placed]] = {}
    for placed in stream:
        k = placed.time // span.every_us  # the last window that starts at or before the event
        while k * span.every_us + span.size_us > placed.time:
            windows.setdefault(k, []).append(placed)
            k -= 1
    for selection, k in enumerate(sorted(windows)):
        start = k * span.every_us
        end = start + span.size_us
        yield Delivered(selection, windows[k], start, end, (end - 1, 1, 0), None)


def count_spans(span: CountSpan, stream: Stream) -> Iterator[Delivered]:
    for selection, start in enumerate(range(0, len(stream) - span.size + 1, span.every)):
        events = list(stream[start : start + span.size])
        yield Delivered(selection, events, events[0].time, events[-1].time, events[-1].position, events[-1])


def spans_matches(rule: Rule, key: dict[str, Any] | None, stream: Stream) -> list[Match]:
    if isinstance(rule.span, PredicateSpan):
        spans = list(predicate_spans(rule.span, stream))
    elif isinstance(rule.span, GridSpan):
        spans = list(grid_spans(rule.span, stream))
    else:
        assert isinstance(rule.span, CountSpan)
        spans = list(count_spans(rule.span, stream))
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
        decided = one.production[-1].placed.position
        if isinstance(rule.span, CountSpan):
            decided = span.resolved
        elif str(pattern.context) == "next, selected" and not nothing_waits(pattern):
            decided = max(
                [decided, *(min(before.resolved, span.resolved) for before in opened[: one.selection])]
            )
        releasable = max([decided, *earlier])
        place = (span.selection_id, span.opened_at)
        matches.append(match_of(rule, key, *place, one.production, decided, releasable))
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
