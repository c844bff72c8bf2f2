"""The events of an optional component in last place: the first that come behind a candidate's other events.

They do not decide whether there is a candidate, so no search looks at them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from spark_pace.core.columns import Bools, Ints
from spark_pace.core.match.search.choose import Sets
from spark_pace.core.match.window import window_end
from spark_pace.core.plan.component import Times

if TYPE_CHECKING:
    from spark_pace.core.match.search.between import Between


def times_of(between: Between, component: int) -> Times:
    """How many events the component may have."""
    times = between.pattern.components[component].times
    assert times is not None
    return times


def ends(between: Between, matrix: Ints) -> Ints:
    """int64[m], the row behind the last one that candidates may have, as far as events have come."""
    return window_end(between.stream, matrix[:, 0], between.pattern.within)


def full(between: Between, matrix: Ints) -> Bools:
    """bool[m], which candidates have as many events of the component as it takes."""
    component = between.shape.optional_last
    most = None if component is None else times_of(between, component).most
    if component is None or most is None:
        return np.zeros(len(matrix), np.bool_)
    lo, hi = between.group(component, matrix, capped=True)
    is_full: Bools = hi - lo == most
    return is_full


def last_events(between: Between, matrix: Ints) -> Ints:
    """int64[m], the last row of each candidate, that of the component if it has one."""
    component = between.shape.optional_last
    if component is None:
        return matrix[:, -1]
    lo, hi = between.group(component, matrix, capped=True)
    rows = np.append(between.members(component), -1)  # an empty group may point here, but is not looked at
    return np.where(lo < hi, rows[hi - 1], matrix[:, -1])


def with_events(between: Between, matrix: Ints, sets: Sets) -> Sets:
    """The production sets of candidates with the events of the component, which come last."""
    component = between.shape.optional_last
    if component is None:
        return sets
    offsets, members, roles = sets
    behind, rows = between.events_of(component, matrix, capped=True)
    owner = np.append(np.repeat(np.arange(len(matrix)), np.diff(offsets)), behind)
    order = np.argsort(owner, kind="stable")
    all_roles = np.append(roles, np.full(len(rows), component, np.int8))
    sizes = np.bincount(owner, minlength=len(matrix))
    return np.append(0, np.cumsum(sizes)), np.append(members, rows)[order], all_roles[order]
