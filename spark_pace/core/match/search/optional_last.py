"""The events of an optional component in last place: the first that come behind a candidate's other events.

They do not decide whether there is a candidate, so no search for candidates looks at them. Where conditions
of `where` say which event the component takes, it is sought as the next step of each candidate.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from spark_pace.core.columns import Ints
from spark_pace.core.expr import Aggregate, Column, Expr, transform
from spark_pace.core.match.search.choose import Sets
from spark_pace.core.match.search.step import step
from spark_pace.core.match.search.technique import follows_compiled
from spark_pace.core.match.window import window_end
from spark_pace.core.plan.component import Times
from spark_pace.core.plan.rule import Pattern
from spark_pace.core.ranges import expand

if TYPE_CHECKING:
    from spark_pace.core.match.search.between import Between
    from spark_pace.core.match.search.search import Search

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
