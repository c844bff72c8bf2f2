"""*all, selected*: one match gathers every event of the selection that matches a component."""

from __future__ import annotations

import numpy as np

from spark_pace.core.columns import Ints
from spark_pace.core.match.chain import closed_by_completion
from spark_pace.core.match.contexts.context import OneOpen, ParameterContext
from spark_pace.core.match.found_matches import Found
from spark_pace.core.match.stream import Stream
from spark_pace.core.plan.rule import Context, Pattern
from spark_pace.core.plan.shape import shape_of
from spark_pace.core.ranges import expand


def all_selected(stream: Stream, pattern: Pattern, openings: Ints, closes: Ints) -> Found:
    """One match for each closed selection: its events, each as the first declared component it matches.

    Events that match no component, or negated ones only, are left out.

    Sources: Snoop's cumulative context (two steps); Siddam 2015, section 2.5.
    """
    first_role = _first_component(stream, pattern)
    counts = np.append(0, np.cumsum(first_role >= 0))
    _, rows = expand(openings, closes + 1)
    members = rows[first_role[rows] >= 0]
    sizes = counts[closes + 1] - counts[openings]
    offsets = np.append(0, np.cumsum(sizes))
    deciding = openings if shape_of(pattern).trailing else None
    return Found(openings, closes, np.arange(len(openings)), offsets, members, first_role[members], deciding)


def _first_component(stream: Stream, pattern: Pattern) -> np.ndarray[tuple[int], np.dtype[np.int8]]:
    """int8[n], the first declared component that each row matches, negated ones aside; -1 if it is none."""
    role = np.full(stream.rows, -1, np.int8)
    for bit, component in reversed(list(enumerate(pattern.components))):
        if not component.negated:
            role[stream.matching(bit)] = bit
    return role


ALL_SELECTED = ParameterContext(
    value=Context("all", "selected"),
    snoop_name="cumulative",
    way=OneOpen(closed_by_completion, all_selected),
    window_may_close=False,
    waits_for_earlier=False,
    why_within="a selection could gather events for ever",
    gathers=True,
)
