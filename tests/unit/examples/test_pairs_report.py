"""The figures of a run of the Pairs benchmark: latencies from append to commit, and what is told of them."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from deltalake import write_deltalake

from examples.pairs.latency import Latencies, Sent, latencies
from examples.pairs.report import Run, as_json, as_text
from examples.pairs.run import parts_at
from examples.pairs.ticks import Setting
from examples.pairs.validation import Validation
from spark_pace_bench.delta_log import commits

SETTING = Setting(2, minutes=(0, 0.25, 0.25, 0))  # from 15 s to 30 s it is measured


def append(table: Path, rule: str, *seconds: int) -> None:
    times = pa.array([1_000_000 * second for second in seconds], pa.timestamp("us", "UTC"))
    write_deltalake(table, pa.table({"rule": [rule] * len(seconds), "matched_at": times}), mode="append")


def test_a_latency_begins_with_the_file_that_has_the_first_tick_behind_the_period(tmp_path: Path) -> None:
    append(tmp_path, "market_order", 15, 20)
    append(tmp_path, "indicator", 25)
    append(tmp_path, "market_order", 25, 30, 35)
    committed = [commit.committed for commit in commits(tmp_path)]
    sent = Sent(began=1_000.0, last=[19_999, 20_000, 27_000, 30_100], at=[1.0, 2.0, 3.0, 4.0])
    found = latencies(tmp_path, sent, SETTING)
    orders = found["market_order"]
    assert orders.from_append == pytest.approx([committed[0] - 2, committed[2] - 3, committed[2] - 4])
    assert orders.from_due == pytest.approx(
        [committed[0] - 1_020, committed[2] - 1_025, committed[2] - 1_030]
    )
    assert found["indicator"].from_append == pytest.approx([committed[1] - 3])


def a_run(**changes: object) -> Run:
    seconds = np.array([0.3] * 98 + [0.6, 0.9])
    of_orders = Latencies(seconds, seconds + 0.1)
    right = Validation(100, 100, 100, 0, 0, 0)
    run = Run(
        SETTING, 0, 1_000, {"MarketOrder": right}, {"market_order": of_orders, "indicator": of_orders}, [0.2]
    )
    return replace(run, **changes)  # type: ignore[arg-type]


def test_a_report_has_the_score_and_what_was_published() -> None:
    report = as_json(a_run())
    assert (report["load"], report["strategies"], report["orders"]["count"]) == (6, 50, 100)
    assert report["p_score"] == round(6 / report["orders"]["p99"], 2)
    assert report["published"] == {"X": 34.29, "Y": 250.0}
    assert report["histogram"] == {"0 s": 0, "0.25 s": 98, "0.5 s": 1, "0.75 s": 1}
    assert "p_score" in as_text(a_run())


def test_a_run_with_kills_or_without_orders_has_no_score() -> None:
    none = Latencies(np.empty(0), np.empty(0))
    assert as_json(a_run(kills=3))["p_score"] is None
    empty = as_json(a_run(latencies={"market_order": none, "indicator": none}))
    assert (empty["p_score"], empty["orders"]) == (None, {"count": 0})


def test_ticks_are_cut_where_the_measured_interval_begins() -> None:
    tables = [pa.table({"time": times}) for times in ([1, 2], [3, 4, 5], [6])]
    assert [(is_behind, part["time"].to_pylist()) for is_behind, part in parts_at(tables, 4)] == [
        (False, [1, 2]), (False, [3]), (True, [4, 5]), (True, [6]),
    ]  # fmt: skip
