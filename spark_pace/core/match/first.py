"""The first candidate of each search: from an initiator on, from a terminator back, or by the walk of *next*.

Memory holds what is found and a piece of what is tested (`ways.PIECE_ROWS`), never all candidates. Where it
takes all conditions, compiled code searches; elsewhere candidates are made in pieces, of which the best one
of each search is kept. A *completion* is, for an initiator, the first event that completes a candidate that
starts there.
"""

from __future__ import annotations

import numpy as np

from spark_pace import ways
from spark_pace.core.match.candidates import Ranges, candidates, candidates_ending
from spark_pace.core.match.compiled_search import searches_of, sequence_search
from spark_pace.core.match.search.any_order import Alternatives
from spark_pace.core.match.search.comparison import best
from spark_pace.core.match.search.limits import step
from spark_pace.core.match.search.search import Search
from spark_pace.core.ranks import segments_of
from spark_pace.core.tables import Ints


def greatest(search: Search, terminators: Ints, start: Ints) -> tuple[Ints, Ints | None]:
    """The greatest candidate of each terminator that has one, compared from its last event back.

    Args:
        search: the pattern over a stream.
        terminators: int64[m], rows of the last component.
        start: int64[m], the first row that the candidates of each may use.

    Returns:
        int64[k, n], in the order of the terminators; and int64[m], the row whose window decides which one
        each terminator has, -1 if it has none; None if the terminators decide it themselves.
    """
    if isinstance(search, Alternatives):
        return _best_of_alternatives(search, terminators, start, backwards=True), None
    how = search.techniques.best.how
    if how == "nearest":  # of each step, from the terminator back
        columns = [terminators]
        for level in range(search.steps - 2, -1, -1):
            columns.append(search.preceding(level, columns[-1]))
        matrix = np.column_stack(columns[::-1])
        return matrix[matrix[:, 0] >= start], None
    if how == "walk" and not search.techniques.best.compiled:
        last = search.stream.rows - 1
        anchors = last - terminators
        _, matrix = _step_by_step(search.mirrored(), Ranges(anchors, anchors, last - start + 1))
        return last - matrix[:, ::-1], None
    best_of, latest = _best_of(search, terminators, start, backwards=True)
    return best_of[best_of[:, 0] >= 0], latest


def least(search: Search, terminators: Ints, start: Ints) -> Ints:
    """The least candidate of each terminator that has one, compared from its first event on.

    See `greatest`. No candidate that starts later is less, so its own window is what may decide it.
    """
    if isinstance(search, Alternatives):
        return _best_of_alternatives(search, terminators, start, backwards=False)
    how = search.techniques.best.how
    if how == "nearest":  # of each step, from the start on
        columns = [start - 1]
        for level in range(search.steps - 1):
            columns.append(search.following(level, columns[-1]))
        matrix = np.column_stack([*columns[1:], terminators])
        return matrix if search.steps == 1 else matrix[matrix[:, -2] < terminators]
    if how == "walk" and not search.techniques.best.compiled:
        _, matrix = _step_by_step(search.rotated(), Ranges(terminators, start - 1, terminators))
        return np.roll(matrix, -1, axis=1)
    best_of, _ = _best_of(search, terminators, start, backwards=False)
    return best_of[best_of[:, 0] >= 0]


def _best_of_alternatives(search: Alternatives, terminators: Ints, start: Ints, *, backwards: bool) -> Ints:
    """The best one of what `greatest` or `least` finds of each alternative."""
    found = [np.zeros((0, search.steps), np.int64)]
    for number, part in enumerate(search.parts):
        mine = np.isin(terminators, part.terminators)
        own = terminators[mine], start[mine]
        found.append(search.whole(number, greatest(part, *own)[0] if backwards else least(part, *own)))
    matrix = np.concatenate(found)
    return matrix[best(search.production_sets(matrix), search.lasts(matrix), backwards=backwards)]


def _best_of(search: Search, terminators: Ints, start: Ints, *, backwards: bool) -> tuple[Ints, Ints | None]:
    """What `chosen` gives; the second part only where a trailing negation decides about the greatest one."""
    forbids = search.trailing and search.between.shape.optional_last is None  # an optional one adds events
    if not search.techniques.best.compiled:
        best_of, latest = chosen(search, terminators, start, backwards=backwards)
        return best_of, latest if forbids else None
    seek = searches_of(search).greatest_of if backwards else searches_of(search).least_of
    best_of = seek(search, terminators, start)
    if not forbids or not backwards:
        return best_of, None
    return best_of, sequence_search.latest_of(search, terminators, start)  # a conjunction has no negation


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
    best_of = np.full((len(terminators), search.steps), -1)
    latest = np.full(len(terminators), -1, np.int64)
    for piece in candidates_ending(search.varied(structural=True), terminators, start):
        place = np.searchsorted(terminators, search.lasts(piece))
        np.maximum.at(latest, place, search.firsts(piece))
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


