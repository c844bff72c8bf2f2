"""Rules whose windows hold far more combinations than matches stay within bounds of memory."""

from __future__ import annotations

import pytest

from benchmarks.explosions import MOST_MB, RULES
from benchmarks.processes import alone

EVENTS = 50_000  # so many that all candidates, in one matrix, take more than the bound


@pytest.mark.parametrize("name", RULES)
def test_memory_follows_events_and_matches(name: str) -> None:
    assert alone("explosions", name, EVENTS)["peak_mb"] <= MOST_MB
