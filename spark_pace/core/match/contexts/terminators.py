"""What *latest* and *earliest* with consumption *zero* share: matches are found at terminators, not from initiators."""

from __future__ import annotations

import numpy as np

from spark_pace.core.columns import Ints
from spark_pace.core.match.candidates import Search, candidates
from spark_pace.core.match.found import Found, found_of, stacked
from spark_pace.core.match.stream import Stream
from spark_pace.core.plan.rule import Pattern


def ending_in(stream: Stream, pattern: Pattern, search: Search, owned: tuple[int, int]) -> Ints:
    """All candidates whose last event lies in the range of rows `owned`, as int64[m, n]."""
    openings = search.members[0]
    ends = np.minimum(stream.window_end(openings, pattern.within), owned[1])
    pieces = candidates(search, openings, ends)
    return stacked((p[p[:, -1] >= owned[0]] for p in pieces), search.steps)


def found_at_terminators(search: Search, matrix: Ints) -> Found:
    """Matches of selections that every initiator opens and nothing closes."""
    openings = search.members[0]
    return found_of(
        openings, np.full(len(openings), -1, np.int64), np.searchsorted(openings, matrix[:, 0]), matrix
    )
