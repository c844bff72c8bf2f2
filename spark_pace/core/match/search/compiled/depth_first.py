"""The depth-first search for candidates: comparisons of two components narrow it, programs test the rest."""

from __future__ import annotations

import numpy as np

from spark_pace.core.columns import NULL_ORDER, Bools, Ints
from spark_pace.core.match.search.comparison import EQUAL, GREATER, LESS
from spark_pace.core.match.search.compiled.compilation import compiled, inlined, kept
from spark_pace.core.match.search.compiled.interpreter import first_that_holds
from spark_pace.core.match.search.search_arguments import Levels, Programs, Searches

_FIRST_ROWS = 16  # for which programs are run together


@compiled
def _place(rows: Ints, low: int, high: int, least: int) -> int:
    """The first place from `low` on whose row is not below `least`; `high` where there is none before it."""
    while low < high:
        middle = (low + high) // 2
        if rows[middle] < least:
            low = middle + 1
        else:
            high = middle
    return low


@inlined
def _span(levels: Levels, level: int, taken: Ints, after: int, end: int) -> tuple[int, int]:
    """Where in the pools the rows between `after` and `end` stand that may follow the taken ones."""
    earlier = levels.equals[level, 0]
    rank = levels.ranks[levels.equals[level, 1], taken[earlier]] if earlier >= 0 else 0
    if rank < 0:
        return 0, 0
    group = levels.first_groups[level] + rank
    low, high = levels.groups[group], levels.groups[group + 1]
    first = _place(levels.pools, low, high, after + 1)
    return first, _place(levels.pools, first, high, end)


@inlined
def _fits(levels: Levels, level: int, taken: Ints, row: int) -> bool:
    """Tell whether the comparisons of `level` hold between the taken rows and this one."""
    for test in range(levels.test_bounds[level], levels.test_bounds[level + 1]):
        left = levels.ranks[levels.tests[test, 1], taken[levels.tests[test, 0]]]
        right = levels.ranks[levels.tests[test, 2], row]
        order = 1 + (left > right) - (left < right)
        if left == NULL_ORDER or right == NULL_ORDER or not (levels.tests[test, 3] >> order) & 1:
            return False
    return True


@inlined
def _may_fit(levels: Levels, level: int, taken: Ints, block: int) -> bool:
    """Tell whether the comparisons of `level` may hold between the taken rows and a row of the block."""
    for test in range(levels.test_bounds[level], levels.test_bounds[level + 1]):
        left, accepts = (
            levels.ranks[levels.tests[test, 1], taken[levels.tests[test, 0]]],
            levels.tests[test, 3],
        )
        least, greatest = levels.least[test, block], levels.greatest[test, block]
        if left == NULL_ORDER or not (
            (accepts & LESS and left < greatest)
            or (accepts & EQUAL and least <= left <= greatest)
            or (accepts & GREATER and left > least)
        ):
            return False
    return True


@inlined
def _next(
    levels: Levels, programs: Programs, used: Bools, level: int, taken: Ints, span: tuple[int, int]
) -> int:
    """The first place in a span of the pools whose row is not used and fits; the span's end for none."""
    place, stop = span
    block, tested = 1 << levels.block_bits, programs.bounds[level] < programs.bounds[level + 1]
    waiting, most = 0, _FIRST_ROWS  # rows for which programs are run together, ever more
    while place < stop:
        if (place & (block - 1)) == 0 and not _may_fit(levels, level, taken, place >> levels.block_bits):
            place += block
            continue
        if not used[levels.pools[place]] and _fits(levels, level, taken, levels.pools[place]):
            if not tested:
                return place
            programs.rows[waiting], programs.places[waiting] = levels.pools[place], place
            waiting += 1
            if waiting == most:
                held = first_that_holds(programs, level, taken, waiting)
                if held < waiting:
                    return int(programs.places[held])
                waiting, most = 0, min(4 * most, len(programs.rows))
        place += 1
    held = first_that_holds(programs, level, taken, waiting) if waiting else 0
    return int(programs.places[held]) if held < waiting else stop


@compiled
def _is_less(one: Ints, other: Ints) -> bool:
    """Tell whether the rows of one candidate, but for that of level 0, are less than those of another."""
    for place in range(1, len(one)):
        if one[place] != other[place]:
            return bool(one[place] < other[place])
    return False


