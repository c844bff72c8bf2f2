"""What a soak's report says of curves and latencies."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from deltalake import DeltaTable

from spark_pace.io.delta_tables import DeltaTables
from spark_pace_bench.trend import HOUR, trend_of
from tests.long.soak.latency import latencies, over_time, percentiles
from tests.long.soak.producer import records
from tests.long.soak.settings import Settings
from tests.long.soak.tolerance import Tolerance, grows

SECONDS = np.arange(0, 1200, 3.0)
TOLERANCE = Tolerance(share=0.05, least_mb=32)


def noisy(level: float, per_hour: float) -> list[float]:
    noise = np.random.default_rng(1).normal(0, level / 50, len(SECONDS))
    return list(level + per_hour * SECONDS / HOUR + noise)


@pytest.mark.parametrize(("per_hour", "leaks"), [(0, False), (60, False), (600, True), (-600, False)])
def test_memory_that_climbs_is_told_from_memory_that_does_not(per_hour: float, leaks: bool) -> None:
    trend = trend_of(list(SECONDS), noisy(500, per_hour), begins=0)
    assert trend is not None
    assert grows(trend, TOLERANCE) is leaks
    assert trend.slope_per_hour == pytest.approx(per_hour, abs=40)
    assert trend.flat is (abs(per_hour) < 100)


def test_wild_samples_do_not_tilt_a_slope() -> None:
    values = noisy(500, 0)
    values[300:320] = [5000] * 20
    trend = trend_of(list(SECONDS), values, begins=0)
    assert trend is not None and trend.flat and not grows(trend, TOLERANCE)


def test_the_warm_up_is_left_out() -> None:
    values = [min(second, 400.0) for second in SECONDS]
    trend = trend_of(list(SECONDS), values, begins=400)
    assert trend is not None and trend.flat and trend.slope_per_hour == 0
    assert trend_of(list(SECONDS), values, begins=1195) is None


def test_a_burst_is_due_for_a_twentieth_of_the_time() -> None:
    settings = Settings(Path("out"), minutes=10, rate=100, burst=10)
    assert settings.due(120) == 12_000
    assert settings.due(135) == 12_000 + 15_000
    assert settings.due(150) == 12_000 + 30_000
    assert settings.due(600) == 60_000 + 27_000


def test_the_producer_sends_bad_and_late_records_among_the_others() -> None:
    record = records(seed=1)
    lines = [record(1_700_000_000.25) for _ in range(20_000)]
    late = sum(b'"t":"2023-11-14T22:12:20.250000Z"' in line for line in lines)
    good = sum(b'"t":"2023-11-14T22:13:20.250000Z"' in line for line in lines)
    assert 5 < late < 50
    assert 5 < len(lines) - good - late < 50
    assert all(b"\n" not in line for line in lines)


def test_latency_is_from_the_match_to_the_commit_of_its_row_before_files_were_joined(tmp_path: Path) -> None:
    tables = DeltaTables(str(tmp_path), "app")
    schema = pa.schema([("rule", pa.string()), ("matched_at", pa.timestamp("us", "UTC"))])
    tables.prepare({"matches": schema})
    for batch in range(5):
        rows = pa.table(
            {"rule": ["r", "r"], "matched_at": pa.array([0, 1_000_000]).cast(pa.timestamp("us", "UTC"))},
            schema,
        )
        tables.append("matches", rows, batch)
    DeltaTable(tmp_path / "matches").optimize.compact()
    found = latencies(tmp_path / "matches")
    assert found.num_rows == 10
    commits = {
        entry["timestamp"] / 1000
        for entry in DeltaTable(tmp_path / "matches").history()
        if entry["operation"] == "WRITE"
    }
    assert set(found["committed"].to_pylist()) == commits
    shown = percentiles(found["latency"])
    assert shown["p50"] == pytest.approx(found["committed"][0].as_py(), abs=60)
    assert len(over_time(found, 10)["time"]) == len(over_time(found, 10)["p99"])
