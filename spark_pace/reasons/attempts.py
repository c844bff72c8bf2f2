"""How far candidates with an event come: plain search, one step after the other, around one event."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import islice

import numpy as np

from spark_pace.core.columns import Ints
from spark_pace.core.match.search.search import Search
from spark_pace.reasons.failure_reasons import (
    Failure,
    failure_of,
    forbidden_walk,
    passing,
    too_late,
)
from spark_pace.reasons.stretch import Stretch, events_of

MOST_STEPS = 300  # of one search
MOST_ROWS = 1_000  # of one step
MOST_FAILURES = 60  # that are looked at for one that the event itself has caused


@dataclass(frozen=True)
class Attempt:
    """The rows of the anchors that a candidate had, the one that was tried next, and what stopped it.

    `tried` is None where no event came; `failure` is None where nothing did stop it. `search` says which
    events belong to groups.
    """

    search: Search
    rows: list[int]
    tried: int | None
    failure: Failure | None

    def events(self, *, walking: bool) -> list[tuple[str, int]]:
        """(component, row) of the events that the candidate had, without the one that was tried."""
        if not self.rows:
            return []
        names = [component.name for component in self.search.pattern.components]
        if self.tried is None or len(self.rows) == self.search.steps:
            found = events_of(self.search, self.rows, walking=walking)
        else:
            found = events_of(self.search, [*self.rows, self.tried], walking=walking)
            found = [(one, row) for one, row in found if row != self.tried or row in self.rows]
        return [(names[component], row) for component, row in found]


@dataclass(frozen=True)
class Origin:
    """An initiator from which candidates with an event are sought.

    Attributes:
        selection: the index of its selection.
        start: its row.
        stop: the row after the last one that they may use.
        event: the row that they are to have.
        waits: whether what is missing could still have come when the input ended.
        over: what stops those that go on at row `stop` or behind it, their own windows aside.
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
        stretch: where they stand.
        search: the search of the stretch, or one without the events that are used up.
        origin: the initiator, and the event that they are to have.
        role: the component that the event is to stand for; None: they need not have it.
        last: the row at which they must end; None: any.
        most_steps: after how many steps it ends.
    """

    stretch: Stretch
    search: Search
    origin: Origin
    role: int | None
    last: int | None = None
    most_steps: int = MOST_STEPS
    _steps: int = field(default=0, init=False)

    def furthest(self) -> Attempt:
        """The first whole candidate, or else the one that came furthest."""
        best: Attempt | None = None
        for attempt in self.attempts([self.origin.start]):
            if attempt.failure is None:
                return attempt
            deeper = best is None or len(attempt.rows) > len(best.rows)
            as_deep = best is not None and len(attempt.rows) == len(best.rows)
            if deeper or (as_deep and best is not None and best.tried is None and attempt.tried is not None):
                best = attempt
        assert best is not None
        return best

    def stopped_by_event(self) -> Attempt | None:
        """The furthest candidate that the event itself stops; None where it stops none."""
        seq, best = int(self.stretch.stream.seq[self.origin.event]), None
        for attempt in islice(self.attempts([self.origin.start]), MOST_FAILURES):
            if attempt.failure is not None and attempt.failure.names(seq):
                best = attempt if best is None or len(attempt.rows) > len(best.rows) else best
        return best

    def attempts(self, rows: list[int]) -> Iterator[Attempt]:
        """What stops each candidate that begins with these rows, or that nothing does."""
        if len(rows) == self.search.steps:
            alone = failure_of(self.stretch, self.search, rows) if len(rows) == 1 else None
            yield Attempt(self.search, rows, None, alone)
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

    def _within_reach(self, search: Search, rows: list[int]) -> Ints:
        """The rows of the next anchor's component that stand where it may, whether or not in time."""
        low, high = self._range(rows)
        members = search.members[len(rows)]
        return members[(members >= low) & (members < high)]

    def _range(self, rows: list[int]) -> tuple[int, int]:
        """The rows among which the next anchor stands: behind those taken, with the event in its place."""
        shape, level, event = self.search.between.shape, len(rows), self.origin.event
        low, high = rows[-1] + (not shape.one_group(level)), self.stretch.stream.rows
        if level == self.search.steps - 1 and self.last is not None:
            low, high = max(low, self.last), self.last + 1
        if self.role is None:
            return low, high
        gap = next((place for place, one in enumerate(shape.gaps) if one.group == self.role), None)
        if gap is None:
            own = shape.anchors.index(self.role)
            if level <= own:
                high = min(high, event + (level == own))
            return (max(low, event), high) if level == own else (low, high)
        if level <= gap:
            return low, min(high, event + (level == gap and shape.gaps[gap].from_left))
        if level == gap + 1:
            low = max(low, event + (not shape.gaps[gap].to_right))
        return low, high

    def _missing(self, rows: list[int], beyond: Ints) -> Attempt:
        """No event can be the next one; `beyond` are those that come too late."""
        if len(beyond):
            late = too_late(self.stretch, rows[0], int(beyond[0]))
            return Attempt(self.search, rows, int(beyond[0]), late or self.origin.over)
        everything = self._everything()
        left = self._within_reach(everything, rows)[:MOST_ROWS]
        left = left[left < self.origin.stop]
        for row in left[passing(self.search, rows, left)].tolist() if len(left) else ():
            failure = used_up(self.stretch, row)
            if failure is not None:
                return Attempt(self.search, rows, row, failure)
        name = self.search.pattern.components[self.search.between.shape.anchors[len(rows)]].name
        unused = " that is not used up" if len(left) else ""
        return Attempt(self.search, rows, None, self._none_came(rows, name, unused))

    def _everything(self) -> Search:
        """The search with the events that are used up."""
        return self.stretch.search

    def _none_came(self, rows: list[int], name: str, unused: str) -> Failure:
        """What is said where no event can be the next one; `unused` is what it would have to be as well."""
        stretch, (low, high) = self.stretch, self._range(rows)
        behind = stretch.member(max(low - 1, rows[-1]))
        if high < stretch.stream.rows:
            before = stretch.member(high)
            text = f"no event{unused} can be {name} in its place before {before}"
            return Failure("missing", text, name, by=(behind, before))
        text = f"no {name}{unused} came after {behind}{' in the span' if stretch.span else ''}"
        if self.origin.waits:
            text = f"waits for {name}"
        return Failure("missing", text, name, by=(behind,), waits=self.origin.waits)


