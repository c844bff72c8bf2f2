"""Rules over rules find their matches as soon as they may: shape by shape, event by event."""

from __future__ import annotations

import json
import re
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from spark_pace import load_rules
from spark_pace.core.levels import Levels
from spark_pace.core.local_run import LocalRun
from spark_pace.core.order import OrderSpec
from spark_pace.core.plan.lower_rules import input_schema
from spark_pace.core.plan.plan import build_plan
from spark_pace.core.plan.rule import Rule
from tests.oracle.stream import Event
from tests.support.golden_cases import SCHEMA, parse_events
from tests.support.results import table_of

ROOT = Path(__file__).parents[3]
PAIR = {"pattern": {"sequence": [{"a": "type = 'a'"}, {"b": "type = 'b'"}]}, "within": "10 s"}
EQUAL = PAIR | {"where": "a.x = b.x", "partition_by": ["y"]}
NEXT = {"context": "next, selected", "merge": "detection"}
NOT_C = {
    "pattern": {
        "sequence": [
            {"a": "type = 'a'"},
            {"b": "type = 'b'"},
            {"name": "c", "when": "type = 'c'", "not": True},
        ]
    },
    "within": "5 s",
}
BETWEEN = {"span": {"open": "type = 'a'", "close": "type = 'b' and x = open.x", "within": "10 s"}}
UNTIL = {
    "pattern": {
        "sequence": [
            {"a": "type = 'a'"},
            {"name": "b", "when": "type = 'b' and x = 2", "times": "0..1", "until": "type = 'b' and x = 1"},
        ]
    },
    "within": "10 s",
    "context": "next, selected",
}
# what waits: the match of a2 and b1, for the selection of a1; that of a3 and b2 has another key
WAITS = "a1@0=1,1 a2@1=2,1 b1@2=2,1 a3@3=5,2 b2@4=5,2 z1@5"
# the match of a2 is decided at 4 s, but not before that of a1, which is decided at 10 s
IN_TURN = "a1@0 b1@1=1 a2@2 b2@4=2"


def loaded(folder: Path, rules: list[dict[str, Any]]) -> list[Rule]:
    path = folder / "rules.yaml"
    path.write_text(json.dumps({"events": SCHEMA, "rules": rules}), encoding="utf-8")
    return load_rules(path)


def found(local: LocalRun, events: list[Event]) -> list[str]:
    """For each event that lets matches out its id, and the rules of these."""
    read = next(rule for rule in local.plan.shown if not rule.reads)
    steps = []
    for event in events:
        matches = local.step(table_of(read, [event])).matches
        if matches.num_rows:
            steps.append(f"{event.row['id']}: {' '.join(matches['rule'].to_pylist())}")
    return steps


