"""The oracle itself against the golden cases, and against small facts that hold for every context."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.oracle.matches import evaluate
from tests.support.golden_cases import GoldenCase, golden_cases
from tests.support.results import from_oracle


@pytest.mark.parametrize("case", golden_cases(), ids=lambda case: case.name)
def test_the_oracle_gives_the_golden_matches(case: GoldenCase, tmp_path: Path) -> None:
    rule = case.load_rule(tmp_path)
    assert case.said_of(from_oracle(rule, evaluate(rule, case.events))) == case.expected()
