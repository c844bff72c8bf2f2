"""The explicit spans of a stream: what opens and closes each, and the events between."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from spark_pace.core.plan.rule import CountSpan, GridSpan, PredicateSpan, Rule, SessionSpan
from tests.oracle.expressions import Bindings, holds
from tests.oracle.stream import Placed, Position, Stream


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


def sessions(span: SessionSpan, stream: Stream) -> Iterator[Delivered]:
    runs: list[list[Placed]] = []
    for placed in stream:
        if not runs or placed.time > session_end(span, runs[-1]):
            runs.append([])
        runs[-1].append(placed)
    for selection, events in enumerate(runs):
        ended_at = session_end(span, events)
        yield Delivered(selection, events, events[0].time, ended_at, (ended_at, 1, 0), None)


def session_end(span: SessionSpan, events: list[Placed]) -> int:
    """The last time at which an event still belongs to a session with these events."""
    silent = events[-1].time + span.gap_us
    return silent if span.within_us is None else min(silent, events[0].time + span.within_us)


def spans_of(rule: Rule, stream: Stream) -> list[Delivered]:
    if isinstance(rule.span, PredicateSpan):
        return list(predicate_spans(rule.span, stream))
    if isinstance(rule.span, GridSpan):
        return list(grid_spans(rule.span, stream))
    if isinstance(rule.span, SessionSpan):
        return list(sessions(rule.span, stream))
    assert isinstance(rule.span, CountSpan)
    return list(count_spans(rule.span, stream))