@inlined
def _search(
    levels: Levels, programs: Programs, searches: Searches, index: int, found: Ints, place: int, room: Ints
) -> None:
    """Write the candidate of one search into the row `place` of `found`; `room` is int64[4, n] to work in."""
    last = found.shape[1] - 1
    taken, fitted, at, stop = room[0], room[1], room[2], room[3]
    taken[0], end = searches.anchors[index], searches.bounds[index, last]
    level, enters = 1, True
    while level > 0:
        if enters:
            after = searches.after[index] if level == 1 else taken[level - 1]
            at[level], stop[level] = _span(
                levels, level, taken, after, min(end, searches.bounds[index, level])
            )
            fitted[level], enters = 0, False
        at_place = _next(levels, programs, searches.used, level, taken, (at[level], stop[level]))
        if at_place == stop[level] or levels.pools[at_place] >= end:
            if not searches.second_thoughts:
                return
            level = level - 1 if fitted[level] > 0 else levels.back[level]
            continue
        taken[level], fitted[level], at[level] = levels.pools[at_place], 1, at_place + 1
        if level < last:
            level, enters = level + 1, True
        else:
            for column in range(last + 1):
                found[place, column] = taken[column]
            end = taken[last]
            level = level - 1 if searches.shorten else 0


def depth_first(levels: Levels, programs: Programs, searches: Searches) -> Ints:
    """The first candidate of each search, by the row of level 1, of equal ones by that of level 2, and so on.

    With `shorten` it is one that ends first.

    Returns:
        int64[m, n], the rows by levels; -1 where there is no candidate.
    """
    found = np.full((len(searches.anchors), len(levels.back)), -1, np.int64)
    _depth_first(levels, programs, searches, found, np.zeros((4, found.shape[1]), np.int64))
    return found


@kept
def _depth_first(levels: Levels, programs: Programs, searches: Searches, found: Ints, room: Ints) -> None:
    """Write what `depth_first` gives into `found`."""
    for index in range(len(found)):
        if searches.used[searches.anchors[index]]:
            continue
        _search(levels, programs, searches, index, found, index, room)
        if searches.use_up and found[index, 0] >= 0:
            for place in range(found.shape[1]):
                searches.used[found[index, place]] = True


def least_of_orders(
    orders: tuple[tuple[Levels, Programs], ...], of_order: Bools, searches: Searches
) -> tuple[Ints, Ints]:
    """The least candidate of each search over several orders of components, without the used rows.

    Level 0 has the last row of a candidate, the others ascend. Of candidates of the same rows that of the
    first order is the least. The rows of a candidate that was found become used.

    Args:
        orders: the levels and programs of each order.
        of_order: bool[m, orders], whether the row of level 0 of a search may be that of an order.
        searches: what is searched.

    Returns:
        int64[m, n], the rows by levels, -1 where there is no candidate; int64[m], the order of each.
    """
    found = np.full((len(searches.anchors), len(orders[0][0].back)), -1, np.int64)
    taken_from = np.full(len(found), -1, np.int64)
    _least_of_orders(orders, of_order, searches, found, taken_from, np.zeros((5, found.shape[1]), np.int64))
    return found, taken_from


@kept
def _least_of_orders(
    orders: tuple[tuple[Levels, Programs], ...],
    of_order: Bools,
    searches: Searches,
    found: Ints,
    taken_from: Ints,
    room: Ints,
) -> None:
    """Write what `least_of_orders` gives into `found` and `taken_from`; `room` is int64[5, n] to work in."""
    other = room[4:]
    for index in range(len(found)):
        if searches.used[searches.anchors[index]]:
            continue
        for order in range(len(orders)):
            if not of_order[index, order]:
                continue
            other[0, 0] = -1
            levels, programs = orders[order]
            _search(levels, programs, searches, index, other, 0, room)
            if other[0, 0] >= 0 and (taken_from[index] < 0 or _is_less(other[0], found[index])):
                taken_from[index] = order
                for place in range(found.shape[1]):
                    found[index, place] = other[0, place]
        if taken_from[index] >= 0:
            for place in range(found.shape[1]):
                searches.used[found[index, place]] = True
