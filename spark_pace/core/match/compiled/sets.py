"""Lists of production sets, and matches that use up their events, where no condition compares components."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from spark_pace.core.match.compiled.places import place_of
from spark_pace.core.tables import Bools, Ints
from spark_pace.machine_code.kernel import Kernel, part


@part
def _served(mask: int, heads: Ints, tails: Ints, sets: Ints, queues: Ints, first: int) -> int:
    """How many events the earliest set has that can take an event with this mask; 0 where there is none."""
    taker, opened = 0, -1
    for size in range(1, len(heads)):
        while heads[size] < tails[size] and sets[queues[size, heads[size]], 0] < first:
            heads[size] += 1  # its window is over
        if (mask >> size) & 1 and heads[size] < tails[size]:
            opening = sets[queues[size, heads[size]], 0]
            if opened < 0 or opening < opened:
                taker, opened = size, opening
    return taker


def production_sets(rows: Ints, masks: Ints, first: Ints, steps: int, most: int) -> tuple[Ints, Ints]:
    """Every event joins the earliest set that waits for it, or begins one: Siddam 2015, section 6.2.

    Args:
        rows: int64[n], ascending.
        masks: int64[n], bit k tells whether the row matches component k.
        first: int64[n], never descending, the first row that a set may begin with to take this one.
        steps: the number of components.
        most: the number of rows that match the first component.

    Returns:
        int64[m, steps], the rows of the complete sets, in the order of their last ones; int64[w], the rows of
        the other sets, whose windows may be over.
    """
    sets, sizes = np.full((most, steps), -1), np.zeros(most, np.int64)
    queues = np.zeros((steps + 1, most), np.int64)  # sets of each size, in the order in which they began
    heads, tails = np.zeros(steps, np.int64), np.zeros(steps + 1, np.int64)
    _production_sets(rows, masks, first, Sets(sets, sizes, queues, heads, tails))
    complete = queues[steps, : tails[steps]]
    waiting = sets[sizes < steps].ravel()
    return sets.take(complete, axis=0), waiting[waiting >= 0]


class Sets(NamedTuple):
    """Room for production sets; `production_sets` says what is where."""

    sets: Ints
    sizes: Ints
    queues: Ints
    heads: Ints
    tails: Ints


@Kernel
def _production_sets(rows: Ints, masks: Ints, first: Ints, room: Sets) -> None:
    """Write what `production_sets` gives into the room for it."""
    sets, sizes, queues, heads, tails = room.sets, room.sizes, room.queues, room.heads, room.tails
    begun = 0
    for index in range(len(rows)):
        size = _served(masks[index], heads, tails, sets, queues, first[index])
        if size > 0:
            taker = queues[size, heads[size]]
            heads[size] += 1
        elif masks[index] & 1:
            taker, begun = begun, begun + 1
        else:
            continue
        sets[taker, size], sizes[taker] = rows[index], size + 1
        queues[size + 1, tails[size + 1]] = taker
        tails[size + 1] += 1


def earliest_unused(pools: Ints, bounds: Ints, starts: Ints, rows: int) -> Ints:
    """The matches of a plain sequence: each terminator in turn takes, step by step, the first unused event.

    Args:
        pools: int64[], the rows of each component, ascending, one component after the other.
        bounds: int64[n + 1], where each component begins and ends in `pools`.
        starts: int64[t], for each row of the last component the first row that its match may begin with.
        rows: how many rows there are.

    Returns:
        int64[m, n], the rows of the matches.
    """
    found, used = np.full((len(starts), len(bounds) - 1), -1, np.int64), np.zeros(rows, np.bool_)
    _earliest_unused(pools, bounds, starts, Unused(used, np.arange(1, len(pools) + 1)), found)
    return found[found[:, -1] >= 0]


class Unused(NamedTuple):
    """What is used up.

    Attributes:
        used: bool[rows].
        following: int64[p], for each place in the pools a place behind it, before which all are used.
    """

    used: Bools
    following: Ints


@Kernel
def _earliest_unused(pools: Ints, bounds: Ints, starts: Ints, unused: Unused, found: Ints) -> None:
    """Write the match of each terminator into `found`, whose last column stays -1 where there is none."""
    used, following, last = unused.used, unused.following, len(bounds) - 2
    for number in range(len(starts)):
        terminator = pools[bounds[last] + number]
        row, level = starts[number] - 1, 0
        while not used[terminator] and row < terminator and level < last:
            low, stop = bounds[level], bounds[level + 1]
            first = place = place_of(pools, low, stop, row + 1)
            while place < stop and used[pools[place]]:
                place = following[place]
            while first < place:  # the next search passes over what is used at once
                first_following = following[first]
                following[first] = place
                first = first_following
            row = pools[place] if place < stop else terminator
            found[number, level] = row
            level += 1
        if not used[terminator] and row < terminator:
            found[number, last] = terminator
            for level in range(last + 1):
                used[found[number, level]] = True


def first_unused(candidates: Ints, used: Bools) -> Ints:
    """Take candidates in order, but none with a used event; each that is taken uses up its events.

    Args:
        candidates: int64[m, n], the rows of each candidate.
        used: bool[rows], which rows are used; changed in place.

    Returns:
        int64[k, n], the candidates that are taken.
    """
    taken = np.zeros(len(candidates), np.bool_)
    _first_unused(candidates, used, taken)
    return candidates[taken]


@Kernel
def _first_unused(candidates: Ints, used: Bools, taken: Bools) -> None:
    """Write which candidates are taken."""
    for place in range(len(candidates)):
        free = True
        for column in range(candidates.shape[1]):
            free = free and not used[candidates[place, column]]
        if free:
            taken[place] = True
            for column in range(candidates.shape[1]):
                used[candidates[place, column]] = True
