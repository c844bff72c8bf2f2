"""Stream order, the frontier and late events."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from spark_pace.core.order import Order, OrderSpec, Progress, first_ones, stream_order
from spark_pace.core.tables import NO_FRONTIER, OFFSET, SOURCE, TIME, UNKNOWN_TIME, numbers

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


def test_late_is_what_lies_below_the_frontier_that_held_when_the_batch_began() -> None:
    order = Order()
    order.advance([events((10, "s", 0))], Progress(10), TWO, TIES)
    second = order.advance([events((7, "s", 1), (8, "s", 2), (50, "s", 3))], Progress(50), TWO, TIES)
    assert times(second.late) == [7]
    assert times(second.released) == [8, 10]


@pytest.mark.parametrize("delay", [0, 10**9])
def test_the_end_of_the_input_releases_everything(delay: int) -> None:
    order = Order()
    order.advance([events((3, "s", 0), (2, "s", 1))], Progress(3), OrderSpec(delay), TIES)
    last = order.advance([], Progress(None, finish=True), OrderSpec(delay), TIES)
    assert times(last.released)[-1] == 3
    assert order.pending.runs == []
    assert order.frontier_us == UNKNOWN_TIME
    behind = order.advance([events((4, "s", 2))], Progress(4), OrderSpec(delay), TIES)
    assert times(behind.late) == [4]


def at(**sources: int) -> Progress:
    return Progress(max(sources.values()), sources=sources, least_us=min(sources.values()))


def by_source(**changes: object) -> OrderSpec:
    return replace(OrderSpec(delay_us=2, by_source=True), **changes)  # type: ignore[arg-type]


def frontiers(spec: OrderSpec, *batches: Progress) -> list[int]:
    order = Order()
    found = []
    for progress in batches:
        order.advance([], progress, spec, TIES)
        found.append(order.frontier_us)
    return found


def test_the_slowest_source_says_how_far_the_stream_is() -> None:
    assert frontiers(by_source(), at(a=100, b=40), at(a=200), at(b=150)) == [38, 38, 148]


def test_a_new_source_joins_with_its_first_record_and_moves_nothing_back() -> None:
    assert frontiers(by_source(), at(a=100), at(b=10), at(a=200), at(b=300)) == [98, 98, 98, 198]


def test_nothing_is_released_before_every_expected_source_was_heard_of() -> None:
    assert frontiers(by_source(expected_sources=("a", "b")), at(a=100), at(a=200), at(b=150)) == [
        NO_FRONTIER,
        NO_FRONTIER,
        148,
    ]


def test_a_source_that_lags_more_than_is_allowed_is_left_out_until_it_has_caught_up() -> None:
    spec = by_source(idle_after_us=50)
    heard = (at(a=100, b=60), at(a=110), at(a=111), at(b=61), at(a=120), at(b=119))
    assert frontiers(spec, *heard) == [58, 58, 109, 109, 118, 118]
    order = Order()
    order.advance([], at(a=111, b=60), spec, TIES)
    assert (order.standing(spec).waited_for, order.standing(spec).idle) == ({"a": 111}, {"b": 60})
    assert order.standing(spec).slowest_idle(5) == ["b"] and order.standing(spec).slowest_idle(0) == []


def test_the_sources_that_hold_the_stream_are_named_slowest_first() -> None:
    spec = by_source()
    order = Order()
    order.advance([], at(a=100, b=40, c=40, d=41), spec, TIES)
    assert order.standing(spec).holding(order.frontier_us + spec.delay_us, 5) == ["b", "c"]
    order.advance([], at(e=10), spec, TIES)
    assert order.standing(spec).holding(order.frontier_us + spec.delay_us, 2) == ["e", "b"]


def test_of_an_expected_source_that_never_came_that_is_said() -> None:
    spec = by_source(expected_sources=("a", "b"))
    order = Order()
    order.advance([], at(a=100), spec, TIES)
    order.advance([], at(a=200), spec, TIES)
    assert order.standing(spec).holding(order.frontier_us + spec.delay_us, 5) == ["b (never heard of)"]
    order.advance([], at(b=150), spec, TIES)
    assert order.standing(spec).holding(order.frontier_us + spec.delay_us, 5) == ["b"]


@pytest.mark.parametrize(
    ("codes", "when", "delay", "kept"),
    [
        ([], [], 5, []),
        (
            [0, 0, 0, 0],
            [0, 5, 10, 11],
            5,
            [True, False, True, False],
        ),  # the one at 10 repeats the one at 5, but that was not kept
        ([0, 1, 0, 1], [0, 0, 6, 5], 5, [True, True, True, False]),
        ([0, 0, 0], [3, 3, 4], 0, [True, False, True]),
    ],
)
def test_a_repeat_is_told_by_what_was_kept_before(
    codes: list[int], when: list[int], delay: int, kept: list[bool]
) -> None:
    assert first_ones(np.array(codes, np.int64), np.array(when, np.int64), delay).tolist() == kept
