"""Compiled searches for candidates of a sequence."""

from __future__ import annotations

from functools import partial
from itertools import takewhile

import numpy as np

from spark_pace.core.match.candidates import Ranges, bounds_of, candidates_at_most
from spark_pace.core.match.compiled.arguments import (
    BEFORE,
    BEHIND,
    COMPLETION,
    GREATEST,
    LEAST,
    WHOLE,
    Answers,
    Searches,
    Sequence,
)
from spark_pace.core.match.compiled.sequences import search_following, search_sequences
from spark_pace.core.match.search.limits import stands_before_begin
from spark_pace.core.match.search.row_tables import (
    further_of,
    names_of,
    place_of_component,
    searched_of,
    sets_of,
)
from spark_pace.core.match.search.search import Search
from spark_pace.core.match.stream import Decided, window_end, window_start
from spark_pace.core.plan.shape import Shape
from spark_pace.core.tables import NO_ROW, Ints

_NOTHING = np.zeros(0, np.int64)


def completing(search: Search, starts: Ints, end: Ints) -> Ints:
    """int64[m], the first row that completes a candidate from each start, before row `end`; -1 for none."""
    sequence = _sequence(search, COMPLETION)
    bounds = bounds_of(search, Ranges(starts, starts, end))
    found = _run(sequence, _searches(starts, starts, bounds, shorten=1)).found
    return np.ascontiguousarray(found[:, -1])


def walking(search: Search, starts: Ints, end: Ints) -> Ints:
    """int64[m, n], the walk from each start, before row `end`; -1 where it has no match."""
    bounds = bounds_of(search, Ranges(starts, starts, end))
    sequence = _sequence(search, COMPLETION)
    return _run(sequence, _searches(starts, starts, bounds, second_thoughts=0)).found


def following(search: Search, matrix: Ints, until: Ints) -> Ints:
    """int64[m], the first row of the last anchor that fits behind a candidate's others; -1 where none does.

    Args:
        search: a sequence over a stream.
        matrix: int64[m, n - 1], the rows of all anchors but the last.
        until: int64[m], the row after the last one that may be taken.
    """
    sequence, last = _sequence(search, COMPLETION), np.ascontiguousarray(matrix[:, -1])
    answers = Answers(np.column_stack([matrix, np.full(len(matrix), -1)]), *[_NOTHING] * 4)
    searches = _searches(last, last, [until] * search.steps, second_thoughts=0)
    room, rows = np.zeros((5, search.steps), np.int64), partial(candidates_at_most, until - last, 2)
    search_following(sequence, searches, answers, room, steps=rows)
    return np.ascontiguousarray(answers.found[:, -1])


def least_of(search: Search, terminators: Ints, start: Ints) -> Ints:
    """int64[m, n], the least candidate of each terminator; -1 where it has none.

    Args:
        search: a sequence over a stream.
        terminators: int64[m], rows of the last anchor.
        start: int64[m], the first row that the candidates of each may have.
    """
    sequence = _sequence(search, LEAST)
    return _run(sequence, _searches(terminators, start, _bounds_before(search, terminators))).found


def greatest_of(search: Search, terminators: Ints, start: Ints) -> Ints:
    """int64[m, n], the greatest candidate of each terminator; see `least_of`."""
    sequence = _sequence(search, GREATEST)
    return _run(sequence, _searches(terminators, start, _bounds_behind(search, start))).found


def latest_of(search: Search, terminators: Ints, start: Ints) -> Ints:
    """int64[m], the first row of the candidate of each terminator that starts last; -1 where it has none.

    It counts even if a trailing negation forbids it. See `least_of`.
    """
    sequence = _sequence(search, LEAST)
    bounds = _bounds_before(search, terminators)
    return _run(sequence, _searches(terminators, start, bounds, only_latest=1)).latest


def decided(search: Search, used: Ints) -> Decided:
    """The least candidate of each terminator that has one, without the rows that earlier ones use up.

    Args:
        search: a sequence over a stream.
        used: int64[rows], the `seq` of the terminator at whose turn each event was used up; else `NO_ROW`.
    """
    stream = search.stream
    terminators, starts, bounds = _hopeful(search)
    segments, numbers = stream.segment[terminators], 1 + int(stream.seq.max(initial=0))
    turns = np.where(used == NO_ROW, NO_ROW, stream.segment * numbers + used)
    sequence = _tables(search, LEAST, turns)
    numbered = segments * numbers + stream.seq[terminators]
    searches = _searches(terminators, starts, bounds, turns=numbered, segments=segments)
    answers = _run(sequence, searches, trailing=search.trailing)
    offsets = np.append(0, answers.ends)
    found = np.flatnonzero(np.diff(offsets))
    members, roles = answers.members[: offsets[-1]], answers.roles[: offsets[-1]].astype(np.int8)
    latest = (terminators, answers.latest) if search.trailing else None
    return Decided(np.append(0, answers.ends[found]), members, roles, latest)


