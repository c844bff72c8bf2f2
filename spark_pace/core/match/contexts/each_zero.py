"""*each, zero*: every candidate from an initiator to the event that closes its selection is a match."""

from __future__ import annotations

import numpy as np

from spark_pace.core.match.candidates import Ranges, candidates
from spark_pace.core.match.completions import completions
from spark_pace.core.match.contexts.context import Forwards, ParameterContext
from spark_pace.core.match.found_matches import Found, stacked, within_rows
from spark_pace.core.match.search.search import Search
from spark_pace.core.match.stream import Stream
from spark_pace.core.match.window import window_end
from spark_pace.core.plan.rule import Context, Pattern
from spark_pace.core.plan.shape import may_differ_behind


def each_zero(stream: Stream, pattern: Pattern, search: Search, owned: tuple[int, int]) -> Found:
    """The matches of the initiators in the rows `owned`: each opens a selection.

    The first event that completes a candidate of the initiator closes the selection; with ``close: window``
    nothing closes it before its window's end.
    Sources: Siddam 2015, section 5 (the default of PACE); Mendes 2013, all-to-all pairs.
    """
    openings = within_rows(search.initiators, owned)
    end = window_end(stream, openings, pattern.within)
    closes = np.full(len(openings), -1, np.int64)
    if pattern.close == "window":
        matrix = stacked(candidates(search, Ranges(openings, openings, end)), search.steps)
    else:
        closes = completions(search, openings, end)
        done = closes >= 0
        if search.simple and search.steps == 2:
            matrix = np.column_stack([openings[done], closes[done]])
            return search.found(openings, closes, np.flatnonzero(done), matrix)
        ranges = Ranges(openings[done], openings[done], closes[done] + 1, closes[done])
        matrix = stacked(candidates(search, ranges), search.steps)
    selection = np.searchsorted(openings, search.firsts(matrix))
    deciding = search.firsts(matrix) if may_differ_behind(pattern) else None  # tells in which order they end
    return search.found(openings, closes, selection, matrix, deciding)


EACH_ZERO = ParameterContext(
    value=Context("each", "zero"),
    snoop_name=None,
    way=Forwards(each_zero, completions, in_turn=False),
    window_may_close=True,
    waits_for_earlier=False,
    why_within=None,
    gathers=False,
)
