"""Compiled code finds the matches of *earliest, selected* that the steps over whole columns find."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from spark_pace.core.match.contexts.earliest_selected import earliest_selected, in_turn, in_turn_by_columns
from spark_pace.core.match.search.any_order import search_of
from spark_pace.core.match.search.search import Search
from spark_pace.core.match.stream import Found, Stream
from spark_pace.core.plan.rule import Pattern, Within
from spark_pace.core.tables import MASK, SEQ, SPENT, SPENT_BITS, TIME, UNUSED, USED, Ints
from tests.support.loaded_rules import loaded

STREAMS = [(10, 2), pytest.param(24, 10, marks=pytest.mark.long)]  # and matches, at the least
# the components: a letter stands for one event, n and m are negated, others are groups; then the conditions
PATTERNS = """
a !n b
a !n b | a.x < b.x and n.x > a.x and n.x <= b.x
a b !n | a.x = n.x
a !n
a g:1..3 b | a.x < b.x
a !n g:0..2 !m b
g:2+ a h:1..2
g:2..3
a g:0+ b c | a.x < b.x
a g:1..4 b | a.x < b.x | strict
a !n b | a.x + b.x < 4 and n.z - b.z < a.z
a !n g:1..4 b | n.x > max(g.x)
a g:1..3 b !n | n.z < avg(g.z)
a g:0..4 b | first(g.x) <= b.x + 1
a g:0..4 b | first(g.z) <= b.z + 0.5
a g:0..4 b | last(g.x) <= b.x + 1
a g:0..4 b | last(g.z) <= b.z + 0.5
a g:0..4 b | sum(g.x) <= b.x + 1
a g:0..4 b | sum(g.z) <= b.z + 0.5
a g:0..4 b | min(g.x) <= b.x + 1
a g:0..4 b | min(g.z) <= b.z + 0.5
a g:0..4 b | max(g.x) <= b.x + 1
a g:0..4 b | max(g.z) <= b.z + 0.5
g:1..3 b | avg(g.x) < b.x
a g:1+ | avg(g.z) > a.z
a g:0+ b | count(g) <= b.x
a g:1..4 b | sum(g.x) < 5 | strict
a g:1+:x>=last(g.x) b
a g:1..3:x<>first(g.x):strict b
a g:0..4:x>last(g.x) b || strict
g:1+:x<=max(g.x) !n b
a !n g:1..3:z>=avg(g.z)
a g:1+:5>sum(g.x) !n b
g:2..4:count(g)<3
g:0..2 a b | a.x <= b.x
g:0..1 a b || strict
g:0+ !n b
a b c | a.x <> b.x | strict
"""


def pattern_of(told: str, order: str = "sequence", context: str = "earliest, selected") -> Pattern:
    """The pattern of a line of `PATTERNS`, without a window."""
    components, where, contiguity = (one.strip() for one in (told + "||").split("|")[:3])
    text = f"pattern: {{{order}: [{', '.join(map(component_of, components.split()))}]}}\n"
    text += f"context: {context}\nwithin: 9 events\n"
    text += f"where: {where}\n" * bool(where) + f"contiguity: {contiguity}" * bool(contiguity)
    pattern = loaded(text).pattern
    assert pattern is not None
    return pattern


def component_of(told: str) -> str:
    name, times, when, follows = (told.lstrip("!") + ":::").split(":")[:4]
    component = f'{{name: {name}, when: "{when or "true"}"'
    component += ", not: true" * told.startswith("!") + f", times: {times}" * bool(times)
    return component + f", follows: {follows}" * bool(follows) + "}"


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
    x = pa.array(generator.integers(0, 4, rows), mask=generator.random(rows) < 0.05)
    z = generator.choice([0.25, 0.5, 1.5, -0.0, 0.0, np.nan, np.inf], rows)
    z = pa.array(z, mask=generator.random(rows) < 0.05)
    return Stream(pa.table({**columns, "x": x, "z": z}), starts)


def told(found: Found) -> list[list[int] | None]:
    deciding: Ints | None = found.deciding
    lists = (found.closes, found.selection, found.offsets, found.members, found.roles, deciding)
    return [None if numbers is None else numbers.tolist() for numbers in lists]


@pytest.mark.parametrize(("streams", "least"), STREAMS)
@pytest.mark.parametrize("told_pattern", PATTERNS.strip().splitlines())
def test_compiled_turns_equal_steps(told_pattern: str, streams: int, least: int) -> None:
    pattern, matches = pattern_of(told_pattern), 0
    for seed in range(streams):
        within = Within(events=4 + seed % 9) if seed % 2 else Within(time_us=3 + seed % 9)
        stream = stream_of(seed, len(pattern.components), overlapping=seed // 2 % 2 > 0)
        search = Search(stream, replace(pattern, within=within))
        assert search.techniques.unused.compiled
        expected = in_turn_by_columns(search, search.initiators)
        assert told(in_turn(search, search.initiators)) == told(expected), seed
        matches += expected.matches
    assert matches > least


@pytest.mark.parametrize(("streams", "least"), STREAMS)
@pytest.mark.parametrize("overlapping", [False, True])
@pytest.mark.parametrize("where", ["", "| a.x <> b.x"], ids=["plain", "with a condition"])
@pytest.mark.parametrize("components", ["a b", "a b c", "a b c d"])
def test_conjunctions_equal_steps(
    components: str, where: str, overlapping: bool, streams: int, least: int
) -> None:
    matches = 0
    for seed in range(streams):
        within = Within(events=6 + seed % 9) if seed % 2 else Within(time_us=6 + seed % 9)
        pattern = replace(pattern_of(f"{components} {where}", "conjunction"), within=within)
        drawn = stream_of(seed, len(pattern.components), overlapping=overlapping)
        stream = Stream(drawn.events.drop_columns([SPENT]), drawn.starts)
        search = search_of(stream, pattern)
        assert search.techniques.unused.compiled
        expected = in_turn_by_columns(search, search.initiators)
        assert told(earliest_selected(stream, pattern, search)) == told(expected), seed
        matches += expected.matches
    assert matches > least
