"""When a match comes out: each event is a batch of its own and moves the frontier to its time."""

from __future__ import annotations

import pytest

from spark_pace.core.order import OrderSpec
from spark_pace.core.plan.plan import build_plan
from tests.support.drive import drive
from tests.support.golden_cases import DIRECTORY, GoldenCase, golden_cases, parse_events, rule_of
from tests.support.results import from_core, table_of


@pytest.mark.parametrize("case", golden_cases(DIRECTORY / "out"), ids=lambda case: case.name)
def test_a_match_comes_out_when_the_frontier_has_passed_it(case: GoldenCase) -> None:
    rule = case.load_rule()
    batches = [table_of(rule, [event]) for event in case.events]
    steps = drive(build_plan([rule], order=OrderSpec()), batches, finish=False)
    ids, out = [event.row["id"] for event in case.events], dict[str, str]()
    for event, step in zip(ids, steps, strict=True):
        events = [[ids[offset] for *_, offset in row["events"]] for row in from_core(rule, step.matches)]
        out |= {event: " ".join(f"({','.join(names)})" for names in events)} if events else {}
    assert out == case.told["out"]


@pytest.mark.parametrize("lanes", [1, 2, 3, 8])
def test_a_window_of_events_that_ends_in_a_later_lane_holds_no_match_back(lanes: int) -> None:
    """The first batch fills the windows of five events that begin with a1 to a9."""
    rule = rule_of(
        "pattern: {sequence: [p: type = 'a', q: type = 'a']}, within: 5 events, context: 'latest, zero'"
    )
    events = parse_events(" ".join(f"a{n}" for n in range(1, 17)))
    plan = build_plan([rule], order=OrderSpec(), lanes=lanes, least_lane_rows=1)
    steps = list(drive(plan, [table_of(rule, events[:13]), table_of(rule, events[13:])], finish=True))
    came = [[row["selection_id"] for row in from_core(rule, step.matches)] for step in steps]
    # a match waits for the windows before its own; the last event of a batch stands at the frontier
    assert came == [list(range(9)), [9, 10, 11], [12, 13, 14]]
