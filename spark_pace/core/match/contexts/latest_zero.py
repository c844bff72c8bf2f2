"""*latest, zero*: at every terminator the greatest candidate, compared from the last event back."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from spark_pace.core.columns import Ints
from spark_pace.core.match.contexts.context import Backwards, ParameterContext
from spark_pace.core.match.first import greatest
from spark_pace.core.match.found_matches import Found, within_rows
from spark_pace.core.match.release import settling
from spark_pace.core.match.search.search import Search
from spark_pace.core.match.stream import Stream
from spark_pace.core.match.window import window_start
from spark_pace.core.plan.rule import Context, Pattern


def latest_zero(stream: Stream, pattern: Pattern, search: Search, owned: tuple[int, int]) -> Found:
    """For every terminator in the rows `owned` its greatest candidate.

    Sources: Siddam 2015, section 5.1; Snoop's recent context.
    """
    last = within_rows(search.terminators, owned)
    matrix, latest = greatest(search, last, window_start(stream, last, pattern.within))
    if latest is None:
        return search.found_backwards(matrix, None)
    found = search.found_backwards(matrix, latest[np.searchsorted(last, matrix[:, -1])])
    rows = settling(search, search.initiators, matrix[:, 0], matrix[:, -1], (last, latest))
    return replace(found, settling=rows)


def tail(stream: Stream, search: Search, before: int) -> Ints:
    """The rows before row `before` that a terminator from there on can still reach.

    It is for plain sequences without window. The rows are those of the latest partial candidate that ends at
    each step: at most n(n - 1)/2 rows of each segment.
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
