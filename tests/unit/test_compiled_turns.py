"""Compiled code finds the matches of *earliest, selected* that the steps over whole columns find."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from spark_pace import ways
from spark_pace.core.columns import MASK, SEQ, SPENT, SPENT_BITS, TIME, UNUSED, USED, Ints
from spark_pace.core.expr import Call, Column, Expr, Literal
from spark_pace.core.match.contexts.in_turn import in_turn
from spark_pace.core.match.found_matches import Found
from spark_pace.core.match.search.search import Search
from spark_pace.core.match.stream import Stream
from spark_pace.core.plan.rule import Component, Conjunct, Context, Contiguity, Pattern, Times, Within

TRUE = Literal(True, "BOOLEAN")


def one(name: str) -> Component:
    return Component(name, TRUE)


def group(name: str, least: int, most: int | None) -> Component:
    return Component(name, TRUE, times=Times(least, most))


def no(name: str) -> Component:
    return Component(name, TRUE, negated=True)


def compared(operator: str, left: tuple[int, str], right: tuple[int, str]) -> Conjunct:
    sides: list[Expr] = [Column(component=name, attribute="x", type="BIGINT") for _, name in (left, right)]
    return Conjunct(Call(operator, tuple(sides), "BOOLEAN"), (left[0], right[0]))


A, B, C = one("a"), one("b"), one("c")
RISES = (compared("<", (0, "a"), (2, "b")),)
PATTERNS: dict[str, tuple[tuple[Component, ...], tuple[Conjunct, ...], Contiguity]] = {
    "negation": ((A, no("n"), B), (), "relaxed"),
    "negation with conditions": (
        (A, no("n"), B),
        (*RISES, compared(">", (1, "n"), (0, "a")), compared("<=", (1, "n"), (2, "b"))),
        "relaxed",
    ),
    "negation behind": ((A, B, no("n")), (compared("=", (0, "a"), (2, "n")),), "relaxed"),
    "one event and none behind": ((A, no("n")), (), "relaxed"),
    "group": ((A, group("g", 1, 3), B), RISES, "relaxed"),
    "optional group between negations": ((A, no("n"), group("g", 0, 2), no("m"), B), (), "relaxed"),
    "groups at both ends": ((group("g", 2, None), A, group("h", 1, 2)), (), "relaxed"),
    "one group": ((group("g", 2, 3),), (), "relaxed"),
    "group before one of four": ((A, group("g", 0, None), B, C), RISES, "relaxed"),
    "strict": ((A, group("g", 1, 4), B), RISES, "strict"),
    "strict, without a group": ((A, B, C), (compared("<>", (0, "a"), (1, "b")),), "strict"),
}


def stream_of(seed: int, components: int, *, overlapping: bool) -> Stream:
    """Some segments of random events; of those of the first one some were used up before."""
    generator = np.random.default_rng(seed)
    rows = int(generator.integers(5, 60))
    mask = np.uint16(1) << generator.integers(0, components, rows).astype(np.uint16)
    if overlapping:
        mask |= np.uint16(1) << generator.integers(0, components, rows).astype(np.uint16)
    starts = np.unique(np.append(0, generator.integers(0, rows, 2)))
    seq = np.arange(rows) - np.repeat(starts, np.diff(np.append(starts, rows)))
    spent = np.full(rows, UNUSED)
    earlier = np.flatnonzero(generator.random(rows) < 0.1)
    spent[earlier] = USED | (np.minimum(seq[earlier] + 3, seq.max()) << SPENT_BITS)
    columns = {TIME: np.cumsum(generator.integers(0, 3, rows)), SEQ: seq, MASK: mask, SPENT: spent}
    return Stream(pa.table({**columns, "x": generator.integers(0, 4, rows)}), starts)


def told(found: Found) -> list[list[int] | None]:
    deciding: Ints | None = found.deciding
    lists = (found.closes, found.selection, found.offsets, found.members, found.roles, deciding)
    return [None if numbers is None else numbers.tolist() for numbers in lists]


@pytest.mark.parametrize("overlapping", [False, True])
@pytest.mark.parametrize("name", PATTERNS)
def test_compiled_turns_equal_steps(name: str, overlapping: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    components, where, contiguity = PATTERNS[name]
    matches = 0
    for seed in range(24):
        within = Within(events=4 + seed % 9) if seed % 2 else Within(time_us=3 + seed % 9)
        context = Context("earliest", "selected")
        pattern = Pattern(components, where, within, context, contiguity=contiguity)
        stream = stream_of(seed, len(components), overlapping=overlapping)
        search = Search(stream, pattern)
        assert search.comparable
        monkeypatch.setattr(ways, "FEW_COMBINATIONS", 1 << 62)
        expected = in_turn(search, search.initiators)
        monkeypatch.setattr(ways, "FEW_COMBINATIONS", -1)
        assert told(in_turn(search, search.initiators)) == told(expected), seed
        matches += expected.matches
    assert matches > 10