@pytest.mark.parametrize(
    ("low", "events", "expected"),
    [
        pytest.param(
            {
                "pattern": {
                    "sequence": [{"name": "f", "when": "type = 'a'", "times": "3+"}, {"ok": "type = 'b'"}]
                }
            }
            | {"within": "10 s", **NEXT},
            "a1@0 a2@1 a3@2 b1@3 z1@4",
            ["z1: low upper"],
            id="a group before the last event",
        ),
        pytest.param(
            {"pattern": {"sequence": [{"ok": "type = 'b'"}, {"name": "f", "when": "type = 'a'", "times": 2}]}}
            | {"within": "10 s", **NEXT},
            "b1@0 a1@1 a2@2 z1@3",
            ["z1: low upper"],
            id="a group at the end",
        ),
        pytest.param(
            EQUAL | NEXT,
            WAITS + " b3@6=1,1 z2@7",
            ["z1: low", "z2: low upper upper"],
            id="what may be no match is none",
        ),
        pytest.param(
            EQUAL | NEXT,
            WAITS + " z2@10 z3@11",
            ["z1: low", "z3: low upper upper"],
            id="what may be no match is one",
        ),
        pytest.param(
            EQUAL | {"merge": "selection"},
            WAITS + " b3@6=1,1 z2@7",
            ["z1: low", "z2: low low upper upper upper"],
            id="a match waits until a selection closes",
        ),
        pytest.param(
            EQUAL | {"merge": "selection"},
            WAITS + " z2@10 z3@11",
            ["z1: low", "z3: low upper upper"],
            id="a match waits until a window ends",
        ),
        pytest.param(
            EQUAL | {"merge": "detection"}, WAITS, ["a3: low upper", "z1: low upper"], id="no match waits"
        ),
        pytest.param(
            EQUAL | {"merge": "selection", "context": "earliest, selected"},
            WAITS + " b3@6=1,1 z2@7",
            ["z1: low", "z2: low low upper upper upper"],
            id="events are used up",
        ),
        pytest.param(
            EQUAL | {"merge": "selection", "context": "latest, zero"},
            WAITS + " z2@11",
            ["z1: low", "z2: low upper upper"],
            id="found backwards",
        ),
        pytest.param(
            PAIR | {"where": "a.x = b.x", "merge": "selection"},
            "a1@0=1 a2@1=2 b1@2=2 a3@3=5 b2@4=5 z1@5 z2@11 z3@12 z4@14",
            ["z2: low low upper upper"],
            id="by join value",
        ),
        pytest.param(
            NOT_C | {"merge": "detection"}, "a1@0 b1@1 z1@5 z2@6", ["z2: low upper"], id="a negation"
        ),
        pytest.param(
            NOT_C | {"merge": "selection"},
            "a1@0 b1@1 a2@2 b2@3 z1@6 z2@8",
            ["z1: low upper", "z2: low upper"],
            id="a negation, by selection",
        ),
        pytest.param(
            {"span": {"every": "2 s", "size": "2 s"}, "emit": {"n": "count(*)"}},
            "a1@0 a2@1 z1@2 z2@5",
            ["z1: low upper", "z2: low upper"],
            id="windows on a grid",
        ),
        pytest.param(
            {"span": {"every": "2 s", "size": "4 s"}, "pattern": PAIR["pattern"], "merge": "selection"},
            "z0@0 a1@2 b1@3 z1@4 z2@5 z3@7",
            ["z1: low low upper upper"],
            id="a pattern in windows that overlap",
        ),
        pytest.param(
            {"span": {"gap": "2 s", "within": "3 s"}, "emit": {"n": "count(*)"}, "merge": "selection"},
            "a1@0 a2@2 a3@4 z1@6 z2@7 z3@20",
            ["a3: low upper", "z3: low upper"],
            id="sessions",
        ),
        pytest.param(
            BETWEEN
            | {
                "emit": {"n": "count(*)"},
                "where": "count(*) > 1",
                "merge": "selection",
                "partition_by": ["y"],
            },
            WAITS + " b3@6=1,1 z2@7",
            ["z1: low", "z2: low low upper upper upper"],
            id="spans between events",
        ),
        pytest.param(
            UNTIL | {"span": {"open": "type = 'o'", "close": "type = 'c'", "within": "1 h"}},
            "o1@0 " + IN_TURN + " z1@11 c1@25 z2@26",
            ["z2: low low upper upper"],
            id="an optional component in last place, in spans",
        ),
        pytest.param(
            {"pattern": {"sequence": [{"a": "type = 'a'"}, {"name": "n", "when": "type = 'n'", "not": True}]}}
            | {"span": {"open": "type = 'o'", "close": "type = 'c' and x = open.x", "within": "30 s"}}
            | {"within": "5 s", "context": "next, selected"},
            "o1@0=1 o2@1=2 a1@2 z1@8 c1@20=2 z2@21 z3@31",
            ["z3: low low upper upper"],
            id="a negation in a span that waits for an earlier one",
        ),
        pytest.param(
            {
                "fold": {
                    "initial": "off",
                    "moves": [
                        {"from": "off", "when": "type = 'a'", "to": "on"},
                        {"from": "on", "when": "type = 'b'", "to": "off"},
                    ],
                }
            },
            "a1 b1 z1",
            ["b1: low upper", "z1: low upper"],
            id="a fold",
        ),
    ],
)
def test_an_upper_match_comes_with_the_event_that_lets_its_last_one_out(
    low: dict[str, Any], events: str, expected: list[str], tmp_path: Path
) -> None:
    upper = {"name": "upper", "from": "low", "pattern": {"sequence": [{"m": "true"}]}}
    rules = loaded(tmp_path, [{"name": "low", **low}, upper])
    assert found(LocalRun(build_plan(rules, order=OrderSpec())), parse_events(events)) == expected