class Turns:
    """The searches for the least candidates of a simple sequence, terminator after terminator.

    Attributes:
        terminators: those that may end a candidate, ascending.
    """

    def __init__(self, search: Search, used: Ints) -> None:
        """Note in `used`, `NO_ROW` for each row, at the turn of which terminator it is used up."""
        self.terminators, starts, bounds = _hopeful(search)
        self._used, self._sequence = used, _tables(search, LEAST, used)
        self._all = _searches(self.terminators, starts, bounds, turns=self.terminators)

    def found(self, first: int, last: int) -> Ints:
        """int64[m, n], the matches of the terminators from one row to another; their events are used up."""
        one = slice(*np.searchsorted(self.terminators, (first, last + 1)).tolist())
        given, low, bounds, turns = (table[one] for table in self._all[:4])
        searches = self._all._replace(given=given, low=low, bounds=bounds, turns=turns)
        found = _run(self._sequence, searches).found
        return found[found[:, 0] >= 0]

    def tried(self, row: int) -> list[list[int]]:
        """The rows of the match of one terminator, if it has one; they are not used up by that."""
        found = self.found(row, row)
        self._used[found] = NO_ROW
        matches: list[list[int]] = found.tolist()
        return matches

    def use(self, rows: list[int], row: int) -> None:
        """Use up these rows at the turn of a terminator."""
        self._used[rows] = row


def hopeful_ends(search: Search) -> Ints:
    """The terminators but for some that certainly end no candidate."""
    return _hopeful(search)[0]


def _hopeful(search: Search) -> tuple[Ints, Ints, list[Ints]]:
    """These terminators, with the first row and the bounds of each."""
    ends = search.fitting[-1]
    starts, bounds = window_start(search.stream, ends, search.pattern.within), _bounds_before(search, ends)
    hopeful = starts < bounds[0]
    return ends[hopeful], starts[hopeful], [bound[hopeful] for bound in bounds]


def _bounds_before(search: Search, terminators: Ints) -> list[Ints]:
    """For each anchor int64[m], the row after the last one from which the terminator can be reached."""
    reach, bounds = terminators, [terminators + 1]
    for level in range(search.steps - 2, -1, -1):
        reach = search.preceding(level, reach + search.between.shape.may_coincide(level + 1))
        bounds.append(reach + 1)
    return bounds[::-1]


def _bounds_behind(search: Search, start: Ints) -> list[Ints]:
    """For each anchor int64[m], the first row that can be reached from a row."""
    reach, bounds = start - 1, []
    for level in range(search.steps):
        reach = search.following(level, reach - search.between.shape.may_coincide(level))
        bounds.append(reach)
    return bounds


def _searches(
    given: Ints,
    low: Ints,
    bounds: list[Ints],
    *,
    turns: Ints = _NOTHING,
    segments: Ints = _NOTHING,
    second_thoughts: int = 1,
    shorten: int = 0,
    only_latest: int = 0,
) -> Searches:
    given, low = np.ascontiguousarray(given), np.ascontiguousarray(low)
    table = np.ascontiguousarray(np.column_stack(bounds))
    return Searches(given, low, table, turns, segments, second_thoughts, shorten, only_latest)


def _run(sequence: Sequence, searches: Searches, *, trailing: bool = False) -> Answers:
    count, steps = len(searches.given), len(sequence.order)
    rows = len(sequence.seq)
    uses_up, compares = len(searches.turns) > 0, sequence.compares < steps
    told = 3 * rows if uses_up else 2 * rows if compares else 0  # of two candidates, and of all matches
    answers = Answers(
        found=np.full((count, steps), -1, np.int64),
        latest=np.full(count if trailing or searches.only_latest else 0, -1, np.int64),
        ends=np.zeros(count if uses_up else 0, np.int64),
        members=np.zeros(told, np.int64),
        roles=np.zeros(told, np.int64),
    )
    room, candidates = np.zeros((5, steps), np.int64), partial(_candidates_at_most, searches, steps)
    search_sequences(sequence, searches, answers, room, steps=candidates)
    return answers


def _candidates_at_most(searches: Searches, steps: int) -> float:
    """The most candidates that searches can try."""
    ends = np.maximum(searches.bounds.max(axis=1, initial=0), searches.given + 1)
    return candidates_at_most(ends - searches.low, steps)


def _sequence(search: Search, sought: int) -> Sequence:
    """The tables of a sequence, for candidates of an initiator, or the least or greatest of a terminator."""
    if sought not in search.tables:
        search.tables[sought] = _tables(search, sought, None)
    found = search.tables[sought]
    assert isinstance(found, Sequence)
    return found


