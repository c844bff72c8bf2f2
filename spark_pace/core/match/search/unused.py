"""The loop over terminators of *earliest, selected*: run as it stands for few events, compiled for many."""

from __future__ import annotations

import numpy as np

from spark_pace.core.columns import Bools, Ints


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
    steps, matches = len(bounds) - 1, 0
    used, following = np.zeros(rows, np.bool_), np.arange(1, len(pools) + 1)
    found = np.zeros((len(starts), steps), np.int64)
    for number in range(len(starts)):
        terminator = pools[bounds[steps - 1] + number]
        row, level = starts[number] - 1, 0
        while not used[terminator] and row < terminator and level < steps - 1:
            low, stop = bounds[level], bounds[level + 1]
            first = place = low + np.searchsorted(pools[low:stop], row, "right")
            while place < stop and used[pools[place]]:
                place = following[place]
            while first < place:  # the next search passes over what is used at once
                following[first], first = place, following[first]
            row = pools[place] if place < stop else terminator
            found[matches, level] = row
            level += 1
        if not used[terminator] and row < terminator:
            found[matches, steps - 1] = terminator
            used[found[matches]] = True
            matches += 1
    return found[:matches]


def first_unused(candidates: Ints, used: Bools) -> Ints:
    """Take candidates in order, but none with a used event; each that is taken uses up its events.

    Args:
        candidates: int64[m, n], the rows of each candidate.
        used: bool[rows], which rows are used; changed in place.

    Returns:
        int64[k, n], the candidates that are taken.
    """
    taken, number = np.zeros(len(candidates), np.int64), 0
    for place in range(len(candidates)):
        free = True
        for row in candidates[place]:
            free = free and not used[row]
        if free:
            used[candidates[place]] = True
            taken[number] = place
            number += 1
    return candidates[taken[:number]]
