"""The candidates that could have had an event, and what each failed at."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from spark_pace.core.match.contexts import context_of
from spark_pace.core.match.contexts.context import OneOpen, UsingUp
from spark_pace.core.match.search.search import Search
from spark_pace.io.replaying.why.answer import Candidate, Member
from spark_pace.io.replaying.why.attempts import Attempt, Seeking, used_up, walked
from spark_pace.io.replaying.why.failures import Failure
from spark_pace.io.replaying.why.opened import Opened
from spark_pace.io.replaying.why.stretch import Stretch

MOST_CANDIDATES = 5
MOST_STARTS = 100  # initiators from which candidates are sought
MOST_TERMINATORS = 20  # where a match uses up its events


def candidates_of(
    stretch: Stretch, opened: Opened, event: int, selection_id: int | None, waits: bool | None
) -> tuple[list[Candidate], int]:
    """What failed, the nearest misses first, and how many more initiators there are.

    Args:
        stretch: where the candidates stand.
        opened: its selections.
        event: the row of the event.
        selection_id: the number of the span that the stretch is; None: each selection has its own.
        waits: whether a span was open to the last; None: each selection says so itself.
    """
    tried: list[tuple[int, Attempt]] = []
    starts = list(_starts(stretch, opened, event))
    for index, start, stop in starts[:MOST_STARTS]:
        waiting = opened.waits(index) if waits is None else waits
        for attempt in _attempts(stretch, start, stop, event, waiting):
            tried.append((index, attempt))
    told = []
    for index, attempt in sorted(tried, key=lambda one: -len(one[1].rows)):
        number = int(opened.ids[index]) if selection_id is None else selection_id
        candidate = _told(stretch, attempt, number, event, delivered=not waits)
        if candidate is not None and candidate not in told:
            told.append(candidate)
    more = len(starts[MOST_STARTS:]) + len(told[MOST_CANDIDATES:])
    return told[:MOST_CANDIDATES], more


def _starts(stretch: Stretch, opened: Opened, event: int) -> Iterator[tuple[int, int, int]]:
    """(selection, first row, row after the last) of each initiator whose candidates may have the event.

    They come from the nearest back. Where no selection is open, it is the one that was over last.
    """
    here = opened.at(event)
    at = here if len(here) else opened.before(event)
    last_row, way = opened.last_row(), context_of(stretch.pattern).way
    inside = isinstance(way, OneOpen) and way.inside is not None
    for index in at[::-1].tolist():
        opening, stop = int(opened.openings[index]), int(last_row[index]) + 1
        starts = np.array([opening])
        if inside and len(here):
            initiators = stretch.search.members[0]
            starts = initiators[(initiators >= opening) & (initiators <= event)]
        for start in starts[::-1].tolist():
            yield index, start, min(stop, stretch.window_end(start))


def _attempts(stretch: Stretch, start: int, stop: int, event: int, waits: bool) -> Iterator[Attempt]:
    """How far candidates from an initiator came, for each component that the event can stand for."""
    if stretch.walks and stop > event:
        attempt = walked(stretch, start, stretch.window_end(start), event, waits=waits)
        if attempt is not None:
            yield attempt
        return
    shape, stream = stretch.search.between.shape, stretch.stream
    roles = [
        role
        for role, component in enumerate(stretch.pattern.components)
        if not component.negated and event in stream.matching(role)
    ]
    first = shape.anchors[0]
    for role in roles:
        begins = role == first
        alone = begins and stretch.pattern.components[first].times is None
        if (start == event and begins) or (start < event and not alone):
            yield from _for_role(
                stretch, Seeking(stretch, stretch.search, start, stop, event, role, None, waits)
            )
    if not roles and start < event:
        stopped = Seeking(stretch, stretch.search, start, stop, event, None).stopped_by_event()
        if stopped is not None:
            yield stopped


def _for_role(stretch: Stretch, seeking: Seeking) -> Iterator[Attempt]:
    if not isinstance(context_of(stretch.pattern).way, UsingUp):
        yield seeking.furthest()
        return
    for row in dict.fromkeys([seeking.start, seeking.event]):
        failure = used_up(stretch, row)
        if failure is not None:
            if row != seeking.event:  # else its match is told
                yield Attempt(stretch.search, [], row, failure)
            return
    yield _among_the_unused(stretch, seeking)


def _among_the_unused(stretch: Stretch, seeking: Seeking) -> Attempt:
    """The furthest that a candidate came at any terminator, each without what was used up before."""
    lasts = stretch.search.members[-1]
    lasts = lasts[(lasts >= seeking.event) & (lasts < seeking.stop)][:MOST_TERMINATORS]
    best: Attempt | None = None
    for last in lasts.tolist():
        search = _unused(stretch, last)
        at = Seeking(stretch, search, seeking.start, seeking.stop, seeking.event, seeking.role, last)
        attempt = at.furthest()
        if attempt.failure is None:
            taken = used_up(stretch, last, last)
            attempt = Attempt(search, attempt.rows[:-1], last, taken) if taken is not None else attempt
        if best is None or len(attempt.rows) > len(best.rows):
            best = attempt
    if best is not None:
        return best
    seeking.search = _unused(stretch, stretch.stream.rows)
    return seeking.furthest()


def _unused(stretch: Stretch, last: int) -> Search:
    """The search without the events of matches that end before a row."""
    used = [taken.rows for taken in stretch.matches if taken.rows[-1] < last]
    return stretch.without(np.concatenate([np.zeros(0, np.int64), *used]))


def _told(
    stretch: Stretch, attempt: Attempt, selection_id: int, event: int, *, delivered: bool
) -> Candidate | None:
    """The attempt for the answer; None where it is a match."""
    own = attempt.events(walking=stretch.walks)
    failure = attempt.failure
    if failure is None:
        if delivered:
            failure = _not_chosen(stretch, [row for _, row in own], event)
        else:
            failure = Failure("missing", "waits for the end of its span", waits=True)
    if failure is None:
        return None
    tried = None if attempt.tried is None else _tried(stretch, attempt, attempt.tried)
    members = tuple(stretch.member(component, row) for component, row in own)
    return Candidate(
        selection_id=selection_id,
        events=members,
        tried=tried,
        status="unfinished" if failure.waits else "failed",
        kind=failure.kind,
        condition=failure.condition,
        values=failure.values,
        by=failure.by,
        text=failure.text,
    )


def _tried(stretch: Stretch, attempt: Attempt, row: int) -> Member:
    """The event that came next, as the component that was sought, or else as one that it can be."""
    anchors = stretch.search.between.shape.anchors
    sought = anchors[min(len(attempt.rows), len(anchors) - 1)]
    components = enumerate(stretch.pattern.components)
    others = [index for index, component in components if not component.negated]
    roles = [index for index in (sought, *others) if row in stretch.stream.matching(index)]
    return stretch.member(roles[0], row) if roles else Member("", stretch.ref(row))


def _not_chosen(stretch: Stretch, rows: list[int], event: int) -> Failure | None:
    """Why a whole candidate is no match; None where it is one, or the event is in the match that is."""
    same_end = [taken for taken in stretch.matches if taken.rows[-1] == rows[-1]]
    if any(event in taken.rows for taken in same_end):
        return None
    policy = stretch.pattern.context.selection
    for taken in same_end[:1]:
        by = tuple(Member("", stretch.ref(int(row))) for row in taken.rows)
        text = f"{policy}: match {taken.out_seq}, {' '.join(map(str, by))}, was taken there"
        return Failure("not chosen", text, by=by)
    return Failure("not chosen", f"{policy}: another candidate was taken", None)
