"""*next, zero*: every initiator opens a selection and has at most one match, found by the walk."""

from __future__ import annotations

import numpy as np

from spark_pace.core.columns import Ints
from spark_pace.core.match.candidates import Ranges
from spark_pace.core.match.completions import completions
from spark_pace.core.match.contexts.context import Forwards, ParameterContext
from spark_pace.core.match.first import walk
from spark_pace.core.match.found_matches import Found, within_rows
from spark_pace.core.match.search.search import Search
from spark_pace.core.match.stream import Stream
from spark_pace.core.match.window import window_end
from spark_pace.core.plan.rule import Context, Pattern


def next_zero(stream: Stream, pattern: Pattern, search: Search, owned: tuple[int, int]) -> Found:
    """The matches of the initiators in the rows `owned`: each opens a selection, which its match closes.

    Sources: skip-till-next-match; Flink's ``followedBy`` without skipping.
    """
    openings = within_rows(search.initiators, owned)
    end = window_end(stream, openings, pattern.within)
    selection, matrix = walk(search, Ranges(openings, openings, end))
    closes = np.full(len(openings), -1, np.int64)
    closes[selection] = search.lasts(matrix)
    return search.varied(walking=True).found(openings, closes, selection, matrix)


def closings(search: Search, openings: Ints, end: Ints) -> Ints:
    """The last row of the walk from each opening, before row `end`; -1 where the walk finds no match."""
    if search.techniques.walk.how == "nearest":  # the walk takes the nearest of each step
        return completions(search, openings, end)
    closes = np.full(len(openings), -1, np.int64)
    selection, matrix = walk(search, Ranges(openings, openings, end))
    closes[selection] = search.lasts(matrix)
    return closes


NEXT_ZERO = ParameterContext(
    value=Context("next", "zero"),
    snoop_name=None,
    way=Forwards(next_zero, closings, in_turn=True),
    window_may_close=False,
    waits_for_earlier=False,
    why_within=None,
    gathers=False,
)
