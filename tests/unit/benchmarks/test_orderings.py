"""`ordering: watermark` and `ordering: sources` side by side; one producer is three minutes behind."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import ordering


def test_the_slow_producer_loses_its_events_or_sets_the_pace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ordering, "ROOT", tmp_path)
    # this compares the matches with those of the events that are not late
    results = ordering.measure(with_job=False)
    fast, slow = results["watermark"], results["sources"]
    assert fast["late"]["fast"] == 0
    assert fast["late"]["slow"] > 0.9 * results["events"]["slow"]
    assert slow["late"] == {"fast": 0, "slow": 0}
    assert slow["matches"]["alarm_again"] == fast["matches"]["alarm_again"]  # of the fast producer alone
    assert slow["matches"]["alarm_confirmed"] > 10 * fast["matches"]["alarm_confirmed"]
    assert fast["latency_s"]["alarm_again"]["p99"] <= results["delay_s"] + ordering.TRIGGER / ordering.SECOND
    assert slow["latency_s"]["alarm_again"]["p50"] >= results["lag_s"]
