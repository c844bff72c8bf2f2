"""Finds how far candidates with an event come, by a simple search, one event after the other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import islice

import numpy as np

from spark_pace.core.columns import Ints
from spark_pace.core.match.search.limits import may_begin
from spark_pace.core.match.search.search import Search
from spark_pace.core.plan.shape import asks_for_neighbours
from spark_pace.reasons.failure_reasons import (
    Failure,
    ending_row,
    failure_of,
    forbidden_walk,
    not_joined,
    out_of_reach,
    passing,
)
from spark_pace.reasons.optional_last import not_behind
from spark_pace.reasons.stretch import Stretch, as_matrix, begins_with_first, component_at, events_of

MOST_STEPS = 300  # steps of one search
MOST_ROWS = 1_000  # rows that one step tries
MOST_FAILURES = 60  # failures among which one is sought that the event itself has caused


@dataclass(frozen=True)
class Attempt:
    """A candidate as far as it came: the rows of its anchors, the row tried next, and what stopped it.

    `tried` is None if no event came; `failure` is None if nothing stopped it. `search` is needed to find the
    events of its groups.
    """

    search: Search
    rows: list[int]
    tried: int | None
    failure: Failure | None

    def events(self, *, walking: bool) -> list[tuple[str, int]]:
        """(component, row) of the candidate's events, without the row that was tried."""
        if not self.rows:
            return []
        names = [component.name for component in self.search.pattern.components]
        if self.tried is None:
            found = events_of(self.search, self.rows, walking=walking)
        elif len(self.rows) == self.search.steps:
            found = events_of(self.search, self.rows, walking=walking)
            found = [(one, row) for one, row in found if row < self.tried or row in self.rows]
        else:
            found = events_of(self.search, [*self.rows, self.tried], walking=walking)
            found = [(one, row) for one, row in found if row != self.tried or row in self.rows]
        return [(names[component], row) for component, row in found]


@dataclass(frozen=True)
class Origin:
    """An initiator from which candidates with a certain event are sought.

    Attributes:
        selection: the index of its selection.
        start: its row.
        stop: the row after the last one that the candidates may use.
        event: the row of the event that they must have.
        waits: True if a missing event could still have come when the input ended.
        over: the failure of candidates that need a row from `stop` on although their own window goes on.
    """

    selection: int
    start: int
    stop: int
    event: int
    waits: bool
    over: Failure


