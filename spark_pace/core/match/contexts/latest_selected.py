"""*latest, selected*: of the candidates that end with the event that closes the selection, the greatest."""

from __future__ import annotations

import numpy as np

from spark_pace.core.columns import Ints
from spark_pace.core.match.chain import closed_by_completion
from spark_pace.core.match.contexts.context import OneOpen, ParameterContext
from spark_pace.core.match.first import greatest
from spark_pace.core.match.found_matches import Found
from spark_pace.core.match.search.any_order import search_of
from spark_pace.core.match.stream import Stream
from spark_pace.core.plan.rule import Context, Pattern


def latest_selected(stream: Stream, pattern: Pattern, openings: Ints, closes: Ints) -> Found:
    """In each closed selection the greatest candidate that ends with its closing event.

    Sources: Siddam 2015, section 5.3.
    """
    search = search_of(stream, pattern)
    best, _ = greatest(search, closes, openings)
    return search.found(openings, closes, np.searchsorted(openings, search.firsts(best), "right") - 1, best)


LATEST_SELECTED = ParameterContext(
    value=Context("latest", "selected"),
    snoop_name=None,
    way=OneOpen(closed_by_completion, latest_selected),
    window_may_close=False,
    waits_for_earlier=False,
    why_within=None,
    gathers=False,
)
