"""Why an event is not among those of an optional component in last place, behind a whole candidate."""

from __future__ import annotations

import numpy as np

from spark_pace.core.match.search.optional_last import for_one_event
from spark_pace.core.match.search.search import Search
from spark_pace.core.plan.shape import runs
from spark_pace.reasons.failure_reasons import (
    Failure,
    false_condition,
    not_joined_to,
    not_strict,
    too_late,
)
from spark_pace.reasons.stretch import Stretch, events_behind


def not_behind(stretch: Stretch, search: Search, rows: list[int], event: int) -> Failure | None:
    """Why a row that matches the component does not belong to it; None if it does.

    Args:
        stretch: the events that candidates are made of.
        search: the search of the stretch.
        rows: the rows of all anchors of a candidate, which stand before the event.
        event: the row.
    """
    component = search.between.shape.optional_last
    own = events_behind(search, rows, walking=stretch.walks)
    if component is None or event in own:
        return None
    late = too_late(stretch, rows[0], event)
    if late is not None:
        return late
    before, one = own[own < event], stretch.pattern.components[component]
    if one.times is not None and len(before) == one.times.most:
        text = f"{one.name} {one.times}"
        return Failure("group", f"{text}: there were {one.times.most} before", text)
    ends = search.between.ending.get(component, np.zeros(0, np.int64))
    ends = ends[(ends > rows[-1]) & (ends <= event)]
    if len(ends):
        by = stretch.member(int(ends[0]))
        return Failure("group", f"{one.name}: {by} ended it", one.name, by=(by,))
    last = int(before[-1]) if len(before) else rows[-1]
    if runs(search.pattern, component) and event > last + 1:
        return not_strict(stretch, range(last + 1, event))
    if search.pattern.taking:
        follower = Search(search.stream, for_one_event(search.pattern))
        return false_condition(stretch, follower, [*rows, event])
    return not_joined_to(stretch, search, component, before, event)
