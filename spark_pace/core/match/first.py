"""The first candidate of each search: from an initiator on, from a terminator back, or by the walk of *next*.

Memory holds what is found and a piece of what is tested (`ways.PIECE_ROWS`), never all candidates. Where it
takes all conditions, compiled code searches candidates depth-first; elsewhere, and where there are few, they
are made in pieces, of which the first one of each search is kept.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from spark_pace import ways
from spark_pace.core.columns import Ints, has_bit
from spark_pace.core.match.candidates import Ranges, bounds_of, candidates
from spark_pace.core.match.search.any_order import AnyOrder
from spark_pace.core.match.search.choose import best
from spark_pace.core.match.search.level import compiled_levels
from spark_pace.core.match.search.nearest_sets import nearest_sets
from spark_pace.core.match.search.search import Search
from spark_pace.core.match.search.search_arguments import Searches
from spark_pace.core.ranges import expand, pieces
from spark_pace.core.ranks import segments_of


def greatest(search: Search, terminators: Ints, start: Ints) -> tuple[Ints, Ints | None]:
    """The greatest candidate of each terminator that has one, compared from its last event back.

    Args:
        search: the pattern over a stream.
        terminators: int64[m], rows of the last component.
        start: int64[m], the first row that the candidates of each may use.

    Returns:
        int64[k, n], in the order of the terminators; and int64[k], the row whose window decides each one, if
        not its last event does.
    """
    if not search.simple:
        best_of, latest = chosen(search, terminators, start, backwards=True)
        found = best_of[:, 0] >= 0
        return best_of[found], latest[found] if search.trailing else None
    if search.techniques.best.how == "nearest":  # of each step, from the terminator back
        columns = [terminators]
        for level in range(search.steps - 2, -1, -1):
            columns.append(search.preceding(level, columns[-1]))
        matrix = np.column_stack(columns[::-1])
        return matrix[matrix[:, 0] >= start], None
    last = search.stream.rows - 1
    anchors = last - terminators
    _, matrix = first(search.mirrored(), Ranges(anchors, anchors, last - start + 1))
    return last - matrix[:, ::-1], None


def least(search: Search, terminators: Ints, start: Ints) -> Ints:
    """The least candidate of each terminator that has one, compared from its first event on.

    See `greatest`. No candidate that starts later is less, so its own window is what may decide it.
    """
    if not search.simple:
        best_of, _ = chosen(search, terminators, start, backwards=False)
        return best_of[best_of[:, 0] >= 0]
    if search.techniques.best.how == "nearest":  # of each step, from the start on
        columns = [start - 1]
        for level in range(search.steps - 1):
            columns.append(search.following(level, columns[-1]))
        matrix = np.column_stack([*columns[1:], terminators])
        return matrix if search.steps == 1 else matrix[matrix[:, -2] < terminators]
    _, matrix = first(search.rotated(), Ranges(terminators, start - 1, terminators))
    return np.roll(matrix, -1, axis=1)


def chosen(search: Search, terminators: Ints, start: Ints, *, backwards: bool) -> tuple[Ints, Ints]:
    """The greatest or least candidate of each terminator: all are made, in pieces, and compared.

    Args:
        search: the pattern over a stream.
        terminators: int64[m], rows of the last anchor, ascending.
        start: int64[m], the first row that the candidates of each may use, ascending.
        backwards: whether it is the greatest, see `choose.best`.

    Returns:
        int64[m, n], -1 where there is none; int64[m], the first row of the candidate that starts last, even
        if a trailing negation forbids it, -1 where there is none: at the end of its window it is known which
        candidates of the terminator are forbidden.
    """
    if isinstance(search, AnyOrder):
        best_of = _best_in_any_order(search, terminators, start, backwards=backwards)
        return best_of, search.firsts(best_of)
    best_of = np.full((len(terminators), search.steps), -1)
    latest = np.full(len(terminators), -1, np.int64)
    anchors = search.members[0]
    reach = np.searchsorted(start, anchors, "right") - 1
    anchors, reach = anchors[reach >= 0], reach[reach >= 0]
    end = terminators[reach] + 1
    anchors, end = anchors[end > anchors], end[end > anchors]
    for piece in candidates(search.varied(structural=True), Ranges(anchors, anchors, end)):
        place = np.searchsorted(terminators, piece[:, -1])
        ends = place < len(terminators)
        ends[ends] = terminators[place[ends]] == piece[ends, -1]
        piece, place = piece[ends], place[ends]
        np.maximum.at(latest, place, piece[:, 0])
        if search.trailing:
            lasting = search.lasting(piece)
            piece, place = piece[lasting], place[lasting]
        _improve(search, best_of, piece, place, backwards=backwards)
    return best_of, latest


def _improve(search: Search, best_of: Ints, piece: Ints, place: Ints, *, backwards: bool) -> None:
    """Write candidates into `best_of` (int64[m, n]) that are better than what is at their place."""
    before = np.unique(place)
    before = before[best_of[before, 0] >= 0]
    rows, owner = np.concatenate([best_of[before], piece]), np.append(before, place)
    index = best(search.production_sets(rows), owner, backwards=backwards)
    best_of[owner[index]] = rows[index]


def _best_in_any_order(search: AnyOrder, terminators: Ints, start: Ints, *, backwards: bool) -> Ints:
    """The greatest or least candidate of a conjunction for each terminator; see `greatest` and `least`.

    Returns:
        int64[m, n], by components; -1 where there is none.
    """
    best_of = np.full((len(terminators), search.steps), -1)
    if search.techniques.best.how == "nearest set":
        beyond = terminators if backwards else start - 1
        matrix = nearest_sets(search, terminators, beyond, backwards=backwards)
        here = (search.firsts(matrix) >= start) & (search.lasts(matrix) == terminators)
        best_of[here] = matrix[here]
        return best_of
    for piece in _by_orders(search, terminators, start, backwards=backwards):
        place = np.searchsorted(terminators, search.lasts(piece))
        _improve(search, best_of, piece, place, backwards=backwards)
    return best_of


def _by_orders(search: AnyOrder, terminators: Ints, start: Ints, *, backwards: bool) -> Iterator[Ints]:
    """Candidates of the terminators, the best ones among them: of a few orders of components that of each."""
    if search.techniques.best.how == "all candidates":
        yield from search.ending_with(terminators, start)
        return
    for order in search.orders:
        mine = np.flatnonzero(has_bit(search.stream.mask[terminators], order[-1]))
        sequence, lasts, first_rows = search.arranged(order), terminators[mine], start[mine]
        if backwards:
            matrix, _ = greatest(sequence, lasts, first_rows)
        else:
            matrix = least(sequence, lasts, first_rows)
        yield matrix[:, np.argsort(order)]


def walk(search: Search, ranges: Ranges) -> tuple[Ints, Ints]:
    """The walk of *next* from each anchor: each component takes the first event that fits and keeps it.

    Sources: semantics, section 4; skip-till-next-match of SASE, Flink's ``followedBy``.

    Returns:
        found: int64[k], the searches that found a match, ascending; matrix: int64[k, n], their matches.
    """
    technique = search.techniques.walk
    if technique.how == "nearest":
        return _nearest_of_each(search, ranges)
    search = search.walker
    if technique.compilable and search.many:
        return depth_first(search, ranges, second_thoughts=False)
    if search.simple:
        return _step_by_step(search, ranges)
    walking = search.varied(walking=True, structural=search.structural)
    found, matrix = _step_by_step(walking, ranges)
    kept = walking.lasting(matrix)
    return found[kept], matrix[kept]


def _nearest_of_each(search: Search, ranges: Ranges) -> tuple[Ints, Ints]:
    """The walks of a plain sequence: at each step the next event of the component."""
    columns, after = [ranges.anchors], ranges.after
    for level in range(1, search.steps):
        after = search.following(level, after)
        columns.append(after)
    found = np.arange(len(after)) if search.steps == 1 else np.flatnonzero(after < ranges.end)
    return found, np.column_stack([column[found] for column in columns])


def nearest(search: Search, ranges: Ranges) -> tuple[Ints, Ints]:
    """The candidate of two anchors that ends first, for each search that has one.

    Returns:
        As `walk` does. In a simple pattern it is the walk, for nothing comes after its second step.
    """
    return walk(search, ranges) if search.simple else _step_by_step(search, ranges)


def first(search: Search, ranges: Ranges) -> tuple[Ints, Ints]:
    """The first candidate of each search that has one, compared level by level from the second on.

    Returns:
        As `walk` does.
    """
    technique = search.techniques.best
    if technique.compilable and search.many:
        return depth_first(search, ranges)
    if technique.how == "walk":
        return _step_by_step(search, ranges)
    matrix = np.full((len(ranges.anchors), search.steps), -1)
    place = np.zeros(search.stream.rows, np.int64)
    place[ranges.anchors] = np.arange(len(ranges.anchors))
    for piece in candidates(search, ranges):
        anchors, index = np.unique(piece[:, 0], return_index=True)
        new = matrix[place[anchors], 0] < 0
        matrix[place[anchors[new]]] = piece[index[new]]
    found = np.flatnonzero(matrix[:, 0] >= 0)
    return found, matrix[found]


def depth_first(
    search: Search,
    ranges: Ranges,
    *,
    second_thoughts: bool = True,
    shorten: bool = False,
    use_up: bool = False,
) -> tuple[Ints, Ints]:
    """What the compiled search finds; `Searches` says what the options do.

    Returns:
        As `walk` does.
    """
    from spark_pace.core.match.search.compiled import depth_first as compiled
    from spark_pace.core.match.search.compiled.compilation import normal

    bounds = np.column_stack(bounds_of(search, ranges))
    used = np.zeros(search.stream.rows, np.bool_)
    anchors, after = normal(ranges.anchors), normal(ranges.after)
    searches = Searches(anchors, after, normal(bounds), used, second_thoughts, shorten, use_up)
    if search.levels_compiled is None:
        search.levels_compiled = compiled_levels(search.levels, search.places, search.stream)
    matrix = compiled.depth_first(*search.levels_compiled, searches)
    found = np.flatnonzero(matrix[:, 0] >= 0)
    return found, matrix[found]


def _step_by_step(search: Search, ranges: Ranges) -> tuple[Ints, Ints]:
    """The walk of all searches at once, component by component."""
    found = np.arange(len(ranges.anchors))
    matrix, after = ranges.anchors[:, None], ranges.after
    for level in range(1, search.steps):
        index, rows = _step(search, level, matrix, after, ranges.end[found])
        matrix = np.column_stack([matrix[index], rows])
        found, after = found[index], rows
    return found, matrix


def _step(search: Search, level: int, matrix: Ints, after: Ints, end: Ints) -> tuple[Ints, Ints]:
    """Which walks go on at `level`, and with which row. Ever larger blocks are tested until a row fits."""
    pool, lo, hi = search.reach(level, matrix, after, end)
    taken = np.full(len(matrix), -1, np.int64)
    waiting = np.flatnonzero(lo < hi)
    if search.levels[level].looked_up:
        return waiting, pool[lo[waiting]]
    block = ways.FIRST_ROWS
    while len(waiting):
        stop = np.minimum(hi[waiting], lo[waiting] + block)
        for piece in pieces(stop - lo[waiting]):
            owner, index = expand(lo[waiting[piece]], stop[piece])
            grown = np.column_stack([matrix[waiting[piece][owner]], pool[index]])
            fits = np.flatnonzero(search.passes(level, grown))
            fits = fits[segments_of(owner[fits])]  # the first of each walk
            taken[waiting[piece][owner[fits]]] = grown[fits, -1]
        lo[waiting] = stop
        waiting = waiting[(taken[waiting] < 0) & (stop < hi[waiting])]
        block *= 4
    kept = np.flatnonzero(taken >= 0)
    return kept, taken[kept]