@dataclass
class Seeking:
    """A search for candidates from one initiator.

    Attributes:
        stretch: the events that candidates are made of.
        search: the search of the stretch, or a search without the events that are used up.
        origin: the initiator, and the event that candidates must have.
        role: the component of that event; None: candidates need not have it.
        last: the row at which candidates must end; None: any.
        most_steps: the search gives up after this many steps.
    """

    stretch: Stretch
    search: Search
    origin: Origin
    role: int | None
    last: int | None = None
    most_steps: int = MOST_STEPS
    _steps: int = field(default=0, init=False)

    def furthest(self, rows: list[int] | None = None) -> Attempt:
        """The first complete candidate; if there is none, the one that came furthest.

        `rows` are those of its first anchors, if more are known than the initiator.
        """
        best: Attempt | None = None
        for attempt in self.attempts([self.origin.start] if rows is None else rows):
            if attempt.failure is None:
                return attempt
            if best is None or self._further(attempt, best):
                best = attempt
        assert best is not None
        return best

    def _further(self, attempt: Attempt, best: Attempt) -> bool:
        """True if an attempt came further than the best one so far."""
        if len(attempt.rows) != len(best.rows):
            return len(attempt.rows) > len(best.rows)
        if best.tried is None or attempt.tried is None:
            return best.tried is None and attempt.tried is not None
        strict, failure = self.stretch.pattern.contiguity == "strict", best.failure
        return strict and failure is not None and failure.kind == "group" and attempt.tried > best.tried

    def stopped_by_event(self) -> Attempt | None:
        """The furthest candidate that the event itself stops; None if it stops none."""
        seq, best = int(self.stretch.stream.seq[self.origin.event]), None
        for attempt in islice(self.attempts([self.origin.start]), MOST_FAILURES):
            if attempt.failure is not None and attempt.failure.names(seq):
                best = attempt if best is None or len(attempt.rows) > len(best.rows) else best
        return best

    def attempts(self, rows: list[int]) -> Iterator[Attempt]:
        """Search on from these rows; yield an attempt for each candidate that is complete or stopped."""
        if len(rows) == self.search.steps:
            alone = failure_of(self.stretch, self.search, rows) if len(rows) == 1 else None
            yield self._without_event(rows) or Attempt(self.search, rows, None, alone)
            return
        self._steps += 1
        members = self._within_reach(self.search, rows)
        pool = members[members < self.origin.stop][:MOST_ROWS]
        if not len(pool):
            yield self._missing(rows, members)
            return
        keep = passing(self.search, rows, pool)
        for row, kept in zip(pool.tolist(), keep.tolist(), strict=True):
            if self._steps > self.most_steps:
                return
            if kept:
                yield from self.attempts([*rows, row])
            else:
                failure = failure_of(self.stretch, self.search, [*rows, row])
                assert failure is not None
                yield Attempt(self.search, rows, row, failure)

    def _without_event(self, rows: list[int]) -> Attempt | None:
        """The attempt if the event is not in its group of a whole candidate because of what is before it."""
        shape, gaps = self.search.between.shape, self.search.between.shape.gaps
        if self.role is not None and self.role == shape.optional_last:
            behind = not_behind(self.stretch, self.search, rows, self.origin.event)
            return None if behind is None else Attempt(self.search, rows, self.origin.event, behind)
        place = next((place for place, gap in enumerate(gaps) if gap.group == self.role), None)
        if self.role is None or place is None or rows[place] == self.origin.event:
            return None
        failure = not_joined(self.stretch, self.search, rows[: place + 1], self.origin.event)
        if failure is None:
            return None
        return Attempt(self.search, rows[: place + 1], self.origin.event, failure)

    def _within_reach(self, search: Search, rows: list[int]) -> Ints:
        """The rows of the next anchor's component in its allowed range, inside the window or not."""
        low, high = self._range(rows)
        members = search.members[len(rows)]
        members = members[(members >= low) & (members < high)]
        at = search.between.shape.components_at(len(rows))
        if len(at) == 1 or self.role not in at:
            return members
        up_to = at[: at.index(self.role) + 1]  # what begins there is none of those behind the event's
        own = [search.stream.matching(one) for one in up_to if one in search.between.rows_of]
        return np.intersect1d(members, np.concatenate([*own, [self.origin.event]]))

    def _range(self, rows: list[int]) -> tuple[int, int]:
        """The range of rows for the next anchor: behind those taken, so that the event keeps its role."""
        shape, level, event = self.search.between.shape, len(rows), self.origin.event
        low, high = rows[-1] + (not shape.may_coincide(level)), self.stretch.stream.rows
        if level == 1 and shape.gaps[0].first and not begins_with_first(self.search, rows):
            high = rows[0] + 1  # that event is the next component's
        elif shape.gaps[level - 1].skipped and not self._begins(rows):
            high = rows[-1] + 1  # so it is here
        if level == self.search.steps - 1 and self.last is not None:
            low, high = max(low, self.last), self.last + 1
        if self.role is None:
            return low, high
        if self.role == shape.optional_last:
            return low, min(high, event)
        gap = next((place for place, one in enumerate(shape.gaps) if one.group == self.role), None)
        if gap is None:
            own = shape.anchors.index(self.role)
            if level <= own:
                high = min(high, event + (self.role in shape.components_at(level)))
            return (max(low, event), high) if level == own else (low, high)
        if level <= gap:
            return low, min(high, event + (self.role in shape.components_at(level)))
        if level == gap + 1:
            low = max(low, event + (not shape.gaps[gap].to_right))
        return low, high

    def _begins(self, rows: list[int]) -> bool:
        """Whether the optional group of the last anchor begins with it."""
        search = self.search
        return bool(
            may_begin(search.between, len(rows) - 1, as_matrix(rows)[:, -1], capped=search.walking)[0]
        )

    def _missing(self, rows: list[int], beyond: Ints) -> Attempt:
        """The attempt if no event can be the next one; `beyond` holds events that come too late."""
        if len(beyond):
            late = out_of_reach(self.stretch, self.search, [*rows, int(beyond[0])])
            return Attempt(self.search, rows, int(beyond[0]), late or self.origin.over)
        everything = self._everything()
        left = self._within_reach(everything, rows)[:MOST_ROWS]
        left = left[left < self.origin.stop]
        for row in left[passing(self.search, rows, left)].tolist() if len(left) else ():
            failure = used_up(self.stretch, row)
            if failure is not None:
                return Attempt(self.search, rows, row, failure)
        at = self.search.between.shape.components_at(len(rows))
        names = [self.search.pattern.components[one].name for one in at]
        unused = " that is not used up" if len(left) else ""
        return Attempt(self.search, rows, None, self._none_came(rows, names, unused))

    def _everything(self) -> Search:
        """The search that includes used-up events."""
        return self.stretch.search

    def _none_came(self, rows: list[int], names: list[str], unused: str) -> Failure:
        """The failure if no event can be the next one; `unused` is a further demand on it, as text.

        `names` are those of the components that it may be of, of which the last one is not optional.
        """
        stretch, (low, high), name = self.stretch, self._range(rows), " or ".join(names)
        behind = stretch.member(max(low - 1, rows[-1]))
        if high < stretch.stream.rows:
            before = stretch.member(high)
            text = f"no event{unused} can be {name} in its place before {before}"
            return Failure("missing", text, names[-1], by=(behind, before))
        text = f"no {name}{unused} came after {behind}{' in the span' if stretch.span else ''}"
        if self.origin.waits:
            text = f"waits for {name}"
        return Failure("missing", text, names[-1], by=(behind,), waits=self.origin.waits)


