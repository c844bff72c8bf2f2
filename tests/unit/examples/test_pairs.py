"""The tools of the Pairs benchmark: ticks, strategies, expected answers, validation, score."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

from examples.pairs.oracle import Indicator, MarketOrder, answers
from examples.pairs.score import PUBLISHED, load, p_score
from examples.pairs.strategies import Strategy, as_events, drawn, legs, read, write
from examples.pairs.ticks import Setting, ticks
from examples.pairs.validation import Validation, validate

SHORT = Setting(1, minutes=(0.1, 0.5, 1.0, 0.2), securities=20, rate=1_000)
STRATEGY = Strategy("st_00001", "ONE", "TWO", 5, 3, 1.0, 0.1, 10_000)


def all_ticks(setting: Setting) -> pa.Table:
    return pa.concat_tables(ticks(setting))


def test_the_rate_rises_to_its_peak_and_falls_to_its_basis_as_the_rules_of_execution_say():
    minutes = np.array([0, 0.5, 1, 16, 31, 61, 91, 121])
    rates = Setting(11).rates(60 * minutes)
    assert rates.tolist() == pytest.approx([0, 7_500, 15_000, 12_500, 10_000, 15_000, 10_000, 15_000])


def test_ticks_come_at_that_rate_and_by_chance():
    times = all_ticks(SHORT)["time"].to_numpy()
    found = np.bincount(times // 1000)
    due = SHORT.rates(np.arange(len(found)) + 0.5)
    assert (np.diff(times) >= 0).all()
    assert abs(found - due).max() < 6 * np.sqrt(due.max())
    assert np.std((found - due)[6:] / np.sqrt(due[6:])) == pytest.approx(1, abs=0.3)


def test_ticks_go_round_the_securities_with_sizes_and_prices_as_the_benchmark_says():
    table = all_ticks(SHORT)
    symbols, sizes = table["symbol"].to_pylist(), table["size"].to_numpy()
    assert len(set(SHORT.symbols)) == 20
    assert symbols == (SHORT.symbols * (len(symbols) // 20 + 1))[: len(symbols)]
    assert (sizes.min(), sizes.max(), (sizes % 10).max()) == (100, 1_000, 0)
    assert table["price"].to_numpy().min() > 0


def test_the_prices_of_a_pair_keep_their_ratio_and_others_do_not():
    table = all_ticks(replace(SHORT, minutes=(0.1, 10, 10, 0)))
    rows = table.num_rows // 20 * 20
    logs = np.log(table["price"].to_numpy()[:rows].reshape(-1, 20))
    spreads = [np.std(logs[:, number] - logs[:, number + 1]) for number in range(0, 20, 2)]
    assert max(spreads[:5]) < 0.03
    assert min(spreads[5:]) > 0.03


def test_a_seed_says_all():
    assert all_ticks(SHORT).equals(all_ticks(SHORT))
    assert not all_ticks(SHORT).equals(all_ticks(replace(SHORT, seed=2)))
    assert drawn(SHORT) == drawn(SHORT) != drawn(replace(SHORT, seed=2))


def test_strategies_are_spread_over_pairs_and_markets_as_the_benchmark_says():
    setting = Setting(15)
    strategies = drawn(setting)
    first = set(setting.symbols[:100])
    of_first = [strategy for strategy in strategies if strategy.symbol1 in first]
    assert (len(strategies), len(of_first)) == (375, 250)
    pairs = [(strategy.symbol1, strategy.symbol2) for strategy in of_first]
    assert {pairs.count(pair) for pair in pairs} == {10}
    assert len({symbol for pair in pairs for symbol in pair}) == 50


def test_strategies_are_written_and_read_as_xml(tmp_path):
    strategies = drawn(Setting(2))
    write(tmp_path / "strategies.xml", strategies)
    assert read(tmp_path / "strategies.xml") == strategies
    (tmp_path / "own.xml").write_text(
        '<Strategies><PairsStrategy alias="st_00001" availableFunds="1000000" symbol1="MCBEIV" '
        'symbol2="AYFBLW" periodLength="20" numPeriods="5" bandsMultiplier="1.25" stopLossPerc="0.3">'
        "</PairsStrategy></Strategies>"
    )
    assert read(tmp_path / "own.xml") == [
        Strategy("st_00001", "MCBEIV", "AYFBLW", 20, 5, 1.25, 0.3, 1_000_000)
    ]


def test_rules_take_strategies_as_events_before_the_first_tick_and_pairs_as_a_table():
    strategies = [STRATEGY, replace(STRATEGY, name="st_00002")]
    rows = as_events(strategies).to_pylist()
    assert [(row["time"], row["strategy"], row["pair"], row["funds"]) for row in rows] == [
        (0, "st_00001", "ONE/TWO", 10_000),
        (0, "st_00002", "ONE/TWO", 10_000),
    ]
    assert legs(strategies).to_pylist() == [
        {"symbol": "ONE", "pair": "ONE/TWO", "number": 1},
        {"symbol": "TWO", "pair": "ONE/TWO", "number": 2},
    ]


def trades_of(ratios: list[float]) -> list[tuple[int, str, int]]:
    """In each period two trades of the first security, whose mean is the ratio, and one of the second."""
    found = []
    for number, ratio in enumerate(ratios):
        at = 5_000 * number
        found += [
            (at, "ONE", int(100 * ratio) - 10),
            (at + 1, "TWO", 100),
            (at + 4_999, "ONE", int(100 * ratio) + 10),
        ]
    return [*found, (5_000 * len(ratios), "OTHER", 1)]


def test_the_oracle_answers_as_worked_out_by_hand():
    found = list(answers([STRATEGY], trades_of([1, 3, 2, 5, 6, 1, 9])))
    indicators = [answer for answer in found if isinstance(answer, Indicator)]
    assert [(one.time, one.ratio) for one in indicators] == [
        (15_000, 2), (20_000, 5), (25_000, 6), (30_000, 1), (35_000, 9),
    ]  # fmt: skip
    bands = [(one.average, one.upper, one.lower) for one in indicators[:2]]
    assert bands == [
        pytest.approx((2, 2 + (2 / 3) ** 0.5, 2 - (2 / 3) ** 0.5)),
        pytest.approx((10 / 3, 10 / 3 + (14 / 9) ** 0.5, 10 / 3 - (14 / 9) ** 0.5)),
    ]
    assert [answer for answer in found if isinstance(answer, MarketOrder)] == [
        MarketOrder("st_00001", 20_000, "BUY", "TWO", 100, 100),  # rises above the band
        MarketOrder("st_00001", 25_000, "SELL", "TWO", 100, 100),  # rises on, by more than a tenth
        MarketOrder("st_00001", 30_000, "BUY", "ONE", 110, 90),  # falls below: 10,000 buy 90 at 110
        MarketOrder("st_00001", 35_000, "SELL", "ONE", 910, 90),  # rises again
        MarketOrder("st_00001", 35_000, "BUY", "TWO", 100, 820),  # for 100 + 90 * 910
    ]


def test_the_oracle_skips_a_period_in_which_a_security_is_not_traded():
    trades = [
        trade for trade in trades_of([1, 3, 7, 2]) if not (trade[1] == "TWO" and 10_000 <= trade[0] < 15_000)
    ]
    assert [(answer.time, answer.ratio) for answer in answers([STRATEGY], trades)] == [(20_000, 2)]


def test_a_period_is_over_only_when_a_tick_comes_behind_it():
    trades = trades_of([1, 3, 2])
    assert list(answers([STRATEGY], trades[:-1])) == []
    assert [answer.time for answer in answers([STRATEGY], trades)] == [15_000]


def test_validation_counts_missing_undue_and_wrong_answers():
    expected = list(answers([STRATEGY], trades_of([1, 3, 2, 5, 6, 1, 9])))
    orders = [answer for answer in expected if isinstance(answer, MarketOrder)]
    right = {"Indicator": Validation(5, 5, 5, 0, 0, 0), "MarketOrder": Validation(5, 5, 5, 0, 0, 0)}
    assert validate(expected, expected[::-1]) == right
    assert all(one.passed for one in right.values())
    wrong = [*orders[1:3], replace(orders[3], size=10), orders[4], orders[4], replace(orders[4], time=40_000)]
    found = validate(expected, wrong)
    assert found == {"Indicator": Validation(5, 0, 0, 5, 0, 0), "MarketOrder": Validation(5, 6, 3, 1, 2, 1)}
    assert not any(one.passed for one in found.values())


def test_validation_takes_doubles_that_differ_in_their_last_digits():
    one = Indicator("st_00001", 5_000, 1.0, 0.1 + 0.2, 2.0, 0.5)
    for average, passed in ((0.3, True), (0.3000001, False)):
        assert validate([one], [replace(one, average=average)])["Indicator"].passed == passed


def test_the_score_is_that_of_the_published_table():
    scores = {
        (scale, engine): round(p_score(scale, seconds), 2)
        for scale, engines in PUBLISHED.items()
        for engine, seconds in engines.items()
    }
    assert scores == {
        (1, "X"): 47.62, (1, "Y"): 136.36, (2, "X"): 34.29, (2, "Y"): 250.0,
        (3, "X"): 44.33, (4, "X"): 34.19, (5, "X"): 0.16,
    }  # fmt: skip
    assert [load(scale) for scale in (1, 9, 10, 11, 20, 100)] == [3, 27, 30, 44, 80, 1_200]


def test_ascending_scales_pose_ascending_loads():
    assert all(low < high for low, high in pairwise(load(scale) for scale in range(1, 200)))
