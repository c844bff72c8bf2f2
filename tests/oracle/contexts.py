"""What the nine parameter contexts pick from a stream.

All candidates are found by brute force; then each context's definition is read literally.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from spark_pace.core.plan.rule import Pattern, Within
from tests.oracle.expressions import Bindings, holds

Position = tuple[float, int, int]
END: Position = (math.inf, 0, 0)


@dataclass(frozen=True)
class Event:
    """An event of the input: `row` holds its attributes, times as microseconds."""

    time: int
    source: str
    offset: int
    row: dict[str, Any] = field(hash=False)


@dataclass(frozen=True)
class Placed:
    """An event of the rule's stream (of one key)."""

    event: Event
    place: int
    seq: int

    @property
    def time(self) -> int:
        return self.event.time

    @property
    def row(self) -> dict[str, Any]:
        return self.event.row

    @property
    def position(self) -> Position:
        return (self.event.time, 0, self.place)


Stream = Sequence[Placed]


@dataclass(frozen=True)
class Bound:
    """One event of a production set, and the index of the component it stands for."""

    placed: Placed
    component: int


Production = tuple[Bound, ...]


@dataclass(frozen=True)
class Opened:
    """A selection: what opened it, and where it is resolved."""

    opening: Placed
    resolved: Position


@dataclass(frozen=True)
class Picked:
    """A candidate that its context picked, in the selection with the id `selection`."""

    selection: int
    production: Production


# ---------------------------------------------------------------- windows and candidates


def window_end(within: Within | None, stream: Stream, opening: Placed) -> Position:
    if within is None:
        return END
    if within.time_us is not None:
        return (opening.time + within.time_us, 1, 0)
    assert within.events is not None
    last = opening.seq + within.events - 1
    return next((placed.position for placed in stream if placed.seq == last), END)


def inside(within: Within | None, first: Placed, last: Placed) -> bool:
    """Whether `last` stands in the window that starts at `first`."""
    if within is None:
        return True
    if within.time_us is not None:
        return last.time - first.time <= within.time_us
    assert within.events is not None
    return last.seq - first.seq < within.events


def satisfies(pattern: Pattern, index: int, placed: Placed) -> bool:
    return holds(pattern.components[index].predicate, Bindings(event=placed.row))


def bindings_of(pattern: Pattern, events: Sequence[Placed]) -> Bindings:
    return Bindings(
        bound={
            component.name: placed.row for component, placed in zip(pattern.components, events, strict=False)
        }
    )


def candidates(pattern: Pattern, stream: Stream) -> list[tuple[Placed, ...]]:
    """Every candidate of the stream."""
    matching = [
        [satisfies(pattern, index, placed) for placed in stream] for index in range(len(pattern.components))
    ]
    found = []
    for places in itertools.combinations(range(len(stream)), len(pattern.components)):
        if all(matching[index][place] for index, place in enumerate(places)):
            events = tuple(stream[place] for place in places)
            here = bindings_of(pattern, events)
            if inside(pattern.within, events[0], events[-1]) and all(
                holds(conjunct.expr, here) for conjunct in pattern.where
            ):
                found.append(events)
    return found


def initiators(pattern: Pattern, stream: Stream) -> list[Placed]:
    return [placed for placed in stream if satisfies(pattern, 0, placed)]


def forwards(events: tuple[Placed, ...]) -> tuple[int, ...]:
    """Orders candidates by their positions, first to last."""
    return tuple(placed.seq for placed in events)


def backwards(events: tuple[Placed, ...]) -> tuple[int, ...]:
    """Orders candidates by their positions, last back to first."""
    return tuple(placed.seq for placed in reversed(events))


def greatest(ending: list[tuple[Placed, ...]]) -> tuple[Placed, ...]:
    return max(ending, key=backwards)


def sequence(events: Iterable[Placed]) -> Production:
    return tuple(Bound(placed, index) for index, placed in enumerate(events))


# ---------------------------------------------------------------- the contexts


Selections = tuple[list[Opened], list[Picked]]


def each_zero(pattern: Pattern, stream: Stream) -> Selections:
    opened, picked = [], []
    everything = candidates(pattern, stream)
    for selection, initiator in enumerate(initiators(pattern, stream)):
        starting = [events for events in everything if events[0] == initiator]
        closing = min((events[-1].seq for events in starting), default=None)
        resolved = next(
            (events[-1].position for events in starting if events[-1].seq == closing),
            window_end(pattern.within, stream, initiator),
        )
        if pattern.close == "window":
            resolved = window_end(pattern.within, stream, initiator)
        opened.append(Opened(initiator, resolved))
        picked += [
            Picked(selection, sequence(events))
            for events in starting
            if pattern.close == "window" or events[-1].seq == closing
        ]
    return opened, picked


def one_at_every_terminator(
    pattern: Pattern, stream: Stream, pick: Callable[[list[tuple[Placed, ...]]], tuple[Placed, ...]]
) -> Selections:
    """Nothing is used up: `latest, zero` and `earliest, zero`."""
    starts = initiators(pattern, stream)
    opened = [Opened(initiator, window_end(pattern.within, stream, initiator)) for initiator in starts]
    picked = []
    everything = candidates(pattern, stream)
    for terminator in stream:
        ending = [events for events in everything if events[-1] == terminator]
        if ending:
            events = pick(ending)
            picked.append(Picked(starts.index(events[0]), sequence(events)))
    return opened, picked


