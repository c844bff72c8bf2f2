"""Candidates of a sequence, found by joins on whole columns.

A candidate is one row for each anchor (`spark_pace.core.plan.shape`), ascending; together the rows satisfy
every conjunct of `where` (semantics, section 3). Matrices of candidates are int64[m, n]: m candidates, n
anchors. A conjunct ``a.x = b.y`` is looked up in a column that is sorted by the rank of the value, then by
row; the other conjuncts, and what stands between the anchors, are tested on what the look-ups have found.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from spark_pace import ways
from spark_pace.core.match.search.any_order import Alternatives, AnyOrder
from spark_pace.core.match.search.search import Search
from spark_pace.core.ranks import expand, pieces
from spark_pace.core.tables import Bools, Ints


@dataclass(frozen=True)
class Ranges:
    """Where candidates are sought, for each of m searches.

    Attributes:
        anchors: int64[m], the row of the first anchor.
        after: int64[m], the row behind which the second anchor is sought; each later anchor is sought behind
            the one before it.
        end: int64[m], the row after the last one a candidate may use.
        last: int64[m], the row at which the candidate must end; None where any row will do.
        used: bool[rows], the rows that no candidate of a sequence may have; None where all may be taken. The
            caller may set more of them between two pieces: the next piece does without these. Within a piece
            candidates may share rows, which the caller must see to. For conjunctions it has no effect.
    """

    anchors: Ints
    after: Ints
    end: Ints
    last: Ints | None = None
    used: Bools | None = None

    def take(self, index: Ints | Bools) -> Ranges:
        """The ranges of some of the searches."""
        last = None if self.last is None else self.last[index]
        return Ranges(self.anchors[index], self.after[index], self.end[index], last, self.used)


def candidates(search: Search, ranges: Ranges) -> Iterator[Ints]:
    """All candidates of each search, in pieces.

    Yields:
        int64[p, n] candidates: of a sequence in the order of the searches, ascending for each search; of a
            conjunction with a column for each component, in no order; of a disjunction so too.
    """
    if isinstance(search, Alternatives):
        yield from _of_alternatives(search, ranges)
        return
    if isinstance(search, AnyOrder):
        yield from _in_any_order(search, ranges)
        return
    if search.steps == 1:
        keep = search.passes(0, ranges.anchors[:, None])
        if ranges.last is not None:
            keep &= ranges.anchors == ranges.last
        yield ranges.anchors[keep][:, None]
        return
    yield from _extend(
        search, ranges, bounds_of(search, ranges), ranges.anchors[:, None], np.arange(len(ranges.anchors))
    )


def candidates_ending(search: Search, terminators: Ints, start: Ints) -> Iterator[Ints]:
    """All candidates that end with terminators, in pieces.

    Args:
        search: the pattern over a stream.
        terminators: int64[m], ascending.
        start: int64[m], the first row that the candidates of each may have, ascending.
    """
    if isinstance(search, Alternatives):
        for number, part in enumerate(search.parts):
            mine = np.isin(terminators, part.terminators)
            for piece in candidates_ending(part, terminators[mine], start[mine]):
                yield search.whole(number, piece)
        return
    if isinstance(search, AnyOrder):
        yield from search.ending_with(terminators, start)
        return
    anchors = search.members[0]
    reach = np.searchsorted(start, anchors, "right") - 1
    anchors, reach = anchors[reach >= 0], reach[reach >= 0]
    end = terminators[reach] + 1
    anchors, end = anchors[end > anchors], end[end > anchors]
    for piece in candidates(search, Ranges(anchors, anchors, end)):
        place = np.searchsorted(terminators, piece[:, -1])
        ends = place < len(terminators)
        ends[ends] = terminators[place[ends]] == piece[ends, -1]
        yield piece[ends]


def _in_any_order(search: AnyOrder, ranges: Ranges) -> Iterator[Ints]:
    """All candidates of each search of a conjunction, in pieces; see `candidates`."""
    if ranges.last is not None:
        yield from search.between_ends(ranges.anchors, ranges.last)
    else:
        yield from search.starting_with(ranges.anchors, ranges.end)


def _of_alternatives(search: Alternatives, ranges: Ranges) -> Iterator[Ints]:
    """All candidates of each search of a disjunction, in pieces; see `candidates`."""
    for number, part in enumerate(search.parts):
        mine = np.isin(ranges.anchors, part.initiators)
        if ranges.last is not None:
            mine &= np.isin(ranges.last, part.terminators)
        for piece in candidates(part, ranges.take(mine)):
            yield search.whole(number, piece)


def candidates_at_most(rows: Ints, steps: int) -> float:
    """The most candidates that searches can try which look at so many rows each (int64[m])."""
    return float((np.maximum(rows, 0).astype(np.float64) ** (steps - 1)).sum())


def bounds_of(search: Search, ranges: Ranges) -> list[Ints]:
    """For each level int64[m], the row after the last one from which the last level can still be reached."""
    last = search.steps - 1
    bounds = [ranges.end] * search.steps
    if last == 1:
        return bounds
    reach = search.preceding(last, ranges.end) if ranges.last is None else ranges.last
    for level in range(last - 1, 0, -1):
        reach = search.preceding(level, reach + search.between.shape.may_coincide(level + 1))
        bounds[level] = np.minimum(ranges.end, reach + 1)
    return bounds


def _extend(
    search: Search, ranges: Ranges, bounds: list[Ints], partial: Ints, origin: Ints
) -> Iterator[Ints]:
    """The candidates that begin with partial ones, to which each level adds a column.

    Args:
        search: as in `candidates`.
        ranges: as in `candidates`.
        bounds: what `bounds_of` gives.
        partial: int64[p, k], the partial candidates: the rows of their first k anchors.
        origin: int64[p], the index of the search of each.
    """
    level = partial.shape[1]
    if level == search.steps:
        yield partial
        return
    if ranges.last is not None and level == search.steps - 1:
        yield _with_last_row(search, partial, ranges.last[origin])
        return
    after = ranges.after[origin] if level == 1 else partial[:, -1]
    pool, lo, hi = search.reach(level, partial, after, bounds[level][origin])
    for piece in pieces(hi - lo, None if ranges.used is None else ways.USING_UP_ROWS):
        rows = np.arange(piece.start, piece.stop)
        if ranges.used is not None:
            rows = rows[~ranges.used[partial[piece]].any(axis=1)]
        owner, index = expand(lo[rows], hi[rows])
        grown = np.column_stack([partial[rows[owner]], pool[index]])
        if ranges.used is not None:
            free = ~ranges.used[grown[:, -1]]
            owner, grown = owner[free], grown[free]
        keep = search.passes(level, grown)
        yield from _extend(search, ranges, bounds, grown[keep], origin[rows[owner[keep]]])


def _with_last_row(search: Search, partial: Ints, last: Ints) -> Ints:
    """The candidates that partial ones become with the row `last` of each, the only row that they lack."""
    keep = partial[:, -1] < last + search.between.shape.may_coincide(search.steps - 1)
    grown = np.column_stack([partial[keep], last[keep]])
    return grown[search.passes(search.steps - 1, grown, looked_up=False)]
