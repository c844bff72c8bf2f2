"""Finds the candidates that could have had an event, and what stopped each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from spark_pace.core.match.contexts import context_of
from spark_pace.core.match.contexts.context import OneOpen, UsingUp
from spark_pace.reasons.answer_parts import Candidate, Member
from spark_pace.reasons.attempts import Attempt, Origin, Seeking, used_up, walked
from spark_pace.reasons.conjunction_attempts import beaten, in_any_order, parts_with, without_first
from spark_pace.reasons.failure_reasons import Failure, first_break
from spark_pace.reasons.selections import Opened
from spark_pace.reasons.stretch import Stretch, component_at

MOST_CANDIDATES = 5
MOST_STARTS = 100  # initiators whose candidates are sought
MOST_TERMINATORS = 20  # terminators that are tried if matches use up their events

_BEHIND_A_BREAK = ("within", "contiguity", "group", "order")  # reasons that may stand behind an earlier one


@dataclass(frozen=True)
class OfSpan:
    """The span that a stretch is.

    Attributes:
        selection_id: the span's number.
        waits: True if it was still open when the input ended.
        delivered: True if a complete candidate in it is a match.
    """

    selection_id: int
    waits: bool
    delivered: bool


def candidates_of(
    stretch: Stretch, opened: Opened, event: int, span: OfSpan | None
) -> tuple[list[Candidate], int]:
    """The candidates that failed, longest first, and how many more there are.

    The second number counts candidates beyond `MOST_CANDIDATES` and initiators beyond `MOST_STARTS`.

    Args:
        stretch: the events that candidates are made of.
        opened: the selections of the stretch.
        event: the row of the event.
        span: the span that the stretch is; None if it is no span.
    """
    tried: list[tuple[int, Attempt]] = []
    more = 0
    for part in parts_with(stretch, event):
        starts = list(_origins(part, opened, event, None if span is None else span.waits))
        more += len(starts[MOST_STARTS:])
        for origin in starts[:MOST_STARTS]:
            tried += [(origin.selection, attempt) for attempt in _attempts(part, origin)]
    tried = tried or list(without_first(stretch, opened, event))
    told = []
    for index, attempt in sorted(tried, key=lambda one: -len(one[1].rows)):
        number = int(opened.ids[index]) if span is None else span.selection_id
        candidate = _told(stretch, attempt, number, event, delivered=span is None or span.delivered)
        if candidate is not None and candidate not in told:
            told.append(candidate)
    return told[:MOST_CANDIDATES], more + len(told[MOST_CANDIDATES:])


def _origins(stretch: Stretch, opened: Opened, event: int, waits: bool | None) -> Iterator[Origin]:
    """The initiators whose candidates may have the event, the nearest first.

    They belong to the selections that are open at the event, or else to the last selection before it. `waits`
    is True if the span of the stretch was still open when the input ended; None if the stretch is no span.
    """
    here = opened.at(event)
    at = here if len(here) else opened.before(event)
    last_row, way = opened.last_row(), context_of(stretch.pattern).way
    inside = isinstance(way, OneOpen) and way.inside is not None
    for index in at[::-1].tolist():
        opening, stop = int(opened.openings[index]), int(last_row[index]) + 1
        starts = np.array([opening])
        if inside and len(here):
            initiators = stretch.search.initiators
            starts = initiators[(initiators >= opening) & (initiators <= event)]
        waiting = opened.waits(index) and waits is not False
        over = _over(stretch, opened, index)
        for start in starts[::-1].tolist():
            yield Origin(index, start, min(stop, stretch.window_end(start)), event, waiting, over)


def _over(stretch: Stretch, opened: Opened, index: int) -> Failure:
    """The failure of a candidate whose selection was over before its own window."""
    opening, close = stretch.member(int(opened.openings[index])), int(opened.closes[index])
    of = f"that {opening} opened{' in the span' if stretch.span else ''}"
    if close < 0:
        return Failure("closed", f"the window of the selection {of} was over", by=(opening,))
    by = stretch.member(close)
    return Failure("closed", f"{by} closed the selection {of}", by=(opening, by))


def _attempts(stretch: Stretch, origin: Origin) -> Iterator[Attempt]:
    """The furthest candidates from an initiator, one for each component that the event can be."""
    start, event = origin.start, origin.event
    if stretch.is_alternative and start not in stretch.search.initiators:  # another one has opened it
        return
    behind = stretch.search.between.shape.optional_last
    may_follow = behind is not None and event > start and event in stretch.stream.matching(behind)
    if stretch.walks and (origin.stop > event or may_follow):
        attempt = walked(stretch, origin) or beaten(stretch, origin)
        if attempt is not None:
            yield attempt
        return
    using_up = isinstance(context_of(stretch.pattern).way, UsingUp)
    if stretch.any_order:
        if using_up:
            yield from _unused_in_any_order(stretch, origin)
        else:
            yield from (one.furthest() for one in in_any_order(stretch, stretch.search, origin))
        return
    roles = [
        role
        for role, component in enumerate(stretch.pattern.components)
        if not component.negated and event in stretch.stream.matching(role)
    ]
    shape = stretch.search.between.shape
    first, behind = shape.anchors[0], shape.without_first
    no_first = behind is not None and start not in stretch.stream.matching(first)
    for role in roles:
        begins = role == first or (role == behind and start == event)
        alone = begins and stretch.pattern.components[first].times is None
        alone |= no_first and role in (first, behind)
        if (start == event and begins) or (start < event and not alone):
            seeking = Seeking(stretch, stretch.search.varied(walking=stretch.walks), origin, role)
            yield from _unused_in_sequence(stretch, seeking) if using_up else [seeking.furthest()]
    if not roles and start < event:
        search = stretch.search.varied(walking=stretch.walks)
        stopped = Seeking(stretch, search, origin, None).stopped_by_event()
        if stopped is not None:
            yield stopped


def _of_used_up(stretch: Stretch, origin: Origin) -> list[Attempt] | None:
    """The attempt of an initiator that is used up; None if neither it nor the event is used up.

    If only the event is used up, the list is empty, because the answer names the event's match anyway.
    """
    for row in dict.fromkeys([origin.start, origin.event]):
        failure = used_up(stretch, row)
        if failure is not None:
            return [] if row == origin.event else [Attempt(stretch.search, [], row, failure)]
    return None


def _unused_in_sequence(stretch: Stretch, seeking: Seeking) -> list[Attempt]:
    """The furthest attempt of a sequence, over all terminators, in a list of one or none.

    For each terminator, events that were used up before it are left out. If there is no terminator, all
    events that were ever used up are left out.
    """
    origin, used = seeking.origin, _of_used_up(stretch, seeking.origin)
    if used is not None:
        return used
    lasts = stretch.search.terminators
    lasts = lasts[(lasts >= origin.event) & (lasts < origin.stop)][:MOST_TERMINATORS]
    best: Attempt | None = None
    for last in lasts.tolist():
        search = stretch.unused(last)
        attempt = Seeking(stretch, search, origin, seeking.role, last).furthest()
        if attempt.failure is None:
            taken = used_up(stretch, last, last)
            attempt = Attempt(search, attempt.rows[:-1], last, taken) if taken is not None else attempt
        if best is None or len(attempt.rows) > len(best.rows):
            best = attempt
    if best is not None:
        return [best]
    seeking.search = stretch.unused(stretch.stream.rows)
    return [seeking.furthest()]


def _unused_in_any_order(stretch: Stretch, origin: Origin) -> list[Attempt]:
    """The furthest attempt of a conjunction, over all terminators and all components of the event.

    If there is no terminator, one attempt for each way to assign components to the initiator and the event.
    Used-up events are left out as in `_unused_in_sequence`.
    """
    used = _of_used_up(stretch, origin)
    if used is not None:
        return used
    lasts = stretch.search.terminators
    lasts = lasts[(lasts >= origin.event) & (lasts > origin.start) & (lasts < origin.stop)]
    best: Attempt | None = None
    for last in lasts[:MOST_TERMINATORS].tolist():
        for seeking in in_any_order(stretch, stretch.unused(last), origin, last):
            attempt = seeking.furthest()
            if best is None or len(attempt.rows) > len(best.rows):
                best = attempt
    if best is not None:
        return [best]
    left = stretch.unused(stretch.stream.rows)
    return [seeking.furthest() for seeking in in_any_order(stretch, left, origin)]


def _told(
    stretch: Stretch, attempt: Attempt, selection_id: int, event: int, *, delivered: bool
) -> Candidate | None:
    """An attempt as a candidate of the answer; None if it is a match."""
    own = attempt.events(walking=stretch.walks)
    failure = attempt.failure
    if failure is None and delivered:
        more_behind = attempt.search.between.shape.optional_last is not None
        ends = (own[0][1], attempt.rows[-1] if more_behind else own[-1][1])
        failure = _not_chosen(stretch, ends, event)
    elif failure is None:
        failure = Failure("missing", "waits for the end of its span", waits=True)
    if failure is None:
        return None
    tried = attempt.tried
    broken = first_break(stretch, own, tried) if failure.kind in _BEHIND_A_BREAK else None
    if broken is not None:
        own, tried, failure = broken
    before = [(component, row) for component, row in own if row != tried]
    if not before and own:  # the event that was tried is all it has
        before, tried = own[:1], None
    return Candidate(
        selection_id=selection_id,
        events=tuple(stretch.member(row, component) for component, row in before),
        tried=None if tried is None else _tried(stretch, attempt, tried),
        status="unfinished" if failure.waits else "failed",
        kind=failure.kind,
        condition=failure.condition,
        values=failure.values,
        by=failure.by,
        text=failure.text,
    )


def _tried(stretch: Stretch, attempt: Attempt, row: int) -> Member:
    """The event in `row`, which was not taken, with the component sought or else one that it can be."""
    shape, pattern, level = attempt.search.between.shape, attempt.search.pattern, len(attempt.rows)
    if level < attempt.search.steps:
        next_one = component_at(attempt.search, level, row)
    else:
        next_one = shape.anchors[-1] if shape.optional_last is None else shape.optional_last
    sought = pattern.components[next_one].name
    components = enumerate(stretch.pattern.components)
    names = [one.name for bit, one in components if not one.negated and row in stretch.stream.matching(bit)]
    return stretch.member(row, sought if sought in names else next(iter(names), ""))


def _not_chosen(stretch: Stretch, ends: tuple[int, int], event: int) -> Failure | None:
    """Why a complete candidate is no match; None if a match that ends at the same event has the event.

    `ends` are its first row and the one that completes it. The match may be completed before that, where an
    optional component in last place keeps the selection open, or the walk of another alternative ends sooner.
    """
    same_end = [taken for taken in stretch.matches if taken.end == ends[1]]
    sooner = stretch.search.between.shape.optional_last is not None or (
        stretch.walks and stretch.alternatives
    )
    if not same_end and sooner:
        same_end = [taken for taken in stretch.matches if taken.rows[0] == ends[0] and taken.end < ends[1]]
    if any(event in taken.rows for taken in same_end):
        return None
    policy = stretch.pattern.context.selection
    for taken in same_end[:1]:
        by = tuple(stretch.member(int(row)) for row in taken.rows)
        text = f"{policy}: match {taken.out_seq}, {' '.join(map(str, by))}, was taken there"
        return Failure("not chosen", text, by=by)
    return Failure("not chosen", f"{policy}: another candidate was taken", None)
