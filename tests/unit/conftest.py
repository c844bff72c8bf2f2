"""What tests of several files are given: their rules, the plan of these, a process of Python operators."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from spark_pace import load_rules
from spark_pace.core.order import OrderSpec
from spark_pace.core.plan.plan import Plan, build_plan
from spark_pace.core.plan.rule import Rule
from spark_pace.spark.stages.operator_process import OperatorProcess


@pytest.fixture
def rules(request: pytest.FixtureRequest) -> tuple[Rule, ...]:
    """The rules of the text `RULES` of the test's file."""
    return tuple(load_rules(request.module.RULES))


@pytest.fixture
def plan(rules: tuple[Rule, ...]) -> Plan:
    return build_plan(rules, order=OrderSpec())


@pytest.fixture
def process() -> Iterator[OperatorProcess]:
    process = OperatorProcess()
    yield process
    process.stop()
