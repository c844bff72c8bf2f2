"""Between which rows an anchor may stand, as far as what stands before it says so.

The anchor with which an optional group begins that directly follows another one may be an event of several
components: where the group is empty, it is the next anchor too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from spark_pace.core.columns import Bools, Ints

if TYPE_CHECKING:
    from spark_pace.core.match.search.between import Between
    from spark_pace.core.match.search.search import Search


def rows_at(between: Between, level: int) -> Ints:
    """The rows that match a component of which the anchor of a level may be an event, ascending."""
    rows = [between.stream.matching(component) for component in between.shape.components_at(level)]
    return rows[0] if len(rows) == 1 else np.unique(np.concatenate(rows))


def may_begin(between: Between, level: int, rows: Ints, *, capped: bool) -> Bools:
    """bool[m], whether the group of the anchor of a level, which is optional, begins with these rows.

    An event of a group behind it begins that one, but in a walk, which has found that it does not.
    """
    own, *behind = between.shape.components_at(level)
    begins = np.diff(between.before[own])[rows] > 0
    for component in behind:
        if component in between.before and not capped:
            begins &= np.diff(between.before[component])[rows] == 0
    return begins


def may_go_on(search: Search, level: int, matrix: Ints) -> Bools:
    """bool[m], whether walks may go on with their last row, which fits as the anchor of a level.

    If an optional group begins there, the row is of that group, or can go to a component behind it.
    """
    goes, own, last = np.ones(len(matrix), np.bool_), search.between.shape.anchors[level], matrix[:, -1]
    if len(search.between.shape.components_at(level)) > 1:
        goes = np.diff(search.between.before[own])[last] > 0
        others = np.flatnonzero(~goes)
        further = np.column_stack([matrix[others], last[others]])
        goes[others] = search.passes(level + 1, further, looked_up=False)
    return goes


def narrowed(
    between: Between, level: int, left: Ints, bounds: tuple[Ints, Ints], *, capped: bool
) -> tuple[Ints, Ints]:
    """Narrow the rows that the anchor of a level may have; `fits` and `allowed` decide about those left.

    Args:
        between: what stands between the anchors.
        level: the level.
        left: int64[m], the rows of the anchor before.
        bounds: int64[m], the row before the first one, and the row behind the last one.
        capped: whether groups are those of the walk of *next*.
    """
    after, end = bounds
    end = np.minimum(end, _limit(between, level, left, capped=capped))
    gap = between.shape.gaps[level - 1]
    if gap.handed and not capped:
        begins = begins_behind(between, level, left)
        end = np.minimum(end, begins + 1)
        if not gap.skipped and not stands_before_begin(between, level):
            after = np.maximum(after, begins - 1)
    return after, end


def stands_before_begin(between: Between, level: int) -> bool:
    """True if an anchor may stand before its group begins: if it may be an event of no group."""
    behind = between.shape.components_at(level)[-1]
    return between.pattern.components[behind].times is None


def begins_behind(between: Between, level: int, left: Ints) -> Ints:
    """int64[m], the row with which a group begins that directly follows another one.

    It is that of the first event that matches, once the group before has its least number; `stream.rows` for
    none. If the group is optional, one behind it may begin in its place.

    Args:
        between: what stands between the anchors.
        level: the level of the first event of the group.
        left: int64[m], the rows of the anchor before that.
    """
    gap, last, count = between.shape.gaps[level - 1], left, between.stream.rows
    if gap.times.least > 0:
        assert gap.group is not None
        lo, hi = between.ranged(gap, left, np.full(len(left), count))
        rows, place = np.append(between.members(gap.group), count), lo + gap.times.least - 1
        last = np.where(place < hi, rows[np.minimum(place, len(rows) - 1)], count)
    behind, begins = np.minimum(last + 1, count), np.full(len(left), count)
    for component in between.shape.components_at(level):
        if component in between.before:
            begins = np.minimum(begins, _row_of(between, component, between.before[component][behind]))
    return begins


def _limit(between: Between, level: int, left: Ints, *, capped: bool) -> Ints:
    """int64[m], the row after the last one that may be the anchor of `level` behind the rows `left`."""
    gap, limit = between.shape.gaps[level - 1], np.full(len(left), between.stream.rows)
    if gap.group is None:
        for one in between.forbidding:
            if one.gap == level - 1 and not one.conditions:
                number = between.before[one.component][left + 1]
                limit = np.minimum(limit, _row_of(between, one.component, number))
    elif gap.times.most is not None and not capped and gap.group not in between.further:
        most = between.before[gap.group][left + (not gap.from_left)] + gap.times.most
        limit = _row_of(between, gap.group, most)
        if gap.group in between.ends:
            limit = np.where(limit < between.ended(gap.group, left), limit, between.stream.rows)
    if gap.to_right and gap.group in between.ends:
        limit = np.minimum(limit, between.ended(gap.group, left))
    if gap.closed:
        behind = left + 1
        if gap.group is not None:
            strangers = between.strangers(gap.group)
            behind = strangers[behind - between.before[gap.group][behind]]
        limit = np.minimum(limit, behind)
    return limit + 1


def _row_of(between: Between, component: int, number: Ints) -> Ints:
    """The rows of a component's events with these numbers, from 0 on; `stream.rows` if it has too few."""
    rows = np.append(between.rows_of[component], between.stream.rows)
    return rows[np.minimum(number, len(rows) - 1)]
