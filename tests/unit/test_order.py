"""Stream order, the frontier and late events."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from spark_pace.core.columns import NO_FRONTIER, OFFSET, SOURCE, TIME, UNKNOWN_TIME, numbers
from spark_pace.core.order import Advance, Order, OrderSpec, Progress, stream_order

TIES = (SOURCE, OFFSET)
TWO = OrderSpec(delay_us=2)


def events(*rows: tuple[int, str | None, int]) -> pa.Table:
    times, sources, offsets = zip(*rows, strict=True)
    return pa.table({
        TIME: pa.array(times, pa.int64()),
        SOURCE: pa.array(sources, pa.string()).dictionary_encode(),
        OFFSET: pa.array(offsets, pa.int64()),
    })  # fmt: skip


def times(table: pa.Table | None) -> list[int]:
    return [] if table is None else numbers(table, TIME).tolist()


def test_ties_are_broken_by_source_as_text_then_by_offset_as_a_number() -> None:
    table = events((5, "b", 1), (5, "a", 10), (5, "a", 9), (1, "z", 0), (5, None, 3))
    assert stream_order(table, TIES).tolist() == [3, 4, 2, 1, 0]


def test_given_tie_columns_come_before_source_and_offset() -> None:
    table = events((5, "a", 0), (5, "a", 1), (5, "a", 2)).append_column("rank", pa.array([2, None, 1]))
    assert stream_order(table, ("rank", *TIES)).tolist() == [1, 2, 0]


def test_arrival_order_does_not_matter() -> None:
    generator = np.random.default_rng(3)
    rows = [(int(t), str(s), o) for o, (t, s) in enumerate(generator.integers(0, 4, (60, 2)))]
    expected = events(*rows).take(stream_order(events(*rows), TIES))
    for _ in range(5):
        shuffled = events(*[rows[i] for i in generator.permutation(60)])
        ordered = shuffled.take(stream_order(shuffled, TIES))
        assert ordered.to_pylist() == expected.to_pylist()


def test_events_below_the_frontier_are_released_and_the_others_wait() -> None:
    order = Order()
    first = order.advance([events((1, "s", 0), (7, "s", 1), (5, "s", 2))], Progress(7), TWO, TIES)
    assert (times(first.released), first.late, order.frontier_us) == ([1], None, 5)
    second = order.advance([], Progress(8), TWO, TIES)
    assert times(second.released) == [5]
    assert times(order.pending) == [7]


def test_late_is_what_lies_below_the_frontier_that_held_when_the_batch_began() -> None:
    order = Order()
    order.advance([events((10, "s", 0))], Progress(10), TWO, TIES)
    second = order.advance([events((7, "s", 1), (8, "s", 2), (50, "s", 3))], Progress(50), TWO, TIES)
    assert times(second.late) == [7]
    assert times(second.released) == [8, 10]


def test_the_frontier_never_moves_back() -> None:
    order = Order()
    order.advance([events((100, "s", 0))], Progress(100), OrderSpec(10), TIES)
    order.advance([events((95, "s", 1))], Progress(95), OrderSpec(10), TIES)
    assert order.frontier_us == 90


def test_no_event_means_no_frontier() -> None:
    order = Order()
    assert order.advance([], Progress(None), OrderSpec(), TIES) == Advance(None, None)
    assert order.frontier_us == NO_FRONTIER


@pytest.mark.parametrize("delay", [0, 10**9])
def test_the_end_of_the_input_releases_everything(delay: int) -> None:
    order = Order()
    order.advance([events((3, "s", 0), (2, "s", 1))], Progress(3), OrderSpec(delay), TIES)
    last = order.advance([], Progress(None, finish=True), OrderSpec(delay), TIES)
    assert times(last.released)[-1] == 3
    assert order.pending is None
    assert order.frontier_us == UNKNOWN_TIME
    behind = order.advance([events((4, "s", 2))], Progress(4), OrderSpec(delay), TIES)
    assert times(behind.late) == [4]
