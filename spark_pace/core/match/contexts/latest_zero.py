"""*latest, zero*: at every terminator the greatest candidate, compared from the last event back."""

from __future__ import annotations

import numpy as np

from spark_pace.core.columns import Ints
from spark_pace.core.match.candidates import Search
from spark_pace.core.match.contexts.context import Backwards, ParameterContext
from spark_pace.core.match.found import Found, within_rows
from spark_pace.core.match.stream import Stream
from spark_pace.core.match.terminators import ending_in, found_at_terminators, greatest
from spark_pace.core.match.window import window_start
from spark_pace.core.plan.rule import Context, Pattern


def latest_zero(stream: Stream, pattern: Pattern, search: Search, owned: tuple[int, int]) -> Found:
    """At every terminator in `owned` its greatest candidate.

    Sources: Siddam 2015, section 5.1; Snoop's recent context.
    """
    if search.plain:
        return found_at_terminators(search, _backwards(stream, pattern, search, owned))
    return found_at_terminators(search, greatest(ending_in(stream, pattern, search, owned)))


def _backwards(stream: Stream, pattern: Pattern, search: Search, owned: tuple[int, int]) -> Ints:
    """Without conditions over several components: from the terminator back, always the nearest."""
    last = within_rows(search.members[-1], owned)
    columns = [last]
    for level in range(search.steps - 2, -1, -1):
        columns.append(search.preceding(level, columns[-1]))
    matrix = np.column_stack(columns[::-1])
    return matrix[matrix[:, 0] >= window_start(stream, last, pattern.within)]


def tail(stream: Stream, search: Search, before: int) -> Ints:
    """The rows below `before` that a later terminator can still reach, for a plain sequence without window.

    For each step the latest partial candidate that ends there: at most n(n - 1)/2 rows of each segment.
    """
    last = np.minimum(np.append(stream.starts[1:], stream.rows), before)
    last = last[stream.starts < before]
    first = stream.starts[: len(last)]
    rows = [np.zeros(0, np.int64)]
    for top in range(search.steps - 1):
        reach = last
        for level in range(top, -1, -1):
            reach = search.preceding(level, reach)
            reach = np.where(reach >= first, reach, -1)
            rows.append(reach[reach >= 0])
    return np.unique(np.concatenate(rows))


LATEST_ZERO = ParameterContext(
    value=Context("latest", "zero"),
    snoop_name="recent",
    way=Backwards(latest_zero, tail),
    window_may_close=False,
    waits_for_earlier=False,
    why_within=None,
    gathers=False,
)
