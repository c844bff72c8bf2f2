"""Conjunctions without conditions over several components: the nearest events that stand for all of them.

Where no event matches two components, these are the nearest event of each. Else an event is taken if, with
those taken before, it can be given a component of its own. It cannot if those taken fill all the components
that it matches: if so many of them match no other components. Events that can be given components of their
own form a matroid, so the nearest one that can be taken is always right.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt

from spark_pace import ways
from spark_pace.core.columns import Ints, has_bit
from spark_pace.core.match.search.any_order import AnyOrder
from spark_pace.core.plan.shape import initiator_bits

_SIZES = np.array([bits.bit_count() for bits in range(1 << 8)])

Masks = npt.NDArray[np.uint16]


def nearest_sets(search: AnyOrder, given: Ints, beyond: Ints, *, backwards: bool) -> Ints:
    """Each of m rows with the nearest other rows, so that together they stand for all components.

    Args:
        search: a conjunction without conditions over several components.
        given: int64[m].
        beyond: int64[m], the nearest rows from here on are taken, this one not; the given one is no other.
        backwards: whether they are taken from there back, not on.

    Returns:
        int64[m, n], the row of each component. Of several ways to give the rows to components it is the least
        one, from the first row on; backwards the greatest, from the last row back. Where there is no row for
        a component that is `stream.rows`, backwards -1, for this component or for all of them.
    """
    if search.exclusive:
        take = search.preceding if backwards else search.following
        masks = search.stream.mask[given]
        columns = (np.where(has_bit(masks, k), given, take(k, beyond)) for k in range(search.steps))
        return np.column_stack(list(columns))
    size = max(1, ways.UNITED_ROWS >> search.steps)
    sets = [
        _taken(search, given[i : i + size], beyond[i : i + size], backwards=backwards)
        for i in range(0, len(given), size)
    ]
    rows = np.concatenate(sets) if sets else np.zeros((0, search.steps), np.int64)
    return _by_components(search, np.sort(rows, axis=1), backwards=backwards)


def _taken(search: AnyOrder, given: Ints, beyond: Ints, *, backwards: bool) -> Ints:
    """int64[m, n], the rows that are taken, the given one first."""
    stream, bits = search.stream, np.uint16(initiator_bits(search.pattern))
    none = -1 if backwards else stream.rows
    masks = np.append(stream.mask & bits, np.uint16(0))  # the last one is that of no row, too
    members: dict[int, Ints] = {}
    unions: list[tuple[int, Masks]] = [(0, np.zeros(len(given), np.uint16))]  # of each subset of those taken
    filled = np.zeros(len(given), np.uint16)
    rows, at = [given], beyond
    for _ in range(1, search.steps):
        unions += [(size + 1, union | masks[rows[-1]]) for size, union in unions]
        for size, union in unions[len(unions) // 2 :]:
            filled |= np.where(_SIZES[union] == size, union, np.uint16(0))
        free, following = ~filled & bits, np.full(len(given), none)
        for one in np.unique(free):
            here = np.flatnonzero(free == one)
            pool = members.setdefault(int(one), np.flatnonzero(masks & one))
            following[here] = _next(pool, at[here], none, backwards=backwards)
        rows.append(following)
        at = following
    return np.column_stack(rows)


def _next(pool: Ints, at: Ints, none: int, *, backwards: bool) -> Ints:
    """The nearest row of the pool before each of some rows, or behind it; `none` where there is none."""
    if backwards:
        return np.append(none, pool)[np.searchsorted(pool, at, "left")]
    return np.append(pool, none)[np.searchsorted(pool, at, "right")]


def _by_components(search: AnyOrder, rows: Ints, *, backwards: bool) -> Ints:
    """Rows, ascending in each set, as the rows of components; where one of them is none, all are."""
    stream, steps = search.stream, search.steps
    none = -1 if backwards else stream.rows
    found = np.full(rows.shape, none)
    whole = np.flatnonzero((rows[:, 0] >= 0) & (rows[:, -1] < stream.rows) & (np.diff(rows) > 0).all(axis=1))
    masks = (stream.mask & np.uint16(initiator_bits(search.pattern)))[rows[whole]].astype(np.uint64)
    code = np.bitwise_or.reduce(masks << (np.arange(steps, dtype=np.uint64) * np.uint64(8)), axis=1)
    codes, kind = np.unique(code, return_inverse=True)
    roles = [_roles([int(one) >> 8 * k & 0xFF for k in range(steps)], backwards=backwards) for one in codes]
    table = np.array(roles, np.int64).reshape(-1, steps)
    found[whole[:, None], table[kind]] = rows[whole]
    return found


def _roles(masks: list[int], *, backwards: bool) -> list[int]:
    """The components of a set of rows with these masks; see `nearest_sets`."""
    places = range(len(masks))[::-1] if backwards else range(len(masks))

    @cache
    def given(place: int, free: int) -> tuple[int, ...] | None:
        """The components of the rows from the place on, of those that are free; None if that cannot be."""
        if place == len(masks):
            return ()
        for role in places:
            if masks[places[place]] & free & 1 << role:
                rest = given(place + 1, free & ~(1 << role))
                if rest is not None:
                    return (role, *rest)
        return None

    found = given(0, (1 << len(masks)) - 1)
    assert found is not None, "rows that are taken can be given components of their own"
    return list(found[::-1] if backwards else found)
