"""Compiled code finds the event that conditions choose for an optional component in last place."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from spark_pace.core.match.candidates import Ranges, candidates
from spark_pace.core.match.compiled_search.sequence_search import following
from spark_pace.core.match.search.limits import ends, step
from spark_pace.core.match.search.search import Search
from spark_pace.core.match.search.technique import follows_compiled
from spark_pace.core.match.stream import Stream, window_end
from spark_pace.core.plan.rule import Within
from spark_pace.core.tables import SPENT
from tests.unit.core.match.test_compiled_turns import pattern_of, stream_of

# as there; the optional component is l
PATTERNS = """
a l:0..1 | a.x < first(l.x)
a l:0..1 | a.z >= max(l.z)
a b l:0..1 | first(l.x) = b.x and a.z < max(l.z)
a b l:0..1 | first(l.x) + a.x = 4
a b l:0..1 | a.x < b.x and first(l.x) + a.x < b.x
a !n b l:0..1 | first(l.x) <> b.x
a g:0..4 b l:0..1 | sum(g.x) < first(l.x)
"""


@pytest.mark.parametrize("overlapping", [False, True])
@pytest.mark.parametrize("told", PATTERNS.strip().splitlines())
def test_compiled_code_takes_the_event_that_a_step_over_columns_takes(told: str, overlapping: bool) -> None:
    pattern, taken = pattern_of(told, context="each, zero"), 0
    for seed in range(24):
        within = Within(events=4 + seed % 9) if seed % 2 else Within(time_us=3 + seed % 9)
        drawn = stream_of(seed, len(pattern.components), overlapping=overlapping)
        stream = Stream(drawn.events.drop_columns([SPENT]), drawn.starts)
        search = Search(stream, replace(pattern, within=within))
        assert follows_compiled(search.follower.pattern, walking=False)
        starts = search.initiators
        ranges = Ranges(starts, starts, window_end(search.stream, starts, within))
        for matrix in candidates(search, ranges):
            until = ends(search.between, matrix)
            rows = following(search.follower, matrix, until)
            index, expected = step(search.follower, search.steps, matrix, matrix[:, -1], until)
            assert np.flatnonzero(rows >= 0).tolist() == index.tolist(), seed
            assert rows[index].tolist() == expected.tolist(), seed
            taken += len(index)
    assert taken > 10
