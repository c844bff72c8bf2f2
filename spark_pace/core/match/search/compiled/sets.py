"""Lists of production sets, and matches that use up their events, where no condition compares components."""

from __future__ import annotations

from functools import partial

import numpy as np

from spark_pace.core.columns import Ints
from spark_pace.core.match.search import unused
from spark_pace.core.match.search.compiled.compilation import compiled, kept
from spark_pace.core.match.search.search_arguments import Searches


def least_of_types(pools: Ints, begins: Ints, roles: Ints, searches: Searches) -> Ints:
    """The least candidate of each search where any row of each component will do, without the used rows.

    Args:
        pools: int64[], the rows of each component one behind the other; no row is of two components.
        begins: int64[n + 1], where those of each component begin, and where the last ones end.
        roles: int64[m], the component of the row of level 0 of each search, which has the last row.
        searches: what is searched; `after` does not descend.

    Returns:
        int64[m, n], the rows by components; -1 where there is no candidate. The rows of a candidate that was
        found become used.
    """
    found = np.full((len(searches.anchors), len(begins) - 1), -1, np.int64)
    _least_of_types(pools, begins, roles, searches, found, begins[:-1].copy())
    return found


@kept
def _least_of_types(
    pools: Ints, begins: Ints, roles: Ints, searches: Searches, found: Ints, at: Ints
) -> None:
    """Write what `least_of_types` gives into `found`; `at` begins where the components do."""
    used = searches.used
    for index in range(len(found)):
        last, after, whole = searches.anchors[index], searches.after[index], True
        for role in range(len(at)):
            if role == roles[index]:
                continue
            while at[role] < begins[role + 1] and (pools[at[role]] <= after or used[pools[at[role]]]):
                at[role] += 1
            whole = whole and at[role] < begins[role + 1] and pools[at[role]] < last
        if whole and not used[last]:
            for role in range(len(at)):
                found[index, role] = last if role == roles[index] else pools[at[role]]
                used[found[index, role]] = True


@compiled
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


@partial(kept, makes_arrays=True)
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
    complete = queues[steps, : tails[steps]]
    waiting = sets[:begun][sizes[:begun] < steps].ravel()
    return sets[complete], waiting[waiting >= 0]


earliest_unused = kept(unused.earliest_unused, makes_arrays=True)
first_unused = kept(unused.first_unused, makes_arrays=True)
