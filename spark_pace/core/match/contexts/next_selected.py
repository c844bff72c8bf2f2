"""*next, selected*: the match that the walk finds uses up everything up to its last event."""

from __future__ import annotations

import numpy as np

from spark_pace.core.columns import Ints
from spark_pace.core.match.candidates import Ranges
from spark_pace.core.match.chain import Closed
from spark_pace.core.match.contexts.context import OneOpen, ParameterContext
from spark_pace.core.match.first import walk
from spark_pace.core.match.search.optional_last import behind, last_events
from spark_pace.core.match.search.search import Search
from spark_pace.core.match.stream import Stream
from spark_pace.core.plan.rule import Context


def closed_by_walk(stream: Stream, search: Search, initiators: Ints, end: Ints) -> Closed:
    """The last row of each initiator's match, and its walk; -1 where it has none before row `end`.

    Sources: semantics, section 4; SQL's and Flink's "skip past last".
    """
    matrix = np.full((len(initiators), search.steps), -1, np.int64)
    found, matches = walk(search, Ranges(initiators, initiators, end))
    closes = np.full(len(initiators), -1, np.int64)
    matrix[found], closes[found] = matches, search.lasts(matches)
    following = behind(search.varied(walking=True), matches)
    if following is None:
        return closes, matrix, None
    closes[found] = last_events(search, matches, following)
    ranges = np.zeros((len(initiators), 2), np.int64)
    ranges[found] = following
    return closes, matrix, ranges


NEXT_SELECTED = ParameterContext(
    value=Context("next", "selected"),
    snoop_name=None,
    way=OneOpen(closed_by_walk, None),
    window_may_close=False,
    waits_for_earlier=True,  # only then is it known that no earlier initiator has a match
    why_within=None,
    gathers=False,
)