def test_a_match_behind_one_that_waited_for_an_earlier_window_is_out_for_the_rules_above(
    tmp_path: Path,
) -> None:
    upper = {"name": "upper", "from": "low", "pattern": {"sequence": [{"m": "true"}]}}
    rules = loaded(tmp_path, [{"name": "low", **UNTIL}, upper])
    local = LocalRun(build_plan(rules, order=OrderSpec()))
    step = local.step(table_of(rules[0], parse_events(IN_TURN + " a3@10.5 b3@11=2 z1@11.5")))
    assert step.matches["rule"].to_pylist() == ["low", "low", "low", "upper", "upper", "upper"]


BLOCK = re.compile(r"```yaml\n(?P<text>events: (?:(?!```).)*?name: incident.*?)```", re.DOTALL)
GUESSED = """
00:00 a connect 1,   00:10 a connect 2,   01:00 a fail,   01:01 a fail,   01:02 a fail,   01:03 a fail
01:04 a fail,   01:05 a accept,   05:00 b connect 1,   05:10 b connect 2,   06:00 b fail,   07:30 z other
"""


def test_the_incident_of_the_guide_is_out_with_its_last_alarm(tmp_path: Path) -> None:
    block = BLOCK.search((ROOT / "docs/rules/levels.md").read_text(encoding="utf-8"))
    assert block is not None
    (tmp_path / "rules.yaml").write_text(block["text"], encoding="utf-8")
    rules = load_rules(tmp_path / "rules.yaml")
    lines = [line.split() for line in re.split(r",\s+|\n", GUESSED.strip())]
    events = []
    for place, (at, ip, kind, *port) in enumerate(lines):
        minutes, seconds = at.split(":")
        time = (60 * int(minutes) + int(seconds)) * 1_000_000
        row = {"time": time, "id": at, "ip": ip, "kind": kind, "port": int(port[0]) if port else None}
        events.append(Event(time, "s", place, row))
    steps = found(LocalRun(build_plan(rules, order=OrderSpec())), events)
    assert steps == ["01:00: scan", "05:00: brute_force incident", "06:00: scan"]


def test_the_incident_of_the_cookbook_is_out_with_its_log_in() -> None:
    folder = ROOT / "examples/cookbook/incident"
    rules = load_rules(folder / "rule.yaml")
    lines = (folder / "events.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines] + [
        {"time": "2026-03-02T08:10:01Z", "ip": "z", "kind": "other"}
    ]
    names = [field.name for field in input_schema(rules).fields]
    events = []
    for place, row in enumerate(rows):
        time = int(datetime.fromisoformat(row["time"]).timestamp()) * 1_000_000
        known = dict.fromkeys(names) | row | {"time": time, "id": row["time"][11:19]}
        events.append(Event(time, "s", place, known))
    assert found(LocalRun(build_plan(rules, order=OrderSpec())), events)[-1] == "08:10:01: incident"


def restored(local: LocalRun, snapshot: bytes) -> LocalRun:
    local.levels = Levels(local.plan, snapshot)
    return local


def test_the_state_tells_of_what_waits(tmp_path: Path) -> None:
    low = {"name": "low", **EQUAL, "merge": "selection"}
    upper = {"name": "upper", "from": "low", "pattern": {"sequence": [{"m": "true"}]}}
    local = LocalRun(build_plan(loaded(tmp_path, [low, upper]), order=OrderSpec()))
    before, after = WAITS + " b3@6=1,1", "z2@7 a4@8=7,3 b4@9=7,3 z3@16"
    assert found(local, parse_events(before)) == ["z1: low"]
    expected = ["z2: low low upper upper upper", "z3: low upper"]
    assert found(restored(local, local.levels.snapshot()), parse_events(after)) == expected
