"""*each, selected*: every candidate in the selection that ends with the closing event is a match."""

from __future__ import annotations

from spark_pace.core.columns import Ints
from spark_pace.core.match.candidates import Ranges, candidates
from spark_pace.core.match.chain import closed_by_completion
from spark_pace.core.match.contexts.context import OneOpen, ParameterContext
from spark_pace.core.match.found_matches import Found, stacked
from spark_pace.core.match.search.any_order import search_of
from spark_pace.core.match.stream import Stream, rows_before
from spark_pace.core.plan.rule import Context, Pattern
from spark_pace.core.ranges import expand


def each_selected(stream: Stream, pattern: Pattern, openings: Ints, closes: Ints) -> Found:
    """All candidates in each closed selection that end with its closing event.

    Sources: Siddam 2015, section 5.2; Snoop's continuous context (two steps).
    """
    search = search_of(stream, pattern)
    initiators = search.initiators
    owner, index = expand(search.initiators_before(openings), search.initiators_before(closes + 1))
    ends = closes[owner]
    ranges = Ranges(initiators[index], initiators[index], ends + 1, ends)
    matrix = stacked(candidates(search, ranges), search.steps)
    selection = rows_before(openings, search.firsts(matrix) + 1, stream.rows) - 1
    return search.found(openings, closes, selection, matrix)


EACH_SELECTED = ParameterContext(
    value=Context("each", "selected"),
    snoop_name="continuous",
    way=OneOpen(closed_by_completion, each_selected),
    window_may_close=False,
    waits_for_earlier=False,
    why_within=None,
    gathers=False,
)
