"""Which of some production sets is the least or the greatest."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from spark_pace.core.columns import Bools, Ints
from spark_pace.core.ranges import expand
from spark_pace.core.ranks import segments_of

# m production sets. offsets: int64[m + 1], set i has the events offsets[i]:offsets[i + 1]; members: int64[k],
# the rows of the events, ascending in each set; roles: int8[k], the components that they stand for
Sets: TypeAlias = tuple[Ints, Ints, npt.NDArray[np.int8]]


def best(sets: Sets, owner: Ints, *, backwards: bool) -> Ints:
    """The best production set of each owner.

    In each round the sets of an owner are compared in pairs, and the better one of each pair goes on.

    Args:
        sets: m production sets.
        owner: int64[m], the number of each set's owner.
        backwards: whether the best is the greatest, compared from the last event back; else it is the least,
            compared from the first event on. See semantics, sections 1 and 4.

    Returns:
        int64[k], the index of one set for each owner, in the order of the owners.
    """
    left = np.argsort(owner, kind="stable")
    while True:
        starts = segments_of(owner[left])
        if len(starts) == len(left):
            return left
        lengths = np.diff(np.append(starts, len(left)))
        place = np.arange(len(left)) - np.repeat(starts, lengths)
        first = np.flatnonzero(place % 2 == 0)
        paired = place[first] + 1 < np.repeat(lengths, lengths)[first]
        one, other = left[first], left[np.minimum(first + 1, len(left) - 1)]
        keeps = ~paired
        keeps[paired] = _is_better(sets, one[paired], other[paired], backwards=backwards)
        left = np.where(keeps, one, other)


def _is_better(sets: Sets, one: Ints, other: Ints, *, backwards: bool) -> Bools:
    offsets, members, roles = sets
    order = _order(offsets, members, one, other, backwards=backwards)
    equal = np.flatnonzero(order == 0)
    order[equal] = _order(offsets, roles, one[equal], other[equal], backwards=backwards)
    return order > 0 if backwards else order < 0


def _order(offsets: Ints, values: npt.NDArray[Any], one: Ints, other: Ints, *, backwards: bool) -> Ints:
    """int64[p]: -1, 0 or 1 where set `one` is less than, equal to or greater than `other`, by `values`."""
    sizes = offsets[one + 1] - offsets[one], offsets[other + 1] - offsets[other]
    common = np.minimum(*sizes)
    pair, place = expand(np.zeros(len(one), np.int64), common)
    if backwards:
        left, right = offsets[one + 1][pair] - 1 - place, offsets[other + 1][pair] - 1 - place
    else:
        left, right = offsets[one][pair] + place, offsets[other][pair] + place
    order = np.sign(sizes[0] - sizes[1])
    differ = np.flatnonzero(values[left] != values[right])
    pairs, at = np.unique(pair[differ], return_index=True)
    differ = differ[at]
    order[pairs] = np.where(values[left[differ]] > values[right[differ]], 1, -1)
    return order
