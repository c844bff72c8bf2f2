"""*earliest, zero*: at every terminator the least candidate, compared from the first event on."""

from __future__ import annotations

from spark_pace.core.match.contexts.context import Backwards, ParameterContext
from spark_pace.core.match.first import least
from spark_pace.core.match.found_matches import Found, within_rows
from spark_pace.core.match.search.search import Search
from spark_pace.core.match.stream import Stream
from spark_pace.core.match.window import window_start
from spark_pace.core.plan.rule import Context, Pattern


def earliest_zero(stream: Stream, pattern: Pattern, search: Search, owned: tuple[int, int]) -> Found:
    """For every terminator in the rows `owned` its least candidate."""
    last = within_rows(search.terminators, owned)
    matrix = least(search, last, window_start(stream, last, pattern.within))
    return search.found_backwards(matrix, None)


EARLIEST_ZERO = ParameterContext(
    value=Context("earliest", "zero"),
    snoop_name=None,
    way=Backwards(earliest_zero, None),
    window_may_close=False,
    waits_for_earlier=False,
    why_within="every initiator would be kept for ever",
    gathers=False,
)
