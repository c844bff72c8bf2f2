"""The core gives the golden matches, whatever the number of slots and lanes."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_pace.core.local_run import run
from spark_pace.core.order.order import OrderSpec
from spark_pace.core.plan.plan import build_plan
from tests.support.golden_cases import GoldenCase, golden_cases
from tests.support.results import from_core, table_of


@pytest.mark.parametrize("case", golden_cases(), ids=lambda case: case.name)
def test_the_core_gives_the_golden_matches(case: GoldenCase, tmp_path: Path) -> None:
    rule = case.load_rule(tmp_path)
    result = run(build_plan([rule], order=OrderSpec(3_600_000_000)), [table_of(rule, case.events)])
    assert case.said_of(from_core(rule, result.matches)) == case.expected()
