"""Compiled searches for candidates of a conjunction."""

from __future__ import annotations

from functools import lru_cache, partial

import numpy as np

from spark_pace.core.match.candidates import candidates_at_most
from spark_pace.core.match.compiled.arguments import COMPLETION, GREATEST, LEAST, Conjunction, Ends
from spark_pace.core.match.compiled.conjunctions import FIRST, HINT, ROOM, search_conjunctions
from spark_pace.core.match.search.any_order import AnyOrder
from spark_pace.core.match.search.row_tables import searched_of
from spark_pace.core.match.stream import Decided, window_start
from spark_pace.core.plan.rule import Pattern
from spark_pace.core.plan.shape import component_bits
from spark_pace.core.tables import NO_ROW, Ints


def completing(search: AnyOrder, starts: Ints, end: Ints) -> Ints:
    """int64[m], the first row that completes a candidate from each start, before row `end`; -1 for none."""
    ends = _ends(starts, starts, end, COMPLETION)
    if search.limited:
        allowed = np.zeros(search.stream.rows, np.bool_)
        allowed[search.terminators] = True
        ends = ends._replace(allowed=allowed)
    return _run(search, ends)[:, 0]


def least_of(search: AnyOrder, terminators: Ints, start: Ints) -> Ints:
    """int64[m, n], the least candidate of each terminator, by components; -1 where it has none.

    Args:
        search: a conjunction over a stream.
        terminators: int64[m], ascending.
        start: int64[m], the first row that the candidates of each may have.
    """
    return _run(search, _ends(terminators, start, terminators, LEAST))


def greatest_of(search: AnyOrder, terminators: Ints, start: Ints) -> Ints:
    """int64[m, n], the greatest candidate of each terminator; see `least_of`."""
    return _run(search, _ends(terminators, start, terminators, GREATEST))


def decided(search: AnyOrder, used: Ints) -> Decided:
    """The least candidate of each terminator that has one, without the rows that earlier ones use up.

    Args:
        search: a conjunction over a stream.
        used: not read; of a conjunction the rows that are used up already match no component. It is there
            because callers take this function or the one of `sequence_search`.
    """
    terminators = hopeful_ends(search)
    start = window_start(search.stream, terminators, search.pattern.within)
    ends = _ends(terminators, start, terminators, LEAST)
    matrix = _run(search, ends._replace(turns=np.arange(len(terminators))))
    return Decided(*search.production_sets(matrix[matrix[:, 0] >= 0]), None)


def hopeful_ends(search: AnyOrder) -> Ints:
    """All terminators; none of them if some component has no row, because then there is no candidate."""
    return search.terminators[: None if all(map(len, search.fitting)) else 0]


def _run(search: AnyOrder, ends: Ends) -> Ints:
    assert not len(ends.turns) or ends.sought == LEAST  # used rows are passed over from the first one on only
    conjunction = _tables(search, uses_up=True) if len(ends.turns) else _kept_tables(search)
    found = np.full((len(ends.given), 1 if ends.sought == COMPLETION else search.steps), -1, np.int64)
    room = np.zeros((ROOM, search.steps), np.int64)
    rows = conjunction.searched.rows
    room[HINT], room[FIRST] = rows.groups[rows.first_groups[rows.paths[:-1]]], -1
    candidates = partial(_candidates_at_most, ends, search.steps)
    search_conjunctions(conjunction, ends, found, room, steps=candidates)
    return found


def _candidates_at_most(ends: Ends, steps: int) -> float:
    """The most candidates that searches can try."""
    return candidates_at_most(np.maximum(ends.high, ends.given) - ends.low, steps)


def _ends(given: Ints, low: Ints, high: Ints, sought: int) -> Ends:
    given, low, high = (np.ascontiguousarray(rows) for rows in (given, low, high))
    return Ends(given, low, high, np.zeros(0, np.bool_), np.zeros(0, np.int64), sought)


def _kept_tables(search: AnyOrder) -> Conjunction:
    """The tables of a conjunction of which nothing is used up."""
    if not search.tables:
        search.tables[Conjunction] = _tables(search, uses_up=False)
    found = search.tables[Conjunction]
    assert isinstance(found, Conjunction)
    return found


def _tables(search: AnyOrder, *, uses_up: bool) -> Conjunction:
    """The tables of a conjunction."""
    bits = component_bits(search.pattern)
    masks = (search.stream.mask & np.uint16(bits)).astype(np.int64)
    searched = searched_of(search, None, np.full(search.stream.rows, NO_ROW) if uses_up else None)
    shared = _shared(masks, search.steps)
    parts, following = _parts(search.pattern, tuple(searched.rows.ties.tolist()), tuple(shared))
    exclusive = [not any(shared[own] for own in range(search.steps) if part >> own & 1) for part in parts]
    return Conjunction(
        searched=searched._replace(shared=np.array(shared)),
        parts=np.array(parts),
        following=following,
        masks=masks,
        exclusive=np.array(exclusive),
    )


def _shared(masks: Ints, steps: int) -> list[int]:
    """For each anchor the mask of those that some row may be that of as well."""
    kinds = np.flatnonzero(np.bincount(masks)).tolist()
    own = [0] * steps
    for kind in kinds:
        for one in range(steps):
            if kind >> one & 1:
                own[one] |= kind & ~(1 << one)
    return own


@lru_cache(maxsize=1024)
def _parts(pattern: Pattern, ties: tuple[int, ...], shared: tuple[int, ...]) -> tuple[list[int], Ints]:
    """The parts of a conjunction, and for each the anchor to be placed next, as `Conjunction` has them."""
    steps = len(ties)
    near = [ties[own] | shared[own] for own in range(steps)]
    parts: list[int] = []
    for own in range(steps):
        joined = 1 << own | near[own]
        joined |= sum({part for part in parts if part & joined})
        parts = [part for part in parts if not part & joined] + [joined]
    parts.sort(key=lambda part: (part & (part - 1) != 0, part))
    following = np.zeros((len(parts), 1 << steps), np.int64)
    for number, part in enumerate(parts):
        for placed in range(1 << steps):
            if placed & part == placed and placed != part:
                following[number, placed] = _next(pattern, part, placed)
    return parts, following


def _next(pattern: Pattern, part: int, placed: int) -> int:
    """The anchor of a part that most conditions tie to those that are placed."""

    def tied(own: int) -> int:
        known = placed | 1 << own
        return sum(
            own in one.components and all(known >> k & 1 for k in one.components) for one in pattern.where
        )

    left = [own for own in range(len(pattern.components)) if part >> own & 1 and not placed >> own & 1]
    return max(left, key=tied)