def used_up(stretch: Stretch, row: int, until: int | None = None) -> Failure | None:
    """The failure of an event that a match which ends at or before row `until` has used up."""
    for taken in stretch.matches:
        if row in taken.rows and (until is None or taken.rows[-1] <= until):
            text = f"#{stretch.stream.seq[row]} was used up by match {taken.out_seq}"
            return Failure("used up", text, None, {"out_seq": taken.out_seq})
    return None


def walked(stretch: Stretch, origin: Origin) -> Attempt | None:
    """How the walk from an initiator came by an event, or where it stopped; None: it is in its match."""
    search, rows, event = stretch.search.varied(walking=True), [origin.start], origin.event
    stop = stretch.window_end(origin.start)
    while len(rows) < search.steps:
        members = search.members[len(rows)]
        low = rows[-1] + (not search.between.shape.one_group(len(rows)))
        pool = members[(members >= low) & (members < stop)]
        fits = np.flatnonzero(passing(search, rows, pool)) if len(pool) else pool
        if not len(fits):
            break
        rows.append(int(pool[fits[0]]))
    whole = len(rows) == search.steps
    own = {row for _, row in events_of(search, rows, walking=True)}
    if event not in own and (event < rows[-1] or not whole):
        passed = _passed_over(stretch, search, rows, event)
        if passed is not None:
            return passed
    if not whole:
        seeking = Seeking(stretch, search, replace(origin, stop=stop), None)
        return next(seeking.attempts(rows))
    failure = forbidden_walk(stretch, search, rows)
    return None if failure is None else Attempt(search, rows, None, failure)


def _passed_over(stretch: Stretch, search: Search, rows: list[int], event: int) -> Attempt | None:
    """Why the walk did not take an event that came while it went on."""
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
    names = [stretch.pattern.components[sought].name]
    if gap.group is not None and gap.group != sought:
        names.insert(0, stretch.pattern.components[gap.group].name)
        if event in stream.matching(gap.group):
            if level == len(rows):
                return None
            most = f"{names[0]} {gap.times}"
            full = Failure("group", f"{most}: there were {gap.times.most} before", most)
            return Attempt(search, before, event, full)
    by = tuple(stretch.member(row, names[-1]) for row in rows[level : level + 1])
    taken = f", and took {by[0]}" if by else ""
    text = f"the walk sought {' or '.join(names)} when #{stream.seq[event]} came{taken}"
    return Attempt(search, before, event, Failure("order", text, names[-1], by=by))
