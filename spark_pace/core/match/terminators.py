"""Matches that are found at terminators, from there back: *latest, zero* and *earliest, zero*."""

from __future__ import annotations

import numpy as np

from spark_pace.core.columns import Ints
from spark_pace.core.match.candidates import Search, candidates
from spark_pace.core.match.found import Found, found_of, stacked
from spark_pace.core.match.stream import Stream
from spark_pace.core.match.window import window_end
from spark_pace.core.plan.rule import Pattern


def ending_in(stream: Stream, pattern: Pattern, search: Search, owned: tuple[int, int]) -> Ints:
    """int64[m, n], all candidates whose last row lies in the range `owned`."""
    openings = search.members[0]
    ends = np.minimum(window_end(stream, openings, pattern.within), owned[1])
    pieces = candidates(search, openings, ends)
    return stacked((p[p[:, -1] >= owned[0]] for p in pieces), search.steps)


def found_at_terminators(search: Search, matrix: Ints) -> Found:
    """These matches, in selections that every initiator opens and nothing closes before its window's end."""
    openings = search.members[0]
    return found_of(
        openings, np.full(len(openings), -1, np.int64), np.searchsorted(openings, matrix[:, 0]), matrix
    )


def greatest(matrix: Ints) -> Ints:
    """For each last row the greatest candidate, compared from the last row back to the first."""
    order = np.lexsort(matrix.T)
    ordered = matrix[order]
    last_of_run = np.append(np.diff(ordered[:, -1]) != 0, True)[: len(ordered)]
    return ordered[last_of_run]  # type: ignore[no-any-return]
