"""*earliest, zero*: at every terminator the least candidate, compared from the first event on."""

from __future__ import annotations

import numpy as np

from spark_pace.core.columns import Ints
from spark_pace.core.match.candidates import Search
from spark_pace.core.match.contexts.context import Backwards, ParameterContext
from spark_pace.core.match.found import Found, within_rows
from spark_pace.core.match.stream import Stream
from spark_pace.core.match.terminators import ending_in, found_at_terminators
from spark_pace.core.match.window import window_start
from spark_pace.core.plan.rule import Context, Pattern


def earliest_zero(stream: Stream, pattern: Pattern, search: Search, owned: tuple[int, int]) -> Found:
    """At every terminator in `owned` its least candidate."""
    if search.plain:
        return found_at_terminators(search, _forwards(stream, pattern, search, owned))
    return found_at_terminators(search, _least(ending_in(stream, pattern, search, owned)))


def _forwards(stream: Stream, pattern: Pattern, search: Search, owned: tuple[int, int]) -> Ints:
    """Without conditions over several components: from the window's start on, always the nearest."""
    last = within_rows(search.members[-1], owned)
    columns = [window_start(stream, last, pattern.within) - 1]
    for level in range(search.steps - 1):
        columns.append(search.following(level, columns[-1]))
    matrix = np.column_stack([*columns[1:], last])
    if search.steps == 1:
        return matrix
    return matrix[matrix[:, -2] < last]


def _least(matrix: Ints) -> Ints:
    """For each last row the least candidate, compared from the first row to the last."""
    keys = [*matrix.T[-2::-1], matrix[:, -1]] if matrix.shape[1] > 1 else [matrix[:, 0]]
    ordered = matrix[np.lexsort(keys)]
    first_of_run = np.append(True, np.diff(ordered[:, -1]) != 0)[: len(ordered)]
    return ordered[first_of_run]  # type: ignore[no-any-return]


EARLIEST_ZERO = ParameterContext(
    value=Context("earliest", "zero"),
    snoop_name=None,
    way=Backwards(earliest_zero, None),
    window_may_close=False,
    waits_for_earlier=False,
    why_within="every initiator would be kept for ever",
    gathers=False,
)
