"""Selection policy *each*: all candidates that end where the selection closes."""

from __future__ import annotations

import numpy as np

from spark_pace.core.columns import Ints
from spark_pace.core.match.candidates import Search, candidates, expand
from spark_pace.core.match.completions import completions
from spark_pace.core.match.found import Found, found_of, stacked, within_rows
from spark_pace.core.match.stream import Stream
from spark_pace.core.plan.rule import Pattern


def each_zero(stream: Stream, pattern: Pattern, search: Search, owned: tuple[int, int]) -> Found:
    """Every initiator in `owned` opens a selection; its first completion closes it.

    With ``close: window`` nothing closes it before its window's end.
    Sources: Siddam 2015, section 5 (the default of PACE); Mendes 2013, all-to-all pairs.
    """
    openings = within_rows(search.members[0], owned)
    end = stream.window_end(openings, pattern.within)
    closes = np.full(len(openings), -1, np.int64)
    if pattern.close == "window":
        matrix = stacked(candidates(search, openings, end), search.steps)
    else:
        closes = completions(search, openings, end)
        done = np.flatnonzero(closes >= 0)
        matrix = stacked(candidates(search, openings[done], closes[done] + 1, closes[done]), search.steps)
    return found_of(openings, closes, np.searchsorted(openings, matrix[:, 0]), matrix)


def inside(search: Search, openings: Ints, closes: Ints) -> tuple[Ints, Ints]:
    """All candidates inside closed spans that do not overlap, ending where the span closes.

    Args:
        search: the pattern over a stream.
        openings: int64[s], first row of each span, ascending.
        closes: int64[s], last row of each span.

    Returns:
        selection: int64[m], the span of each candidate; matrix: int64[m, n].
    """
    initiators = search.members[0]
    lo = np.searchsorted(initiators, openings)
    hi = np.searchsorted(initiators, closes, "right")
    owner, index = expand(lo, hi)
    ends = closes[owner]
    matrix = stacked(candidates(search, initiators[index], ends + 1, ends), search.steps)
    return np.searchsorted(openings, matrix[:, 0], "right") - 1, matrix


def each_selected(search: Search, openings: Ints, closes: Ints) -> Found:
    """All candidates of each closed span.

    Sources: Siddam 2015, section 5.2; Snoop's continuous context (two steps).
    """
    selection, matrix = inside(search, openings, closes)
    return found_of(openings, closes, selection, matrix)
