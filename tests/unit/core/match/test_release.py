"""When a match comes out: each event is a batch of its own and moves the frontier to its time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from spark_pace.core.order import OrderSpec
from spark_pace.core.plan.plan import build_plan
from tests.support.drive import drive
from tests.support.golden_cases import GoldenCase, parse_events
from tests.support.results import from_core, table_of

A_THEN_B = {
    "name": "r",
    "pattern": {"sequence": [{"a": "type = 'a'"}, {"b": "type = 'b'"}]},
    "where": "a.x = b.x",
    "within": "10 s",
}
AND_BY_CHANCE_C = {
    "sequence": [
        {"name": "a", "when": "type = 'a'", "times": "1..2"},
        {"b": "type = 'b'"},
        {"name": "c", "when": "type = 'c'", "times": "0..1"},
    ]
}
TICKS = "z1@4 z2@9 z3@10 z4@11 z5@12 z6@20"
CASES: list[tuple[str, dict[str, Any], str, dict[str, int]]] = [
    (
        "a match waits for the window of an earlier selection",
        {"context": "each, zero"},
        "a1@0=1 a2@1=2 b1@3=2",
        {"a2,b1": 11},
    ),
    (
        "by detection it does not wait",
        {"context": "each, zero", "merge": "detection"},
        "a1@0=1 a2@1=2 b1@3=2",
        {"a2,b1": 4},
    ),
    (
        "the walk's match waits until the earlier initiator has failed",
        {"context": "next, selected"},
        "a1@0=1 a2@1=2 b1@3=2",
        {"a2,b1": 11},
    ),
    (
        "so it does by detection",
        {"context": "next, selected", "merge": "detection"},
        "a1@0=1 a2@1=2 b1@3=2",
        {"a2,b1": 11},
    ),
    (
        "a match resolves its selection",
        {"context": "earliest, selected"},
        "a1@0=1 b1@1=1 a2@2=1 b2@3=1",
        {"a1,b1": 2, "a2,b2": 4},
    ),
    (
        "a completion resolves its selection",
        {"context": "next, zero"},
        "a1@0=1 b1@1=1 a2@2=1 b2@3=1",
        {"a1,b1": 2, "a2,b2": 4},
    ),
    (
        "in latest only the window's end does",
        {"context": "latest, zero"},
        "a1@0=1 b1@1=1 a2@2=1 b2@3=1",
        {"a1,b1": 2, "a2,b2": 11},
    ),
    (
        "one open at a time: nothing is before it",
        {"context": "each, selected"},
        "a1@0=1 a2@1=2 b1@3=2",
        {"a2,b1": 4},
    ),
    (
        "a window kept open holds back the next selection",
        {"close": "window"},
        "a1@0=1 b1@1=1 a2@2=1 b2@3=1",
        {"a1,b1": 2, "a1,b2": 4, "a2,b2": 11},
    ),
    (
        "without window and condition nothing waits",
        {"where": None, "within": None},
        "a1@0=1 a2@1=2 b1@3=2",
        {"a1,b1": 4, "a2,b1": 4},
    ),
    (
        "an optional component in last place waits for the window of its own match",
        {"context": "latest, zero", "pattern": AND_BY_CHANCE_C, "where": "b.x >= 0"},
        "a1@0=2 a2@1=2 b1@2=2 a3@5=2 b2@6=2",
        {"a1,a2,b1": 11, "a2,a3,b2": 12},
    ),
    ("a full count window has ended", {"within": "3 events"}, "a1@0=1 a2@1=2 b1@3=2", {"a2,b1": 4}),
]


@pytest.mark.parametrize(
    ("change", "events", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_a_match_comes_out_when_the_frontier_has_passed_it(
    change: dict[str, Any], events: str, expected: dict[str, int], tmp_path: Path
) -> None:
    rule = {name: value for name, value in (A_THEN_B | change).items() if value is not None}
    case = GoldenCase("release", rule, parse_events(f"{events} {TICKS}"), (), {})
    loaded = case.load_rule(tmp_path)
    steps = drive(
        build_plan([loaded], order=OrderSpec()),
        [table_of(loaded, [event]) for event in case.events],
        finish=False,
    )
    came: dict[str, int] = {}
    for event, step in zip(case.events, steps, strict=True):
        for row in from_core(loaded, step.matches):
            came[",".join(case.events[offset].row["id"] for *_, offset in row["events"])] = (
                event.time // 1_000_000
            )
    assert came == expected


@pytest.mark.parametrize("lanes", [1, 2, 3, 8])
def test_a_window_of_events_that_ends_in_a_later_lane_holds_no_match_back(lanes: int, tmp_path: Path) -> None:
    """The first batch fills the windows of five events that begin with a1 to a9."""
    rule = {
        "name": "r",
        "pattern": {"sequence": [{"p": "type = 'a'"}, {"q": "type = 'a'"}]},
        "within": "5 events",
        "context": "latest, zero",
    }
    case = GoldenCase("lanes", rule, parse_events(" ".join(f"a{n}" for n in range(1, 17))), (), {})
    loaded = case.load_rule(tmp_path)
    plan = build_plan([loaded], order=OrderSpec(), lanes=lanes, least_lane_rows=1)
    batches = [table_of(loaded, case.events[:13]), table_of(loaded, case.events[13:])]
    steps = list(drive(plan, batches, finish=True))
    came = [[row["selection_id"] for row in from_core(loaded, step.matches)] for step in steps]
    # a match waits for the windows before its own; the last event of a batch stands at the frontier
    assert came == [list(range(9)), [9, 10, 11], [12, 13, 14]]
