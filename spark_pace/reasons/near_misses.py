"""Finds what keeps an event from matches: the engine searches around it, without one constraint at a time.

A constraint is to blame if there are events, the asked one among them, that the pattern would match without
it. Where no single one is, some are taken away together, as few as will do.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial, reduce
from itertools import chain, islice, product, zip_longest
from typing import TypeAlias

import numpy as np

from spark_pace.core.expr import Aggregate, Call, Literal
from spark_pace.core.match.contexts import context_of
from spark_pace.core.match.contexts.contexts import (
    EACH_ZERO,
    NEXT_ZERO,
    Forwards,
    ParameterContext,
    UsingUp,
    walks,
)
from spark_pace.core.match.search.any_order import search_of
from spark_pace.core.match.search.search import Search
from spark_pace.core.match.stream import Found, Stream, whole, window_end
from spark_pace.core.plan.rule import Close, Conjunct, Pattern, Within
from spark_pace.core.plan.shape import alternative, optional_last_of, shape_of
from spark_pace.core.tables import MASK, with_column
from spark_pace.reasons.answer import Candidate, Member, Reason
from spark_pace.reasons.relaxations import NearMiss, Relaxation, relaxations
from spark_pace.reasons.rule_stream import Stretch

MOST_CANDIDATES = 5
MOST_ROWS = 10_000  # nearest events of a component that are tried
MOST_TRIED = 100_000  # ways to choose events of all components; there are as many as
MOST_GROUPED = 1_000  # these of patterns with groups, each of which is looked at event by event
MOST_STARTS = 100  # nearest initiators of walks
_ASKED = "@asked"  # a column: 1 for the event that is asked about

Blamed: TypeAlias = Sequence[Relaxation]


@dataclass(frozen=True)
class Around:
    """The search for near misses around an event.

    Attributes:
        stretch: where they stand, and the pattern: a sequence or a conjunction.
        row: that of the event.
        component: the component that the event stands for; else the one before or in whose place it stands.
        stopped: what the event stands in the way of; None if it stands for the component.
    """

    stretch: Stretch
    row: int
    component: int
    stopped: Relaxation | None = None

    @cached_property
    def pattern(self) -> Pattern:
        """The pattern, without a window that the contiguity implies."""
        pattern = self.stretch.pattern
        most = [1 if one.times is None else one.times.most or 0 for one in pattern.components]
        implied = pattern.contiguity == "strict" and pattern.within == Within(events=sum(most))
        return replace(pattern, within=None) if implied and not pattern.components[-1].negated else pattern

    @property
    def any_order(self) -> bool:
        """True for a conjunction, whose components may come in any order."""
        return self.pattern.order == "conjunction"

    @property
    def behind(self) -> bool:
        """True if the event is one of an optional component in last place, on which no match depends."""
        return self.stopped is None and self.component == optional_last_of(self.pattern)

    @cached_property
    def constraints(self) -> Blamed:
        """What may be taken away beside what the event stands in the way of."""
        mine = "" if self.stopped is None else self.stopped.condition
        return [one for one in relaxations(self.pattern) if one.condition != mine]

    def misses(self) -> Iterator[tuple[NearMiss, Blamed, bool]]:
        """Near misses, the nearest first, with the constraints to blame, and whether the context is, too.

        There are those of one constraint each, else of as few as will do. Of the context alone there are some
        if it is all that stops the event.
        """
        fixed: Blamed = () if self.stopped is None else (self.stopped,)
        walking = walks(context_of(self.pattern).way)
        single: list[Blamed] = [] if fixed else [(one,) for one in self.constraints]
        for walk, several in product([True, False][not walking :], ([fixed], single)):
            found = [
                [(one, each, not each or walking != walk) for one in self._mildest(each, walk=walk)]
                for each in several
            ]
            if any(found):
                return (one for one in chain.from_iterable(zip_longest(*found)) if one is not None)
        fewest = self._fewest(fixed)
        walked = self._mildest(fewest, walk=True) if walking and fewest else []
        left = self._mildest(fewest, walk=False) if fewest and not walked else walked
        return ((one, fewest, walking and not walked) for one in left)

    def _fewest(self, fixed: Blamed) -> Blamed:
        """Constraints without which there are near misses, but not with any of them; none if there are none.

        The first ones are put back last, so they are blamed first.
        """
        removed = [*fixed, *self.constraints]
        if not self.found(removed, walk=False):
            return ()
        for one in [*self.constraints[::-1]] * 2:  # one that is gone may let another one go
            left = [other for other in removed if other is not one]
            if len(left) < len(removed) and self.found(left, walk=False):
                removed = left
        return removed

    def _mildest(self, removed: Blamed, *, walk: bool) -> list[NearMiss]:
        """The near misses without some constraints, in the mildest way to be without each of them."""
        found = self.found(removed, walk=walk)
        for one in removed if found else ():
            others = [other for other in removed if other is not one]
            ways = [[replace(one, without=way), *others] for way in one.milder]
            ways = ways[: bisect_left(ways, True, key=lambda way: not self.found(way, walk=walk))]
            found = self.found(ways[-1], walk=walk) if ways else found
        return found

    def found(self, removed: Blamed, *, walk: bool) -> list[NearMiss]:
        """The near misses without some constraints, one for each initiator, the nearest first.

        With `walk` they are those of the walk of *next*, else any candidates.
        """
        close: Close = "window" if self.behind else "completion"
        context, stream, asked = (NEXT_ZERO, self.stretch.stream, ()) if walk else (EACH_ZERO, *self._near)
        where = (*self.pattern.where, *asked)
        base = replace(self.pattern, context=context.value, close=close, where=where)
        pattern = reduce(lambda one, relaxation: relaxation.without(one), removed, base)
        found = _matches(context, self._narrowed(search_of(stream, self.stretch.inside(pattern)), walk=walk))
        sizes, mine = np.diff(found.offsets), np.arange(found.matches)
        if self.stopped is None:
            owner = np.repeat(mine, sizes)
            mine = np.unique(owner[(found.members == self.row) & (found.roles == self.component)])
        mine = mine[np.lexsort((sizes[mine], found.selection[mine]))]  # of each selection the longest is last
        last = np.append(np.diff(found.selection[mine]), 1)[: len(mine)] > 0
        mine = mine[last][-MOST_STARTS:][::-1]
        misses = (NearMiss.of(self.stretch, self.row, found, index) for index in mine.tolist())
        return [*islice(filter(partial(self._counts, removed), misses), MOST_CANDIDATES)]

    def _counts(self, removed: Blamed, miss: NearMiss) -> bool:
        """Whether the event stops a near miss that it is to stop, and whether that is out of its window.

        One without a window is without what negated components in last place forbid, too.
        """
        if self.stopped is not None and self.stopped.stopping is not None:
            return self.row in self.stopped.stopping(miss)
        late = window_end(self.stretch.stream, miss.rows[:1], self.pattern.within)[0] <= miss.rows[-1]
        return bool(late) or [one.kind for one in removed] != ["within"]

    def _narrowed(self, search: Search, *, walk: bool) -> Search:
        """The search from the nearest initiators, to the nearest terminators on the side where they stand."""
        starts = search.initiators[search.initiators <= self.row]
        search = search.starting(starts[-(MOST_STARTS if walk else self._most) :])
        if walk or self.any_order:
            return search
        ends = search.terminators
        before, after = ends[ends < self.row], ends[ends >= self.row]
        follows = search.between.shape.anchors[-1] < self.component
        return search.ending(before[-self._most :] if follows else after[: self._most])

    @cached_property
    def _most(self) -> int:
        """How many events of each component are tried: the more components, the fewer."""
        components, known = self.pattern.components, self.stopped is None
        known &= components[self.component].times is None
        grouped = any(one.times is not None for one in components)
        free = len(shape_of(self.pattern).anchors) - known
        most = (MOST_GROUPED if grouped else MOST_TRIED) ** (1 / max(1, free))
        return int(min(MOST_ROWS, round(most)))

    @cached_property
    def _near(self) -> tuple[Stream, tuple[Conjunct, ...]]:
        """The stream and a condition that leave the candidates with the event.

        Of components for one event the nearest events are left, on the side where they stand; groups have all
        events that match them.
        """
        stream, mask, row, at = self.stretch.stream, self.stretch.stream.mask.copy(), self.row, self.component
        for index, one in enumerate(self.pattern.components):
            own = index == at and self.stopped is None
            if one.negated or (one.times is not None and not (own and self.pattern.taking)):
                continue
            rows = stream.matching(index)
            before = rows[rows < row][-self._most :] if index <= at or self.any_order else rows[:0]
            after = rows[rows > row][: self._most] if index > at or self.any_order else rows[:0]
            mask &= np.uint16(~(1 << index) & 0xFFFF)
            mask[[row] if own else np.append(before, after)] |= np.uint16(1 << index)
        there = (np.arange(stream.rows) == row).astype(np.int64)
        near = Stream(with_column(with_column(stream.events, MASK, mask), _ASKED, there), stream.starts)
        group = self.pattern.components[at]
        if group.times is None or self.stopped is not None or self.behind:
            return near, ()
        sides = (Aggregate("max", group.name, _ASKED, "BIGINT"), Literal(1, "BIGINT"))
        return near, (Conjunct(Call("=", sides, "BOOLEAN"), (at,)),)


def _matches(context: ParameterContext, search: Search) -> Found:
    """What a context that uses nothing up finds in a stream."""
    assert isinstance(context.way, Forwards)
    return context.way.match(search.stream, search.pattern, search, whole(search.stream))


def near_misses(stretch: Stretch, row: int) -> list[Candidate]:
    """What would be matches with the event of a row but for some constraints."""
    found, told = stretch.selections.found, list[Candidate]()
    assert found is not None
    matched = {*found.roles[found.members == row].tolist()}
    for part, own in stretch.alternatives:
        for around in _around(part, row, {index for index, one in enumerate(own) if one in matched}):
            misses = [*around.misses()]
            several = [_told(around, *one) for one in misses]
            if not misses and around.stopped is None:
                several = [_missing(around)]
            told += [one for one in several if one is not None and one not in told]
    return told


def _around(stretch: Stretch, row: int, matched: set[int]) -> Iterator[Around]:
    """The searches for the components that the event can be; if it can be none, for those that it stops.

    None is for components of which it is in matches.
    """
    components, constraints = stretch.pattern.components, relaxations(stretch.pattern)
    fits = [row in stretch.stream.matching(index) for index in range(len(components))]
    roles = [index for index, one in enumerate(components) if fits[index] and not one.negated]
    yield from (Around(stretch, row, index) for index in roles if index not in matched)
    for index, one in enumerate(() if roles else components):
        for blamed in constraints:
            forbids = one.negated and fits[index] and blamed.condition == f"not {one.name}"
            if forbids or (not one.negated and blamed.kind == "contiguity"):
                yield Around(stretch, row, index, blamed)


# ---------------------------------------------------------------- what is told


def _told(around: Around, miss: NearMiss, removed: Blamed, of_context: bool) -> Candidate | None:
    """A near miss in words; None if it is a match, or its events are one in other roles."""
    reasons, span = [one.told(miss) for one in removed], around.stretch.span
    waits = of_context and span is not None and not span.delivered
    if waits:
        reasons.append(Reason("missing", "waits for the end of its span"))
    elif of_context:
        chosen = _by_context(around, miss, removed)
        if chosen is None:
            return None
        reasons.append(chosen)
    number = around.stretch.selection_of(int(miss.rows[0]))
    return Candidate(number, miss.members, "unfinished" if waits else "failed", tuple(reasons))


def _by_context(around: Around, miss: NearMiss, removed: Blamed) -> Reason | None:
    """Why the context does not take a candidate; None if the event is in a match there, in another role."""
    stretch, way, opened = around.stretch, context_of(around.pattern).way, around.stretch.selections
    core, found = miss.rows[miss.roles != optional_last_of(around.pattern)], opened.found
    first, last, at = int(core[0]), int(core[-1]), opened.of(int(core[0]))
    assert found is not None
    if at is not None and not isinstance(way, UsingUp):
        opening, close = int(opened.openings[at]), int(opened.closes[at])
        of = f"the selection that {stretch.member(opening)} opened{' in the span' if stretch.span else ''}"
        by = tuple(map(stretch.member, [opening, close] if close >= 0 else [opening]))
        if 0 <= close < last:
            return Reason("closed", f"{by[1]} closed {of}", by=by)
        timed = all(one.kind != "within" for one in removed)
        if close < 0 and timed and opened.last_row()[at] < last:
            return Reason("closed", f"the window of {of} was over", by=by)
    owner = np.repeat(np.arange(found.matches), np.diff(found.offsets))
    if isinstance(way, UsingUp):
        same = np.unique(owner[np.isin(found.members, core)])
    else:
        same = np.unique(owner[found.members == last])
        same = same if len(same) else np.flatnonzero(found.first == first)
    others = [found.members[owner == index] for index in same.tolist()]
    if any(around.row in rows for rows in others):
        return None
    if others:
        match = tuple(map(stretch.member, others[0].tolist()))
        told = " ".join(map(str, match))
        if isinstance(way, UsingUp):
            used = stretch.member(int(np.intersect1d(others[0], core)[0]))
            return Reason("used up", f"{used} was used up by the match {told}", by=(used, *match))
        return _not_chosen(around, f"the match {told} was taken there", match)
    if at is not None and walks(way) and opening != first:
        return Reason("closed", f"{of} was still open", by=by)
    return _walked(around, first, removed)


def _not_chosen(around: Around, text: str, by: tuple[Member, ...]) -> Reason:
    return Reason("not chosen", f"{around.pattern.context.selection}: {text}", by=by)


def _walked(around: Around, first: int, removed: Blamed) -> Reason:
    """How far the walk of *next* comes from an initiator without some constraints, whatever forbids it."""
    stretch, components = around.stretch, around.pattern.components
    free = [*removed, *(one for one in around.constraints if one.kind == "forbidden")]
    pattern = reduce(lambda one, relaxation: relaxation.without(one), free, around.pattern)
    pattern = stretch.inside(replace(pattern, context=NEXT_ZERO.value, taking=()))
    for size in range(len(components), 0, -1):
        if not components[size - 1].negated:
            part = search_of(stretch.stream, alternative(pattern, range(size)))
            found = _matches(NEXT_ZERO, part.starting(np.array([first])))
            if found.matches:
                by = NearMiss.of(stretch, around.row, found, 0).members
                behind = [f"no {one.name} behind" for one in components[size:] if not one.negated]
                took = f"the walk took {' '.join(map(str, by))}, and {[*behind, 'is forbidden'][0]}"
                return _not_chosen(around, took, by)
    return _not_chosen(around, "the walk begins elsewhere", ())


def _missing(around: Around) -> Candidate:
    """Which components have no event in their place, beside the nearest events of the others."""
    stretch, components, opened = around.stretch, around.pattern.components, around.stretch.selections
    needed, rows = _nearest(around)
    members = {at: stretch.member(row, components[at].name) for at, row in rows.items()}
    first, opening = min(rows.values()), opened.of(min(rows.values()))
    waits = stretch.span.waits if stretch.span else opening is not None and opened.waits(opening)
    reasons = list[Reason]()
    for index in (one for one in needed if one not in rows):
        name, mine = components[index].name, stretch.stream.matching(index)
        before, behind = (
            [members[at] for at in sorted(rows) if (at > index) == side] for side in (False, True)
        )
        by = before + behind if around.any_order else before[-1:] + behind[:1]
        where = "beside" if around.any_order else "after" if not behind else "between" if before else "before"
        text = f"no {name} came {where} {' and '.join(map(str, by))}{' in the span' if stretch.span else ''}"
        if waits and where in ("beside", "after"):
            text = f"waits for {name}"
        elif len(others := np.setdiff1d(mine, [*rows.values()])):
            nearest = int(others[np.argmin(np.abs(others - around.row))])
            text += f"; the nearest is {stretch.member(nearest, name)}"
        reasons.append(Reason("missing", text, name, by=tuple(by)))
    reasons = reasons or [_left_out(around)]
    status = "unfinished" if all(one.text.startswith("waits") for one in reasons) else "failed"
    events = sorted(members.values(), key=lambda one: one.event.seq)
    return Candidate(stretch.selection_of(first), tuple(events), status, tuple(reasons))


def _nearest(around: Around) -> tuple[list[int], dict[int, int]]:
    """The components that need an event; and for each the row of the nearest one, as far as there is one.

    In a sequence it stands before or behind those found before.
    """
    at, rows = around.component, {around.component: around.row}
    listed = enumerate(around.pattern.components)
    asked = ((index, not one.negated and (one.times is None or one.times.least > 0)) for index, one in listed)
    needed = [index for index, needs in asked if needs or index == at]
    for index in sorted(needed, key=lambda one: abs(one - at))[1:]:
        mine = np.setdiff1d(around.stretch.stream.matching(index), [*rows.values()])
        if not around.any_order:
            mine = mine[mine > max(rows.values())] if index > at else mine[mine < min(rows.values())]
        if len(mine):
            rows[index] = int(mine[np.argmin(np.abs(mine - around.row))])
    return needed, rows


def _left_out(around: Around) -> Reason:
    """Why no group of the component has the event: the one behind has begun before it, or another has it."""
    stretch, components = around.stretch, around.pattern.components
    for index, one in enumerate(components):
        begun = stretch.stream.matching(index)
        begun = begun[begun <= around.row]
        if index > around.component and one.times is not None and len(begun):
            by = stretch.member(int(begun[-1]), one.name)
            return Reason("group", f"{one.name} begins with {by}", one.name, by=(by,))
    name = components[around.component].name
    return Reason("group", f"{name}: its events there belong to other components", name)