def walk(search: Search, ranges: Ranges) -> tuple[Ints, Ints]:
    """The walk of *next* from each anchor: each component takes the first event that fits and keeps it.

    Sources: semantics, section 4; skip-till-next-match of SASE, Flink's ``followedBy``.

    Returns:
        found: int64[k], the searches that found a match, ascending; matrix: int64[k, n], their matches.
    """
    if isinstance(search, Alternatives):
        return _first_walks(search, ranges)
    technique = search.techniques.walk
    if technique.how == "nearest":
        return _nearest_of_each(search, ranges)
    search = search.walker
    if technique.compiled:  # which it is for sequences only
        matrix = sequence_search.walking(search, ranges.anchors, ranges.end)
        found = np.flatnonzero(matrix[:, 0] >= 0)
        return found, matrix[found]
    if search.simple:
        return _step_by_step(search, ranges)
    walking = search.varied(walking=True, structural=search.structural)
    found, matrix = _step_by_step(walking, ranges)
    kept = walking.lasting(matrix)
    return found[kept], matrix[kept]


def _first_walks(search: Alternatives, ranges: Ranges) -> tuple[Ints, Ints]:
    """For each search the walk of an alternative that is complete first; of several the first listed one."""
    owner, found = [np.zeros(0, np.int64)], [np.zeros((0, search.steps), np.int64)]
    for number, part in enumerate(search.parts):
        mine = np.flatnonzero(np.isin(ranges.anchors, part.initiators))
        own, matrix = walk(part, ranges.take(mine))
        owner.append(mine[own])
        found.append(search.padded(number, matrix))
    owners, matrix = np.concatenate(owner), np.concatenate(found)
    order = np.lexsort((search.lasts(matrix), owners))  # which keeps equal ones as they are listed
    first = order[segments_of(owners[order])]
    return owners[first], matrix[first]


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


def _step_by_step(search: Search, ranges: Ranges) -> tuple[Ints, Ints]:
    """The walk of all searches at once, component by component."""
    found = np.arange(len(ranges.anchors))
    matrix, after = ranges.anchors[:, None], ranges.after
    for level in range(1, search.steps):
        index, rows = step(search, level, matrix, after, ranges.end[found])
        matrix = np.column_stack([matrix[index], rows])
        found, after = found[index], rows
    return found, matrix


def completions(search: Search, starts: Ints, end: Ints) -> Ints:
    """The first row that completes a candidate from each start.

    Args:
        search: the pattern over a stream.
        starts: int64[m], rows of initiators, ascending.
        end: int64[m], the row after the last one a candidate may use.

    Returns:
        int64[m]; -1 where no row does.
    """
    if isinstance(search, Alternatives):
        return _completions_of_alternatives(search, starts, end)
    technique = search.techniques.completion
    if technique.how == "nearest":
        rows = starts
        for level in range(1, search.steps):
            rows = search.following(level, rows)
        return np.where(rows < end, rows, -1)
    if technique.how != "walk" and technique.compiled:
        found: Ints = searches_of(search).completing(search, starts, end)
        return found
    closes, ranges = np.full(len(starts), -1, np.int64), Ranges(starts, starts, end)
    if technique.how == "walk":
        index, matrix = nearest(search, ranges)
        closes[index] = matrix[:, -1]
    else:
        _within_horizons(search, ranges, closes)
    return closes


def _completions_of_alternatives(search: Alternatives, starts: Ints, end: Ints) -> Ints:
    """The first row that completes a candidate of any alternative from each start; -1 where no row does."""
    closes = np.full(len(starts), search.stream.rows)
    for part in search.parts:
        mine = np.flatnonzero(np.isin(starts, part.initiators))
        own = completions(part, starts[mine], end[mine])
        closes[mine] = np.minimum(closes[mine], np.where(own < 0, search.stream.rows, own))
    return np.where(closes < search.stream.rows, closes, -1)


def _within_horizons(search: Search, ranges: Ranges, closes: Ints) -> None:
    """Write the completions into `closes`, which is -1 where none is known.

    All candidates within the next few rows of each start are made, then within ever more rows, until there is
    one.
    """
    starts, end = ranges.anchors, ranges.end
    waiting = np.arange(len(starts))
    horizon = ways.FIRST_HORIZON_ROWS
    while len(waiting):
        reach = np.minimum(end[waiting], starts[waiting] + horizon)
        _first_ends(search, starts, closes, waiting, reach)
        waiting = waiting[(closes[waiting] < 0) & (reach < end[waiting])]
        horizon *= 4


def _first_ends(search: Search, starts: Ints, closes: Ints, waiting: Ints, reach: Ints) -> None:
    """Write into `closes` the least last row of each waiting start's candidates that end before `reach`.

    `waiting` are indices of starts, and `reach` has a row for each of them.
    """
    for found in candidates(search, Ranges(starts[waiting], starts[waiting], reach)):
        index = np.searchsorted(starts, search.firsts(found))
        least = np.full(len(starts), search.stream.rows, np.int64)
        np.minimum.at(least, index, search.lasts(found))
        touched = np.unique(index)
        before = np.where(closes[touched] < 0, search.stream.rows, closes[touched])
        closes[touched] = np.minimum(before, least[touched])
