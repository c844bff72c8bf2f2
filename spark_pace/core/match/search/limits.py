"""Between which rows an anchor may stand, and steps of a search that take the first row that fits.

The events of an optional component in last place are the first that come behind a candidate's other events.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from spark_pace import ways
from spark_pace.core.expr import Aggregate, Column, Expr, transform
from spark_pace.core.match.search.comparison import Sets
from spark_pace.core.match.search.technique import follows_compiled
from spark_pace.core.match.stream import window_end
from spark_pace.core.plan.rule import Pattern, Times
from spark_pace.core.ranks import expand, pieces, segments_of
from spark_pace.core.tables import Bools, Ints

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


def step(search: Search, level: int, matrix: Ints, after: Ints, end: Ints) -> tuple[Ints, Ints]:
    """Which candidates go on at `level`, and with which row: the first that fits behind the rows `after`.

    Ever larger blocks are tested until one does. For the arguments see `Search.reach`.

    Returns:
        int64[k], the candidates, ascending; and int64[k], their rows.
    """
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
            fits = fits[segments_of(owner[fits])]  # the first of each candidate
            taken[waiting[piece][owner[fits]]] = grown[fits, -1]
        lo[waiting] = stop
        waiting = waiting[(taken[waiting] < 0) & (stop < hi[waiting])]
        block *= 4
    kept = np.flatnonzero(taken >= 0)
    return kept, taken[kept]


_OWN_VALUE = ("first", "last", "min", "max")  # of one event they are its attribute


def times_of(between: Between, component: int) -> Times:
    """How many events the component may have."""
    times = between.pattern.components[component].times
    assert times is not None
    return times


def ends(between: Between, matrix: Ints) -> Ints:
    """int64[m], the row behind the last one that candidates may have, as far as events have come."""
    return window_end(between.stream, matrix[:, 0], between.pattern.within)


def for_one_event(pattern: Pattern) -> Pattern:
    """The pattern whose last component, an optional one, stands for one event; see `Pattern.taking`."""
    asked = asked_of_one_event(pattern)
    return replace(asked, where=(*pattern.where, *asked.where))


def asked_of_one_event(pattern: Pattern) -> Pattern:
    """What `for_one_event` gives, with the conditions alone that name the last component."""
    last = pattern.components[-1]
    one = replace(last, times=None, until=None, further=None)

    def of_event(node: Expr) -> Expr | None:
        """The attribute of the one event for an aggregate that is it."""
        if not isinstance(node, Aggregate) or node.component != last.name or node.function not in _OWN_VALUE:
            return None
        return Column(last.name, node.attribute or "", node.type)

    taking = tuple(replace(each, expr=transform(each.expr, of_event)) for each in pattern.taking)
    return replace(pattern, components=(*pattern.components[:-1], one), where=taking, taking=())


def behind(search: Search, matrix: Ints) -> Ints | None:
    """int64[m, 2], the events of the component behind each of m candidates: a range of `rows_of`.

    None for a pattern without such a component.
    """
    between, component = search.between, search.between.shape.optional_last
    if component is None:
        return None
    if not search.pattern.taking:
        return np.column_stack(between.group(component, matrix, capped=True))
    index, rows = _sought(search, matrix)
    ranges = np.zeros((len(matrix), 2), np.int64)
    ranges[index] = np.searchsorted(rows_of(search), rows)[:, None] + (0, 1)
    return ranges


def rows_of(search: Search) -> Ints:
    """int64[], the rows of which `behind` gives ranges."""
    between, component = search.between, search.between.shape.optional_last
    assert component is not None
    return between.rows_of[component] if search.pattern.taking else between.members(component)


def _sought(search: Search, matrix: Ints) -> tuple[Ints, Ints]:
    """Which candidates take an event of the component, and which; see `step`."""
    from spark_pace.core.match.compiled_search.sequence_search import following  # which needs `Search` itself

    level, follower, until = search.steps, search.follower, ends(search.between, matrix)
    component = len(search.pattern.components) - 1
    if component in search.between.ends:
        until = np.minimum(until, search.between.ended(component, matrix[:, -1]))
    looked_up = follower.levels[level].looked_up
    if looked_up or not follows_compiled(follower.pattern, walking=search.walking):
        return step(follower.varied(walking=search.walking), level, matrix, matrix[:, -1], until)
    rows = following(follower, matrix, until)
    index = np.flatnonzero(rows >= 0)
    return index, rows[index]


def deciding_rows(search: Search, firsts: Ints, ranges: Ints | None) -> Ints:
    """int64[m], the row whose window's end decides each candidate, where something may follow it.

    -1 where as many events of the component are there as it takes. `firsts` are the candidates' first rows,
    `ranges`, here and below, is what `behind` gives of them.
    """
    component = search.between.shape.optional_last
    if component is None or ranges is None:
        return firsts
    most = times_of(search.between, component).most
    return np.where(ranges[:, 1] - ranges[:, 0] == (-1 if most is None else most), -1, firsts)


def last_events(search: Search, matrix: Ints, ranges: Ints) -> Ints:
    """int64[m], the last row of each candidate, that of the component if it has one."""
    rows = np.append(rows_of(search), -1)  # an empty group may point here, but is not looked at
    return np.where(ranges[:, 0] < ranges[:, 1], rows[ranges[:, 1] - 1], matrix[:, -1])


def with_events(search: Search, ranges: Ints | None, sets: Sets) -> Sets:
    """The production sets of candidates with the events of the component, which come last."""
    component = search.between.shape.optional_last
    if component is None or ranges is None:
        return sets
    offsets, members, roles = sets
    owner_behind, index = expand(ranges[:, 0], ranges[:, 1])
    owner = np.append(np.repeat(np.arange(len(ranges)), np.diff(offsets)), owner_behind)
    order = np.argsort(owner, kind="stable")
    all_members = np.append(members, rows_of(search)[index])
    all_roles = np.append(roles, np.full(len(index), component, np.int8))
    sizes = np.bincount(owner, minlength=len(ranges))
    return np.append(0, np.cumsum(sizes)), all_members[order], all_roles[order]
