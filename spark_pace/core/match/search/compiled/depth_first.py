"""The depth-first search for candidates whose conditions compare two components.

What is kept of it holds the values of LESS, EQUAL, GREATER and NULL_ORDER: see `kept`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from spark_pace.core.columns import NULL_ORDER, Bools, Ints
from spark_pace.core.match.search.comparison import EQUAL, GREATER, LESS
from spark_pace.core.match.search.compiled.compilation import compiled, kept


class Levels(NamedTuple):
    """What may be taken at each of n levels. Level 0 is given; the others' parts stand one behind the other.

    Attributes:
        pools: int64[p], the rows of each level's component; those of equal rank together, each in order.
        groups: int64[], for each level where the rows of each rank begin in `pools`, and where the last ones
            end. Without an equality all rows have the rank 0.
        first_groups: int64[n], where each level begins in `groups`.
        equals: int64[n, 2], the earlier level whose rank is looked up, and the place in `ranks`; -1 for none.
        tests: int64[t, 4], the other comparisons: the earlier level, the places in `ranks` of the earlier and
            of the later side, and what is accepted.
        test_bounds: int64[n + 1], where each level begins and ends in `tests`.
        least: int64[t, blocks], the least later rank of each test in each block of `pools`.
        greatest: int64[t, blocks], the greatest one.
        ranks: int64[c, rows], see `spark_pace.core.match.search.comparison`.
        back: int64[n], the level to go back to where no row has fitted.
        block_bits: a block has 2 to the power of it rows. They are passed over at once where their ranks tell
            that none fits.
    """

    pools: Ints
    groups: Ints
    first_groups: Ints
    equals: Ints
    tests: Ints
    test_bounds: Ints
    least: Ints
    greatest: Ints
    ranks: Ints
    back: Ints
    block_bits: int


class Searches(NamedTuple):
    """Searches to be done one after the other, and how.

    Attributes:
        anchors: int64[m], the row of level 0 of each.
        after: int64[m], level 1 begins behind this row, every further one behind the row of the one before.
        bounds: int64[m, n], for each level the row after the last one that may be taken.
        used: bool[rows], the rows that may not be taken.
        second_thoughts: whether another row is tried at a level from which no candidate was reached.
        shorten: whether the search goes on for a candidate that ends before the one it has found.
        use_up: whether the rows of a candidate that was found become used.
    """

    anchors: Ints
    after: Ints
    bounds: Ints
    used: Bools
    second_thoughts: bool
    shorten: bool
    use_up: bool


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


@compiled
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


@compiled
def _fits(levels: Levels, level: int, taken: Ints, row: int) -> bool:
    """Tell whether the comparisons of `level` hold between the taken rows and this one."""
    for test in range(levels.test_bounds[level], levels.test_bounds[level + 1]):
        left = levels.ranks[levels.tests[test, 1], taken[levels.tests[test, 0]]]
        right = levels.ranks[levels.tests[test, 2], row]
        order = 1 + (left > right) - (left < right)
        if left == NULL_ORDER or right == NULL_ORDER or not (levels.tests[test, 3] >> order) & 1:
            return False
    return True


@compiled
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


@compiled
def _next(levels: Levels, used: Bools, level: int, taken: Ints, span: tuple[int, int]) -> int:
    """The first place in a span of the pools whose row is not used and fits; the span's end for none."""
    place, stop = span
    block = 1 << levels.block_bits
    while place < stop:
        if (place & (block - 1)) == 0 and not _may_fit(levels, level, taken, place >> levels.block_bits):
            place += block
        elif used[levels.pools[place]] or not _fits(levels, level, taken, levels.pools[place]):
            place += 1
        else:
            return place
    return stop


@compiled
def _is_less(one: Ints, other: Ints) -> bool:
    """Tell whether the rows of one candidate, but for that of level 0, are less than those of another."""
    for place in range(1, len(one)):
        if one[place] != other[place]:
            return bool(one[place] < other[place])
    return False


@compiled
def _search(levels: Levels, searches: Searches, index: int, found: Ints, place: int, room: Ints) -> None:
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
        at_place = _next(levels, searches.used, level, taken, (at[level], stop[level]))
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


def depth_first(levels: Levels, searches: Searches) -> Ints:
    """The first candidate of each search, by the row of level 1, of equal ones by that of level 2, and so on.

    With `shorten` it is one that ends first.

    Returns:
        int64[m, n], the rows by levels; -1 where there is no candidate.
    """
    found = np.full((len(searches.anchors), len(levels.back)), -1, np.int64)
    _depth_first(levels, searches, found, np.zeros((4, found.shape[1]), np.int64))
    return found


@kept
def _depth_first(levels: Levels, searches: Searches, found: Ints, room: Ints) -> None:
    """Write what `depth_first` gives into `found`."""
    for index in range(len(found)):
        if searches.used[searches.anchors[index]]:
            continue
        _search(levels, searches, index, found, index, room)
        if searches.use_up and found[index, 0] >= 0:
            for place in range(found.shape[1]):
                searches.used[found[index, place]] = True


def least_of_orders(orders: tuple[Levels, ...], of_order: Bools, searches: Searches) -> tuple[Ints, Ints]:
    """The least candidate of each search over several orders of components, without the used rows.

    Level 0 has the last row of a candidate, the others ascend. Of candidates of the same rows that of the
    first order is the least. The rows of a candidate that was found become used.

    Args:
        orders: the levels of each order.
        of_order: bool[m, orders], whether the row of level 0 of a search may be that of an order.
        searches: what is searched.

    Returns:
        int64[m, n], the rows by levels, -1 where there is no candidate; int64[m], the order of each.
    """
    found = np.full((len(searches.anchors), len(orders[0].back)), -1, np.int64)
    taken_from = np.full(len(found), -1, np.int64)
    _least_of_orders(orders, of_order, searches, found, taken_from, np.zeros((5, found.shape[1]), np.int64))
    return found, taken_from


@kept
def _least_of_orders(
    orders: tuple[Levels, ...], of_order: Bools, searches: Searches, found: Ints, taken_from: Ints, room: Ints
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
            _search(orders[order], searches, index, other, 0, room)
            if other[0, 0] >= 0 and (taken_from[index] < 0 or _is_less(other[0], found[index])):
                taken_from[index] = order
                for place in range(found.shape[1]):
                    found[index, place] = other[0, place]
        if taken_from[index] >= 0:
            for place in range(found.shape[1]):
                searches.used[found[index, place]] = True