def used_up(stretch: Stretch, row: int, until: int | None = None) -> Failure | None:
    """The failure of an event that a match ending at or before row `until` has used up; else None."""
    for taken in stretch.matches:
        if row in taken.rows and (until is None or taken.rows[-1] <= until):
            text = f"#{stretch.stream.seq[row]} was used up by match {taken.out_seq}"
            return Failure("used up", text, None, {"out_seq": taken.out_seq})
    return None


def walked(stretch: Stretch, origin: Origin) -> Attempt | None:
    """Why the walk from an initiator did not take the event, or where it stopped; None if it took it."""
    search, rows, event = stretch.search.varied(walking=True), [origin.start], origin.event
    stop = stretch.window_end(origin.start)
    while len(rows) < search.steps:
        members = search.members[len(rows)]
        low = rows[-1] + (not search.between.shape.may_coincide(len(rows)))
        pool = members[(members >= low) & (members < stop)]
        fits = np.flatnonzero(passing(search, rows, pool)) if len(pool) else pool
        if not len(fits):
            break
        rows.append(int(pool[fits[0]]))
    whole = len(rows) == search.steps
    forbidden = forbidden_walk(stretch, search, rows) if whole else None
    if forbidden is not None and forbidden.names(int(stretch.stream.seq[event])):
        return Attempt(search, rows, None, forbidden)
    own = {row for _, row in events_of(search, rows, walking=True)}
    if event not in own and (event < rows[-1] or not whole):
        passed = _passed_over(stretch, search, rows, event)
        if passed is not None:
            return passed
    if not whole:
        seeking = Seeking(stretch, search, replace(origin, stop=stop), None)
        near = asks_for_neighbours(stretch.pattern)
        return seeking.furthest(rows) if near else next(seeking.attempts(rows))
    if forbidden is not None:
        return Attempt(search, rows, None, forbidden)
    return None if event in own or event < rows[-1] else _not_behind_walk(stretch, search, rows, event)


def _not_behind_walk(stretch: Stretch, search: Search, rows: list[int], event: int) -> Attempt | None:
    """Why the event is not among those of an optional component in last place behind a whole walk."""
    component = search.between.shape.optional_last
    if component is None:
        return None
    failure, name = None, stretch.pattern.components[component].name
    if event in stretch.stream.matching(component):
        failure = not_behind(stretch, search, rows, event)
    else:
        text = f"the walk sought {name} when #{stretch.stream.seq[event]} came"
        failure = Failure("order", text, name)
    return None if failure is None else Attempt(search, rows, event, failure)


def _passed_over(stretch: Stretch, search: Search, rows: list[int], event: int) -> Attempt | None:
    """Why the walk passed over an event that came while it went on; None if it sought another one then."""
    shape, stream = search.between.shape, stretch.stream
    before = [row for row in rows if row < event]
    level = len(before)
    if not before or level >= search.steps:
        return None
    sought, gap = shape.anchors[level], shape.gaps[level - 1]
    if event in search.members[level]:
        failure = failure_of(stretch, search, [*before, event])
        if failure is not None:
            return Attempt(search, before, event, failure)
    names = [stretch.pattern.components[one].name for one in shape.components_at(level)]
    if gap.group is not None and gap.group != sought:
        names.insert(0, stretch.pattern.components[gap.group].name)
        end = ending_row(search, [*before, event])
        refused = not_joined(stretch, search, before, event)
        if event in stream.matching(gap.group) and level == len(rows) and refused is None:
            return None
        if end == event or (end is not None and event in stream.matching(gap.group)):
            ending = stretch.member(end)
            ended = Failure("group", f"{names[0]}: {ending} ended it", names[0], by=(ending,))
            return Attempt(search, before, event, ended)
        if refused is not None:
            return Attempt(search, before, event, refused)
        if event in stream.matching(gap.group):
            most = f"{names[0]} {gap.times}"
            full = Failure("group", f"{most}: there were {gap.times.most} before", most)
            return Attempt(search, before, event, full)
    levels = [at for at, row in enumerate(rows) if level < len(rows) and row == rows[level]][-1:]
    took = [(rows[at], component_at(search, at, rows[at])) for at in levels]
    by = tuple(stretch.member(row, stretch.pattern.components[one].name) for row, one in took)
    taken = f", and took {by[0]}" if by else ""
    text = f"the walk sought {' or '.join(names)} when #{stream.seq[event]} came{taken}"
    return Attempt(search, before, event, Failure("order", text, names[-1], by=by))
