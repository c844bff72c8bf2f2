"""Lanes by a bound: what operators are predicted to take, and the fewest lanes that keep the bound."""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import pyarrow as pa
import pytest

from spark_pace.core.frames import decode_header
from spark_pace.core.intake.pack import pack
from spark_pace.core.intake.sift import Past, sift
from spark_pace.core.order import OrderSpec, Progress
from spark_pace.core.plan.plan import Plan, build_plan
from spark_pace.core.plan.price import Price, price_of, sums_of_calls, sums_of_lane
from spark_pace.core.split.lanes import fewest_ranges
from spark_pace.core.split.slot_splitter import SlotSplitter, StepOutput
from spark_pace.rules import load_rules
from spark_pace.spark.stages.earlier_batches import Prices, over_bound

RULES = """
events: {schema: "time TIMESTAMP, x BIGINT", event_time: time}
rules:
  - name: spans
    span: {every: 10 events, size: 20 events}
    operator: tests.spark.jobs:total
    emit: {total: BIGINT, events_in_span: BIGINT}
"""


def all_cuts(weights: list[float], count: int) -> list[float]:
    """Of each cut into so many ranges, the weight of its greatest range."""
    inner = combinations(range(1, len(weights)), count - 1)
    return [max(sum(weights[i:j]) for i, j in pairwise([0, *places, len(weights)])) for places in inner]


@pytest.mark.parametrize("seed", range(40))
def test_there_are_as_few_ranges_as_keep_the_bound_and_no_cut_is_more_even(seed: int) -> None:
    chance = np.random.default_rng(seed)
    weights = chance.choice([0.0, 0.1, 1.0, 2.5, 7.0], chance.integers(1, 9))
    most, bound = int(chance.integers(1, 6)), float(chance.choice([0.05, 1.0, 3.0, 8.0, 20.0]))
    ranges = fewest_ranges(weights, most, bound)
    assert [place for i, j in ranges for place in range(i, j)] == list(range(len(weights)))
    least = {count: min(all_cuts(weights.tolist(), count)) for count in range(1, min(most, len(weights)) + 1)}
    keeping = [count for count, weight in least.items() if weight <= bound * (1 + 1e-6)]
    expected = keeping[0] if keeping else max(least)
    assert len(ranges) <= expected
    assert max(weights[i:j].sum() for i, j in ranges) <= least[expected] * (1 + 1e-4)


@pytest.mark.parametrize("weight", [0.0, np.nan, np.inf])
def test_whatever_the_weights_are_nothing_is_lost(weight: float) -> None:
    for size in range(7):
        ranges = fewest_ranges(np.array([1.0] * (size // 2) + [weight] * (size - size // 2)), 3, 1.0)
        assert [place for i, j in ranges for place in range(i, j)] == list(range(size))
        assert len(ranges) <= 3


def test_a_price_is_the_line_through_what_calls_took() -> None:
    rows = np.array([1, 4, 10, 25])
    exact = price_of(sums_of_calls(rows, 0.5 + 0.1 * rows, 6.0), by_call=True)
    assert exact is not None
    assert (exact.selection, exact.event) == pytest.approx((0.5, 0.1))
    beside = price_of(sums_of_calls(rows, 0.5 + 0.1 * rows, 10.0), by_call=True)
    assert beside is not None
    assert (beside.selection, beside.event) == pytest.approx((1.5, 0.1))  # four seconds for four calls


def test_a_price_has_no_part_below_0_and_counts_the_deviation() -> None:
    steep = price_of(sums_of_calls(np.array([1, 2]), np.array([0.0, 1.0]), 1.0), by_call=True)
    falling = price_of(sums_of_calls(np.array([1, 2]), np.array([1.0, 0.0]), 1.0), by_call=True)
    assert steep is not None and falling is not None
    assert steep.event == pytest.approx(2 / 5)  # through 0
    assert steep.selection == pytest.approx(np.sqrt((0.4**2 + 0.2**2) / 2))
    assert (falling.selection, falling.event) == pytest.approx((0.5 + 0.5, 0.0))
    assert price_of(sums_of_lane(0, 1.0), by_call=False) is None


def test_lanes_that_were_measured_whole_give_a_price_for_each_event() -> None:
    price = price_of(sums_of_lane(10, 1.0) + sums_of_lane(30, 6.0), by_call=False)
    assert price is not None
    mean, deviation = 7 / 40, np.sqrt((10 * 0.075**2 + 30 * 0.025**2) / 40)
    assert (price.selection, price.event) == pytest.approx((0.0, mean + deviation))


@pytest.fixture
def plan() -> Plan:
    rules = load_rules(RULES)
    return build_plan(rules, order=OrderSpec(), lanes=4, latency_bound_us=2_000_000)


def cut(plan: Plan, price: Price | None) -> tuple[StepOutput, list[float | None]]:
    """What is cut of 200 events, in 19 spans of twenty, and what each lane is predicted to take."""
    events = pa.table({
        "@time": np.arange(200),
        "@source": pa.array(["s"] * 200).dictionary_encode(),
        "@offset": np.arange(200),
        "time": pa.array(np.arange(200)).view(pa.timestamp("us")),
        "x": np.arange(200),
    })  # fmt: skip
    splitter = SlotSplitter(plan, 0)
    frames = [frame for _, frame in pack(plan, sift(plan, events, Past(splitter.frontier_us)).events)]
    output = splitter.step(frames, Progress(200, finish=True), {0: price} if price else {})
    return output, [decode_header(lane)["predicted_seconds"] for lane in output.lanes]


def test_without_a_price_there_are_all_lanes_and_with_one_the_fewest_that_keep_the_bound(plan: Plan) -> None:
    counts = ("lanes", "lane_rows", "distinct_rows")
    for price, lanes, rows in (
        (None, 4, 230),  # neighbouring spans share ten events
        (Price(0.0, 0.0001), 1, 200),
        (Price(0.15, 0.0), 2, 210),
        (Price(10.0, 0.0), 4, 230),
    ):
        output, predicted = cut(plan, price)
        assert [output.stats[name] for name in counts] == [lanes, rows, 200]
        if price is not None:
            assert sum(filter(None, predicted)) == pytest.approx(price.selection * 19 + price.event * 380)


def test_what_cannot_be_kept_is_told_and_why(plan: Plan) -> None:
    def work(*predicted: float | None) -> list[dict[str, object]]:
        return [{"rule_index": 0, "selections": 5, "predicted_seconds": seconds} for seconds in predicted]

    assert over_bound(plan, work(None, 1.5, 2.0), 2) is None
    assert over_bound(plan, work(None), 2) is None
    assert over_bound(plan, work(3.0, 0.5), 2) == (
        "3 s predicted for a lane of 5 selections of spans, more than 2 s"
    )
    assert over_bound(plan, work(2.0, 2.0, 1.0), 2) == (
        "5 s predicted for operators, more than 2 s on each of 2 slots"
    )


def test_what_was_measured_before_counts_half_with_each_batch(plan: Plan) -> None:
    prices = Prices(plan)
    assert prices.known == {}
    for seconds, expected in ((4.0, 4.0), (1.0, 2.0)):
        sums = sums_of_calls(np.array([10]), np.array([seconds]), seconds)
        prices.learn([{"rule_index": 0, "sums": sums.tolist()}])
        mean = prices.known[0].event * 10
        assert mean == pytest.approx(expected)
