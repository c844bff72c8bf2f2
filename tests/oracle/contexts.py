"""What the nine parameter contexts pick from a stream.

All candidates are found by brute force; then each context's definition is read literally.

A candidate that nothing but a negated component in last place can still forbid counts as one where it is said
what a match waits for: it is decided at the end of the window that starts at its first event.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from spark_pace.core.plan.rule import Pattern
from tests.oracle.candidates import backwards, candidates, forwards, survives
from tests.oracle.components import beginning, optional_last, positives, satisfies, trailing_negatives
from tests.oracle.inner_sequences import first_ones
from tests.oracle.optional_last import is_full, reads_others, with_optional_last
from tests.oracle.stream import BEGIN, Bound, Placed, Position, Production, Stream, inside, window_end
from tests.oracle.stream import Event as Event
from tests.oracle.walk import walk


@dataclass(frozen=True)
class Opened:
    """A selection: what opened it, and where it is resolved."""

    opening: Placed
    resolved: Position


@dataclass(frozen=True)
class Picked:
    """A match that its context picked, in the selection with the id `selection`, and where it is decided.

    `behind`: where all candidates are decided that might come out before it, in its selection.
    """

    selection: int
    production: Production
    decided: Position
    behind: Position = BEGIN


Selections = tuple[list[Opened], list[Picked]]


def initiators(pattern: Pattern, stream: Stream) -> list[Placed]:
    """The events that match a component that a match can begin with."""
    first = first_ones(pattern) if pattern.order != "sequence" else beginning(pattern)
    return [placed for placed in stream if any(satisfies(pattern, index, placed) for index in first)]


def first_of(production: Production) -> Placed:
    return production[0].placed


def last_of(production: Production) -> Placed:
    return production[-1].placed


def may_wait(pattern: Pattern) -> bool:
    """Whether a match may be decided at the end of a window."""
    return bool(trailing_negatives(pattern)) or optional_last(pattern) is not None


def nothing_waits(pattern: Pattern) -> bool:
    """Whether it is a plain sequence without a window."""
    return (
        pattern.within is None
        and not pattern.where
        and pattern.order == "sequence"
        and pattern.contiguity == "relaxed"
        and not any(
            component.negated or component.times or component.follows == "strict"
            for component in pattern.components
        )
    )


def decided_at(pattern: Pattern, stream: Stream, last: Placed, waited_for: Iterable[Production]) -> Position:
    """Where a match that ends at `last` is decided, if its choice rests on these candidates.

    What an optional component in last place adds is looked at in `picked_with_optional_last`.
    """
    if not trailing_negatives(pattern):
        return last.position
    return max(window_end(pattern.within, stream, first_of(production)) for production in waited_for)


def resolved_at(pattern: Pattern, stream: Stream, opening: Placed, closing: Placed | None) -> Position:
    return closing.position if closing else window_end(pattern.within, stream, opening)


def picked_with_optional_last(pattern: Pattern, stream: Stream, picked: Picked) -> Picked:
    """The match with the events of an optional component in last place, and where it is decided then.

    It is at the event that makes the group full, else at the end of the window. Where a selection may have
    several matches that end with different events, only at that end their order is known.
    """
    if optional_last(pattern) is None:
        return picked
    production = with_optional_last(pattern, stream, picked.production)
    several = str(pattern.context) in ("latest, zero", "earliest, zero") or (
        str(pattern.context) == "each, zero" and reads_others(pattern)
    )
    if not several and is_full(pattern, len(production) - len(picked.production)):
        return Picked(picked.selection, production, last_of(production).position)
    ended = window_end(pattern.within, stream, first_of(production))
    return Picked(picked.selection, production, ended)


# ---------------------------------------------------------------- every initiator opens a selection


def each_zero(pattern: Pattern, stream: Stream) -> Selections:
    opened, picked = [], []
    everything = [
        production for production in candidates(pattern, stream) if survives(pattern, stream, production)
    ]
    for selection, initiator in enumerate(initiators(pattern, stream)):
        starting = [production for production in everything if first_of(production) == initiator]
        closing = min(map(last_of, starting), key=lambda placed: placed.seq, default=None)
        if pattern.close == "window":
            closing = None
        closed = next((one for one in starting if last_of(one) == closing), None)
        behind = None if closed is None else last_of(with_optional_last(pattern, stream, closed))
        opened.append(Opened(initiator, resolved_at(pattern, stream, initiator, behind)))
        for production in starting:
            if closing is None or last_of(production) == closing:
                decided = decided_at(pattern, stream, last_of(production), [production])
                found = Picked(selection, production, decided)
                picked.append(picked_with_optional_last(pattern, stream, found))
    return opened, picked


def one_at_every_terminator(
    pattern: Pattern, stream: Stream, pick: Callable[[list[Production]], Production]
) -> Selections:
    """Nothing is used up: `latest, zero` and `earliest, zero`.

    A greater candidate may start later, and so be decided later; one that is less starts no later.
    """
    starts = initiators(pattern, stream)
    picked = []
    everything = candidates(pattern, stream)
    decisions: dict[Placed, Position] = {}
    for terminator in stream:
        ending = [production for production in everything if last_of(production) == terminator]
        surviving = [production for production in ending if survives(pattern, stream, production)]
        if ending and pick is greatest:
            decisions[terminator] = decided_at(pattern, stream, terminator, ending)
        if surviving:
            best = pick(surviving)
            decided = decided_at(pattern, stream, terminator, [best] if pick is least else ending)
            behind = max(decisions.values(), default=BEGIN)
            found = Picked(starts.index(first_of(best)), best, decided, behind)
            picked.append(picked_with_optional_last(pattern, stream, found))
    return [opened_until(pattern, stream, initiator, decisions) for initiator in starts], picked


def opened_until(
    pattern: Pattern, stream: Stream, initiator: Placed, decisions: dict[Placed, Position]
) -> Opened:
    """The selection, resolved where its window has ended and all candidates that end in it are decided."""
    inner = [
        position
        for terminator, position in decisions.items()
        if terminator.seq >= initiator.seq and inside(pattern.within, initiator, terminator)
    ]
    return Opened(initiator, max([window_end(pattern.within, stream, initiator), *inner]))


def least(ending: list[Production]) -> Production:
    return min(ending, key=forwards)


def greatest(ending: list[Production]) -> Production:
    return max(ending, key=backwards)


def latest_zero(pattern: Pattern, stream: Stream) -> Selections:
    return one_at_every_terminator(pattern, stream, greatest)


def earliest_zero(pattern: Pattern, stream: Stream) -> Selections:
    return one_at_every_terminator(pattern, stream, least)


def next_zero(pattern: Pattern, stream: Stream) -> Selections:
    opened, picked = [], []
    for selection, initiator in enumerate(initiators(pattern, stream)):
        production = walk(pattern, stream, initiator)
        closing = last_of(with_optional_last(pattern, stream, production)) if production else None
        opened.append(Opened(initiator, resolved_at(pattern, stream, initiator, closing)))
        if production:
            decided = decided_at(pattern, stream, last_of(production), [production])
            found = Picked(selection, production, decided)
            picked.append(picked_with_optional_last(pattern, stream, found))
    return opened, picked


def earliest_selected(pattern: Pattern, stream: Stream) -> Selections:
    starts = initiators(pattern, stream)
    closed: dict[Placed, Position] = {}
    decisions: dict[Placed, Position] = {}
    picked = []
    used: set[Placed] = set()
    waited_for: list[Production] = []  # all that ended so far, as the stream was at their turn
    everything = candidates(pattern, stream)
    for terminator in stream:
        left = [placed for placed in stream if placed not in used]
        ending = [production for production in everything if last_of(production) == terminator]
        waited_for += ending
        if ending and trailing_negatives(pattern):
            decisions[terminator] = decided_at(pattern, stream, terminator, waited_for)
        surviving = [production for production in ending if survives(pattern, left, production)]
        if surviving:
            best = least(surviving)
            used |= {bound.placed for bound in best}
            closed[first_of(best)] = terminator.position
            decided = decided_at(pattern, stream, terminator, waited_for)
            picked.append(Picked(starts.index(first_of(best)), best, decided))
            everything = candidates(pattern, [placed for placed in stream if placed not in used])
    opened = [opened_until(pattern, stream, initiator, decisions) for initiator in starts]
    if not trailing_negatives(pattern):
        opened = [replace(one, resolved=closed.get(one.opening, one.resolved)) for one in opened]
    return opened, picked


# ---------------------------------------------------------------- at most one selection is open


def next_selected(pattern: Pattern, stream: Stream) -> Selections:
    opened: list[Opened] = []
    picked: list[Picked] = []
    used_up_to = -1
    for initiator in initiators(pattern, stream):
        if initiator.seq <= used_up_to:
            continue
        production = walk(pattern, stream, initiator)
        closing = last_of(production) if production else None
        resolved = resolved_at(pattern, stream, initiator, closing)
        if production:
            decided = decided_at(pattern, stream, last_of(production), [production])
            found = picked_with_optional_last(pattern, stream, Picked(len(opened), production, decided))
            before = [one.decided for one in picked] if optional_last(pattern) is not None else []
            found = Picked(found.selection, found.production, max([found.decided, *before]))
            picked.append(found)
            used_up_to = last_of(found.production).seq
            resolved = resolved if optional_last(pattern) is None else found.decided
        opened.append(Opened(initiator, resolved))
    return opened, picked


def one_open(
    pattern: Pattern, stream: Stream, pick: Callable[[Stream, list[Production]], list[Production]]
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
            production
            for production in everything
            if first_of(production).seq >= initiator.seq
            and inside(pattern.within, initiator, last_of(production))
        ]
        surviving = [production for production in within_it if survives(pattern, stream, production)]
        closing = min(map(last_of, surviving), key=lambda placed: placed.seq, default=None)
        if closing:
            span = [placed for placed in stream if initiator.seq <= placed.seq <= closing.seq]
            waited_for = [production for production in within_it if last_of(production).seq <= closing.seq]
            decided = decided_at(pattern, stream, closing, waited_for)
            ending = [production for production in surviving if last_of(production) == closing]
            picked += [Picked(len(opened), production, decided) for production in pick(span, ending)]
            used_up_to = closing.seq
        opened.append(Opened(initiator, resolved_at(pattern, stream, initiator, closing)))
    return opened, picked


def each_selected(pattern: Pattern, stream: Stream) -> Selections:
    return one_open(pattern, stream, lambda span, ending: ending)


def latest_selected(pattern: Pattern, stream: Stream) -> Selections:
    return one_open(pattern, stream, lambda span, ending: [greatest(ending)])


def all_selected(pattern: Pattern, stream: Stream) -> Selections:
    def gather(span: Stream, ending: list[Production]) -> list[Production]:
        """Every event that matches a component, as the first declared one it matches; no negated ones."""
        roles = [
            (placed, [index for index in positives(pattern) if satisfies(pattern, index, placed)])
            for placed in span
        ]
        return [tuple(Bound(placed, indices[0]) for placed, indices in roles if indices)]

    return one_open(pattern, stream, gather)


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
