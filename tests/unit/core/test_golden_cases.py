"""The core and the oracle give the golden matches: the core in one batch and in one for each event."""

from __future__ import annotations

import pyarrow as pa
import pytest

from spark_pace.core.local_run import LocalRun, run
from spark_pace.core.order import OrderSpec
from spark_pace.core.plan.plan import build_plan
from spark_pace.core.plan.rule import Rule
from tests.oracle.matches import evaluate
from tests.support.golden_cases import GoldenCase, golden_cases
from tests.support.results import from_core, from_oracle, table_of

KINDS = {
    (case.name.partition("-")[0], case.rule.get("context"), case.rule.get("close")): case
    for case in sorted(golden_cases(), key=lambda case: len(case.matches))
}
MOST_MATCHES = {case.name for case in KINDS.values()}  # of a file and context


@pytest.mark.parametrize("case", golden_cases(), ids=lambda case: case.name)
def test_the_core_and_the_oracle_give_the_golden_matches(case: GoldenCase) -> None:
    rule = case.load_rule()
    result = run(build_plan([rule], order=OrderSpec(3_600_000_000)), [table_of(rule, case.events)])
    assert case.said_of(from_core(rule, result.matches)) == case.expected()
    assert case.said_of(from_oracle(rule, evaluate(rule, case.events))) == case.expected()


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=case.name, marks=[pytest.mark.long] * (case.name not in MOST_MATCHES))
        for case in golden_cases()
    ],
)
def test_the_core_gives_the_golden_matches_event_by_event(case: GoldenCase) -> None:
    rule = case.load_rule()
    assert case.said_of(from_core(rule, found_event_by_event(case, rule))) == case.expected()


def found_event_by_event(case: GoldenCase, rule: Rule) -> pa.Table:
    """The matches of a run whose every batch is one event, in the order of event time."""
    local = LocalRun(build_plan([rule], order=OrderSpec(), slots=2, buckets=2, lanes=3, least_lane_rows=1))
    in_order = sorted(case.events, key=lambda event: event.time)
    steps = [local.step(table_of(rule, [event])) for event in in_order]
    steps.append(local.step(None, finish=True))
    return pa.concat_tables([step.matches for step in steps])