def _tables(search: Search, sought: int, used: Ints | None) -> Sequence:
    """These tables; `used`: the turn in which each row was used up, None where rows are not used up."""
    between, shape, stream = search.between, search.between.shape, search.stream
    sets, count, components = sets_of(search), stream.rows, search.pattern.components
    rows = np.arange(count if search.trailing else 0)
    ends = [between.ended(one, np.arange(count)) for one in _ends(search)]
    order = _order(shape, sought)
    return Sequence(
        searched=searched_of(search, order, used),
        order=np.array(order),
        placed=np.cumsum([0, *(1 << own for own in order)])[:-1],
        step=-1 if sought == GREATEST else 1,
        gaps=np.array([_gap(search, place) for place in range(len(shape.gaps))], np.int64).reshape(-1, 14),
        ends=np.array(ends, np.int64).reshape(len(ends), count),
        forbids=np.array(_forbids(search), np.int64).reshape(-1, 5),
        further=further_of(search),
        before=np.array([between.before[one] for one in sets], np.int64).reshape(len(sets), count + 1),
        roles=np.array([*shape.anchors, *sets, *between.ending]),
        alone=np.array([components[index].times is None for index in shape.anchors]),
        seq=np.ascontiguousarray(stream.seq),
        window_end=window_end(stream, rows, search.pattern.within),
        simple=int(search.simple),
        compares=search.steps if sought == COMPLETION else _compares(search, sought),
    )


def _order(shape: Shape, sought: int) -> list[int]:
    """The anchors in the order in which they are placed.

    Where groups directly follow each other, the anchor before them says where each of them begins.
    """
    last = len(shape.anchors) - 1
    if sought != GREATEST:
        return [*range(last + 1)] if sought == COMPLETION else [last, *range(last)]
    order: list[int] = []
    for own in range(last, -1, -1):
        run = takewhile(lambda gap: shape.gaps[gap].handed, range(own, last))
        if own == 0 or not shape.gaps[own - 1].handed:
            order += [own, *(gap + 1 for gap in run)]
    return order


def _gap(search: Search, place: int) -> tuple[int, ...]:
    """What `Sequence` says of a gap."""
    gap = search.between.shape.gaps[place]
    group = -1 if gap.group is None else search.steps + sets_of(search).index(gap.group)
    most = -1 if gap.times.most is None else gap.times.most
    ends, until = -1, -1
    if gap.group in search.between.ends:
        ends, sets = _ends(search).index(gap.group), [*search.between.ending]
        until = search.steps + len(sets_of(search)) + sets.index(gap.group) if gap.group in sets else -1
    anchors = (gap.from_left, gap.to_right, gap.closed, gap.adjoined)
    runs = gap.group in search.between.runs
    alone = gap.handed and stands_before_begin(search.between, place + 1)
    of_groups = (gap.first, gap.handed, gap.skipped, alone)
    return group, gap.times.least, most, *anchors, ends, until, runs, *of_groups


def _ends(search: Search) -> list[int]:
    """The components whose groups may end early, as `Sequence` lists them."""
    return sorted(search.between.ends)


def _forbids(search: Search) -> list[tuple[int, int, int, int, int]]:
    """What `Sequence` says of each negated component, trailing ones aside if these are not tested."""
    found, shape = [], search.between.shape
    for one in search.between.forbidding:
        where, gap, first = WHOLE, *[-1 if one.gap is None else one.gap] * 2
        if gap < 0 and search.structural:
            continue
        if gap >= 0 and shape.gaps[gap].group is not None:
            where = BEFORE if one.component in shape.gaps[gap].before else BEHIND
            while where == BEHIND and shape.gaps[first].skipped:  # the event before may be of a group before
                first -= 1
        named = 0
        for conjunct in search.pattern.where:
            if one.component in conjunct.components:
                named |= names_of(search, [k for k in conjunct.components if k != one.component])
        beside = (1 << gap + 2) - (1 << first) if gap >= 0 else 1 | 1 << (search.steps - 1)
        needs = named | beside
        found.append((place_of_component(search, one.component), gap, where, needs, named))
    return found


def _compares(search: Search, sought: int) -> int:
    """The level from which on candidates are compared; the number of anchors if the first one is the best.

    The search tries the earliest rows first if the least candidate is sought, the latest if the greatest is.
    So the first candidate is the best one, unless an event may be in a group or be the anchor beside it:
    another candidate may have the event in its group, and be better. Rows of lower levels are certain: the
    given one and, of the least candidate, the first.
    """
    shape, rows_of, backwards = search.between.shape, search.between.rows_of, sought == GREATEST
    for level, gap in enumerate(shape.gaps):
        beside = level if backwards else level + 1
        if gap.group is None or (beside == search.steps - 1 and not backwards):
            continue
        if gap.handed and not backwards and len(shape.components_at(level + 1)) == 1:
            continue  # what stands before says where the group behind begins
        begins_it = level > 0 and shape.gaps[level - 1].handed
        either = [] if begins_it and backwards else [(rows_of[gap.group], search.members[beside])]
        if gap.handed:
            either.append((rows_of[gap.group], search.members[level + 1]))
            either += [(search.members[level], search.members[level + 1])] * (gap.times.least == 0)
        shared = any(len(np.intersect1d(one, other)) for one, other in either)
        if (gap.from_left and backwards and not begins_it) or shared:
            return 1 if backwards else 2
    return search.steps
