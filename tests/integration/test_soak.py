"""A short soak: the code of `make soak` at a small rate, which looks for losses and for memory that grows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.long.soak.growth import Tolerance
from tests.long.soak.run import soak
from tests.long.soak.settings import Settings
from tests.support.commands import environment

pytestmark = [pytest.mark.integration, pytest.mark.long]


def test_nothing_is_lost_and_memory_does_not_grow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARK_SUBMIT_OPTS")  # the memory of a JVM as users start it
    monkeypatch.setenv("PYTHONPATH", environment()["PYTHONPATH"])
    settings = Settings(tmp_path / "soak", minutes=1, rate=300, burst=5, trigger_s=4, look_s=5)
    problems = soak(settings, Tolerance(share=0.2, least_mb=75))
    assert problems == []
    report = json.loads((tmp_path / "soak" / "report.json").read_text())
    account = report["account"]
    assert account["produced"] == account["events"] + account["late"] + account["bad"]
    assert min(account["events"], account["late"], account["bad"], account["matches"]) > 0
    assert len(report["series"]) > 5
