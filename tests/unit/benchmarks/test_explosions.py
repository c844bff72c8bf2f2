"""Rules whose windows hold far more combinations than matches stay within bounds of memory."""

from __future__ import annotations

import pytest

from benchmarks.explosions import MOST_MB, RULES
from benchmarks.processes import alone

EVENTS = 50_000  # so many that all candidates, in one matrix, take more than the bound


LIKE_ANOTHER = ("of_both_never", "latest_zero_of_three", "never_next_selected", "earliest_zero")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.long] * (name in LIKE_ANOTHER)) for name in RULES]
)
def test_memory_follows_events_and_matches(name: str) -> None:
    assert alone("explosions", name, EVENTS)["peak_mb"] <= MOST_MB
