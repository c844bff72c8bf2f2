"""What a soak judges, and what it sends."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from spark_pace_bench.run_file import read_run_file
from spark_pace_bench.trend import HOUR, trend_of
from tests.long.soak.growth import Tolerance, grows
from tests.long.soak.run import BAD, spoilt
from tests.long.soak.settings import Settings

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


def test_of_a_thousand_records_one_is_bad_and_one_a_minute_late(tmp_path: Path) -> None:
    settings = Settings(tmp_path, minutes=1, rate=300, burst=5)
    (run,) = read_run_file(settings.write_run("127.0.0.1:9"))
    begin_us = 1_700_000_000_250_000
    lines = spoilt(run, 5_000).lines(1_000, np.full(4_000, begin_us))
    texts = [f'"{time}.250000Z"' for time in ("2023-11-14T22:12:20", "2023-11-14T22:13:20")]
    late, good = (sum(text in line for line in lines) for text in texts)
    assert (late, good, set(BAD) - set(lines)) == (4, 3_992, set())