def latest_zero(pattern: Pattern, stream: Stream) -> Selections:
    return one_at_every_terminator(pattern, stream, greatest)


def earliest_zero(pattern: Pattern, stream: Stream) -> Selections:
    return one_at_every_terminator(pattern, stream, lambda ending: min(ending, key=forwards))


def walk(pattern: Pattern, stream: Stream, initiator: Placed) -> tuple[Placed, ...] | None:
    """Each component takes the first event that satisfies its predicate and the conjuncts decided by then."""
    taken = [initiator]
    for placed in stream:
        index = len(taken)
        if index == len(pattern.components):
            break
        if (
            placed.seq > taken[-1].seq
            and inside(pattern.within, initiator, placed)
            and satisfies(pattern, index, placed)
        ):
            here = bindings_of(pattern, [*taken, placed])
            if all(
                holds(conjunct.expr, here) for conjunct in pattern.where if max(conjunct.components) == index
            ):
                taken.append(placed)
    return tuple(taken) if len(taken) == len(pattern.components) else None


def next_zero(pattern: Pattern, stream: Stream) -> Selections:
    opened, picked = [], []
    for selection, initiator in enumerate(initiators(pattern, stream)):
        events = walk(pattern, stream, initiator)
        opened.append(
            Opened(
                initiator, events[-1].position if events else window_end(pattern.within, stream, initiator)
            )
        )
        picked += [Picked(selection, sequence(events))] if events else []
    return opened, picked


def next_selected(pattern: Pattern, stream: Stream) -> Selections:
    opened: list[Opened] = []
    picked: list[Picked] = []
    used_up_to = -1
    for initiator in initiators(pattern, stream):
        if initiator.seq <= used_up_to:
            continue
        events = walk(pattern, stream, initiator)
        if events:
            picked.append(Picked(len(opened), sequence(events)))
            used_up_to = events[-1].seq
        opened.append(
            Opened(
                initiator, events[-1].position if events else window_end(pattern.within, stream, initiator)
            )
        )
    return opened, picked


def one_open(
    pattern: Pattern, stream: Stream, pick: Callable[[Stream, list[tuple[Placed, ...]]], list[Production]]
) -> Selections:
    """The contexts `each`, `latest` and `all` with `selected` consumption.

    At most one selection is open, and the first completion inside it uses up its span.
    """
    opened: list[Opened] = []
    picked: list[Picked] = []
    everything = candidates(pattern, stream)
    used_up_to = -1
    for initiator in initiators(pattern, stream):
        if initiator.seq <= used_up_to:
            continue
        within_it = [
            events
            for events in everything
            if events[0].seq >= initiator.seq and inside(pattern.within, initiator, events[-1])
        ]
        if within_it:
            closing = min((events[-1] for events in within_it), key=lambda placed: placed.seq)
            span = [placed for placed in stream if initiator.seq <= placed.seq <= closing.seq]
            productions = pick(span, [events for events in within_it if events[-1] == closing])
            picked += [Picked(len(opened), production) for production in productions]
            opened.append(Opened(initiator, closing.position))
            used_up_to = closing.seq
        else:
            opened.append(Opened(initiator, window_end(pattern.within, stream, initiator)))
    return opened, picked


def each_selected(pattern: Pattern, stream: Stream) -> Selections:
    return one_open(pattern, stream, lambda span, ending: [sequence(events) for events in ending])


def latest_selected(pattern: Pattern, stream: Stream) -> Selections:
    return one_open(pattern, stream, lambda span, ending: [sequence(greatest(ending))])


def all_selected(pattern: Pattern, stream: Stream) -> Selections:
    def gather(span: Stream, ending: list[tuple[Placed, ...]]) -> list[Production]:
        """Every event that matches a component, as the first declared one it matches."""
        roles = [
            (placed, [index for index in range(len(pattern.components)) if satisfies(pattern, index, placed)])
            for placed in span
        ]
        return [tuple(Bound(placed, indices[0]) for placed, indices in roles if indices)]

    return one_open(pattern, stream, gather)


def earliest_selected(pattern: Pattern, stream: Stream) -> Selections:
    starts = initiators(pattern, stream)
    resolved = {initiator: window_end(pattern.within, stream, initiator) for initiator in starts}
    picked = []
    everything = candidates(pattern, stream)
    used: set[Placed] = set()
    for terminator in stream:
        ending = [events for events in everything if events[-1] == terminator and not used & set(events)]
        if ending:
            events = min(ending, key=forwards)
            used |= set(events)
            resolved[events[0]] = terminator.position
            picked.append(Picked(starts.index(events[0]), sequence(events)))
    return [Opened(initiator, resolved[initiator]) for initiator in starts], picked


CONTEXTS: dict[str, Callable[[Pattern, Stream], Selections]] = {
    "each, zero": each_zero,
    "latest, zero": latest_zero,
    "next, zero": next_zero,
    "earliest, zero": earliest_zero,
    "each, selected": each_selected,
    "latest, selected": latest_selected,
    "next, selected": next_selected,
    "all, selected": all_selected,
    "earliest, selected": earliest_selected,
}
