"""The ways of *earliest, selected* give the same matches wherever they apply."""

from __future__ import annotations

from collections import deque
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from spark_pace.core.expr import Literal
from spark_pace.core.match.contexts import earliest_selected
from spark_pace.core.match.contexts.earliest_selected import (
    by_filtering,
    in_order,
    production_sets,
    queues,
)
from spark_pace.core.match.search.search import Search
from spark_pace.core.match.stream import Stream
from spark_pace.core.plan.rule import Component, Context, Pattern, Strategy, Within
from spark_pace.core.tables import MASK, SEQ, TIME

MANY = 20_000
WAYS = {"queues": "queues", "production_sets": "production_sets", "merger_filter": "by_filtering"}


def random_stream(seed: int, steps: int, *, overlapping: bool) -> Stream:
    generator = np.random.default_rng(seed)
    rows = int(generator.integers(1, 40))
    mask = np.uint16(1) << generator.integers(0, steps, rows).astype(np.uint16)
    if overlapping:
        mask |= np.uint16(1) << generator.integers(0, steps, rows).astype(np.uint16)
    starts = np.unique(np.append(0, generator.integers(0, rows, 2)))
    time = np.cumsum(generator.integers(0, 3, rows))
    return Stream(pa.table({TIME: time, SEQ: np.arange(rows), MASK: mask}), starts)


def pattern_of(steps: int, within: Within | None) -> Pattern:
    components = tuple(Component(f"c{k}", Literal(True, "BOOLEAN")) for k in range(steps))
    return Pattern(components, (), within, Context("earliest", "selected"))


@pytest.mark.parametrize("steps", [1, 2, 3, 4])
def test_queues_equal_filtering_where_predicates_exclude_each_other(steps: int) -> None:
    for seed in range(200):
        stream = random_stream(seed, steps, overlapping=False)
        pattern = pattern_of(steps, None)
        search = Search(stream, pattern)
        expected = by_filtering(stream, pattern, search).tolist()
        assert sorted(queues(stream, None, search).tolist()) == sorted(expected)


def test_queues_equal_filtering_for_two_steps_with_a_window() -> None:
    matches = 0
    for seed in range(300):
        stream = random_stream(seed, 2, overlapping=False)
        pattern = pattern_of(2, Within(time_us=seed % 7))
        search = Search(stream, pattern)
        expected = by_filtering(stream, pattern, search).tolist()
        assert queues(stream, pattern.within, search).tolist() == expected
        matches += len(expected)
    assert matches > 1000


@pytest.mark.parametrize("within", [None, Within(time_us=4), Within(events=5)])
@pytest.mark.parametrize("steps", [1, 2, 3])
def test_greedy_equals_filtering_for_every_plain_sequence(steps: int, within: Within | None) -> None:
    matches = 0
    for seed in range(200):
        stream = random_stream(seed, steps, overlapping=True)
        pattern = pattern_of(steps, within)
        search = Search(stream, pattern)
        expected = by_filtering(stream, pattern, search).tolist()
        assert in_order(stream, pattern, search).tolist() == expected
        matches += len(expected)
    assert matches > 300


@pytest.mark.parametrize(
    ("steps", "within"), [(1, None), (2, None), (3, None), (4, None), (2, Within(events=5))]
)
@pytest.mark.parametrize("overlapping", [False, True])
def test_production_sets_equal_filtering(steps: int, within: Within | None, overlapping: bool) -> None:
    for seed in range(100):
        stream = random_stream(seed, steps, overlapping=overlapping)
        pattern = pattern_of(steps, within)
        search = Search(stream, pattern)
        expected = by_filtering(stream, pattern, search).tolist()
        assert production_sets(stream, within, search)[0].tolist() == expected


@pytest.mark.parametrize("strategy", ["queues", "production_sets", "merger_filter"])
def test_a_rule_gets_the_strategy_that_it_asks_for(
    strategy: Strategy, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = random_stream(7, 2, overlapping=False)
    pattern = replace(pattern_of(2, None), strategy=strategy)
    taken: list[str] = []
    for name, way in WAYS.items():
        kernel = getattr(earliest_selected, way)
        monkeypatch.setattr(
            earliest_selected,
            way,
            lambda *arguments, name=name, kernel=kernel: (taken.append(name), kernel(*arguments))[1],
        )
    found = earliest_selected.earliest_selected(stream, pattern, Search(stream, pattern))
    assert taken == [strategy]
    assert found.matches > 3


def test_the_merger_filter_finds_the_same_among_many_candidates() -> None:
    mask = np.uint16(1) << np.random.default_rng(2).integers(0, 6, MANY).astype(np.uint16)
    events = pa.table({TIME: np.arange(MANY), SEQ: np.arange(MANY), MASK: mask & np.uint16(7)})
    stream, pattern = Stream(events, np.array([0])), pattern_of(3, Within(time_us=60))
    search = Search(stream, pattern)
    found = by_filtering(stream, pattern, search)
    assert len(found) > MANY / 10
    assert found.tolist() == in_order(stream, pattern, search).tolist()


def test_compiled_code_finds_the_same_among_many_events() -> None:
    mask = np.uint16(1) << np.random.default_rng(1).integers(0, 4, 4 * MANY).astype(np.uint16)
    events = pa.table({TIME: np.arange(4 * MANY), SEQ: np.arange(4 * MANY), MASK: mask & np.uint16(7)})
    stream, pattern = Stream(events, np.array([0, MANY])), pattern_of(3, None)
    search = Search(stream, pattern)
    found, waiting = production_sets(stream, None, search)
    assert len(found) > MANY / 2
    assert sorted(in_order(stream, pattern, search).tolist()) == sorted(found.tolist())
    assert sorted(queues(stream, None, search).tolist()) == sorted(found.tolist())
    first, second = left_waiting(stream.mask[:MANY].tolist(), 3), left_waiting(stream.mask[MANY:].tolist(), 3)
    assert sorted(waiting.tolist()) == sorted([*first, *(MANY + row for row in second)])


def left_waiting(mask: list[int], steps: int) -> list[int]:
    """The rows of the sets that wait, where no event matches two components: a queue for each step."""
    queues: list[deque[list[int]]] = [deque() for _ in range(steps)]
    for row, bits in enumerate(mask):
        step = bits.bit_length() - 1
        if step == 0:
            queues[0].append([row])
        elif step > 0 and queues[step - 1]:
            queues[step].append([*queues[step - 1].popleft(), row])
    return [row for queue in queues[:-1] for rows in queue for row in rows]
