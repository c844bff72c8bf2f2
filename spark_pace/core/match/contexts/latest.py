"""Selection policy *latest*: the candidate whose positions, compared from the last back, are greatest."""

from __future__ import annotations

import numpy as np

from spark_pace.core.columns import Ints
from spark_pace.core.match.candidates import Search
from spark_pace.core.match.contexts.each import inside
from spark_pace.core.match.contexts.terminators import ending_in, found_at_terminators
from spark_pace.core.match.found import Found, found_of, within_rows
from spark_pace.core.match.stream import Stream
from spark_pace.core.plan.rule import Pattern


def latest_zero(stream: Stream, pattern: Pattern, search: Search, owned: tuple[int, int]) -> Found:
    """At every terminator in `owned` its greatest candidate; nothing is used up.

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
    return matrix[matrix[:, 0] >= stream.window_start(last, pattern.within)]


def greatest(matrix: Ints) -> Ints:
    """For each last row the greatest candidate, compared from the last row back to the first."""
    order = np.lexsort(matrix.T)
    ordered = matrix[order]
    last_of_run = np.append(np.diff(ordered[:, -1]) != 0, True)[: len(ordered)]
    return ordered[last_of_run]  # type: ignore[no-any-return]


def latest_selected(search: Search, openings: Ints, closes: Ints) -> Found:
    """The greatest candidate of each closed span.

    Sources: Siddam 2015, section 5.3.
    """
    _, matrix = inside(search, openings, closes)
    best = greatest(matrix)
    return found_of(openings, closes, np.searchsorted(openings, best[:, 0], "right") - 1, best)


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
