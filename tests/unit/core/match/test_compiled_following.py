"""Compiled code finds the event that conditions choose for an optional component in last place."""

from __future__ import annotations

import numpy as np
import pytest

from spark_pace.core.expr import Aggregate, Call, Expr
from spark_pace.core.match.candidates import Ranges, candidates
from spark_pace.core.match.compiled_search.sequence_search import following
from spark_pace.core.match.search.limits import ends, step
from spark_pace.core.match.search.search import Search
from spark_pace.core.match.search.technique import follows_compiled
from spark_pace.core.match.stream import Stream, window_end
from spark_pace.core.plan.rule import Component, Conjunct, Context, Pattern, Within
from spark_pace.core.tables import SPENT
from tests.unit.core.match.test_compiled_turns import (
    RISES,
    A,
    B,
    attribute,
    compared,
    group,
    no,
    number,
    over,
    said,
    stream_of,
)

FIRST = Aggregate("first", "l", "x", "BIGINT")
EXACT = Aggregate("max", "l", "v", "DOUBLE")


def plus(left: Expr, right: Expr) -> Expr:
    return Call("+", (left, right), "BIGINT")


# the components before the optional one, the conditions of these, and those that name it
PATTERNS: dict[str, tuple[tuple[Component, ...], tuple[Conjunct, ...], tuple[Conjunct, ...]]] = {
    "an order": ((A,), (), (said("<", attribute("a"), FIRST, (0, 1)),)),
    "an order of numbers with fractions": ((A,), (), (said(">=", attribute("a", "v"), EXACT, (0, 1)),)),
    "an equality and an order": (
        (A, B),
        (),
        (said("=", FIRST, attribute("b"), (1, 2)), said("<", attribute("a", "v"), EXACT, (0, 2))),
    ),
    "arithmetic": ((A, B), RISES[:0], (said("=", plus(FIRST, attribute("a")), number(4), (0, 2)),)),
    "behind other conditions": (
        (A, B),
        (compared("<", (0, "a"), (1, "b")),),
        (said("<", plus(FIRST, attribute("a")), attribute("b"), (0, 1, 2)),),
    ),
    "behind a negation": ((A, no("n"), B), (), (said("<>", FIRST, attribute("b"), (2, 3)),)),
    "a sum of a group": ((A, group("g", 0, 4), B), (), (said("<", over("sum"), FIRST, (1, 3)),)),
}


@pytest.mark.parametrize("overlapping", [False, True])
@pytest.mark.parametrize("name", PATTERNS)
def test_compiled_code_takes_the_event_that_a_step_over_columns_takes(name: str, overlapping: bool) -> None:
    before, where, taking = PATTERNS[name]
    components, taken = (*before, group("l", 0, 1)), 0
    for seed in range(24):
        within = Within(events=4 + seed % 9) if seed % 2 else Within(time_us=3 + seed % 9)
        pattern = Pattern(components, where, within, Context("each", "zero"), taking=taking)
        drawn = stream_of(seed, len(components), overlapping=overlapping)
        search = Search(Stream(drawn.events.drop_columns([SPENT]), drawn.starts), pattern)
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
