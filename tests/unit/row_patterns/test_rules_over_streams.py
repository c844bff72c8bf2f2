"""Row patterns as rules: when a match comes out, what is kept for it, and what `why` says."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any

import pyarrow as pa
import pytest

from spark_pace import load_rules, replay, why
from spark_pace.core.local_run import LocalRun
from spark_pace.core.order import OrderSpec
from spark_pace.core.plan.plan import build_plan
from spark_pace.core.plan.rule import Rule
from tests.oracle.stream import Event
from tests.support.results import from_core, micros, table_of

SECOND = 1_000_000
EVENTS = {"schema": "t TIMESTAMP, k STRING, x BIGINT", "event_time": "t"}
WITHIN = "WITHIN INTERVAL '9' SECOND"
FALL = "MEASURES LAST(b.x) AS low, COUNT(*) AS n PATTERN (a b+) %s DEFINE b AS x < PREV(x)"


def rule_of(clause: str, **keys: Any) -> Rule:
    (rule,) = load_rules({"events": EVENTS, "rules": [{"name": "r", "match_recognize": clause, **keys}]})
    return rule


def events_of(text: str) -> list[Event]:
    """Events written ``7@1.5``: their x, and their time in seconds."""
    pairs = [one.split("@") for one in text.split()]
    times = [int(float(at) * SECOND) for _, at in pairs]
    return [
        Event(time, "s", place, {"t": time, "k": "k", "x": int(x)})
        for place, ((x, _), time) in enumerate(zip(pairs, times, strict=True))
    ]


def told_by_event(rule: Rule, text: str) -> list[list[float]]:
    """The times of the matches that come out with each event, then with the end of the input."""
    local, told = LocalRun(build_plan([rule], order=OrderSpec())), []
    for event in events_of(text):
        step = local.step(table_of(rule, [event]))
        told.append([row["matched_at"] / SECOND for row in from_core(rule, step.matches)])
    step = local.step(None, finish=True)
    return [*told, [row["matched_at"] / SECOND for row in from_core(rule, step.matches)]]


SHORT = f"ORDER BY t {FALL % WITHIN}"
BACK = "ORDER BY t PATTERN (a b* c) WITHIN INTERVAL '9' SECOND DEFINE a AS x > 1, b AS x < 9, c AS x = 5"
NEXT = "ORDER BY t MEASURES NEXT(a.x) AS n PATTERN (a) DEFINE a AS x = 1"
OPTIONAL = "ORDER BY t PATTERN (a b?) DEFINE a AS x = 1, b AS x = 2"


@pytest.mark.parametrize(
    ("clause", "text", "told"),
    [
        # the first event that is no b decides, and is known where the frontier has passed it
        (SHORT, "9@0 7@1 5@2 6@3 7@4", [[], [], [], [], [3.0], []]),
        # else the end of the window does: the first time that is too late
        (SHORT, "9@0 7@1 5@8 4@9", [[], [], [], [9.0], []]),
        (SHORT, "9@0 7@1 5@8 4@12", [[], [], [], [9.0], []]),
        (SHORT, "9@0 7@1", [[], [], [9.0]]),
        # so it does where the preferred way could still be longer
        (BACK, "2@0 3@1 5@2 8@3 8@9 8@11", [[], [], [], [], [9.0], [], []]),
        # what NEXT reads must be there, or never come
        (NEXT, "1@0 2@1 3@2", [[], [], [1.0], []]),
        (NEXT, "2@0 1@1", [[], [], [1.0]]),
        # a bounded pattern is decided by its events
        (OPTIONAL, "1@0 1@1 2@2", [[], [], [1.0], [2.0]]),
    ],
)
def test_a_match_comes_out_where_no_event_can_change_it(
    clause: str, text: str, told: list[list[float]]
) -> None:
    assert told_by_event(rule_of(clause), text) == told


def test_rules_over_row_patterns_get_what_only_the_end_of_the_input_decides() -> None:
    lower = {
        "name": "lower",
        "match_recognize": f"PARTITION BY k {OPTIONAL.replace('PATTERN', 'MEASURES k AS o PATTERN')}",
    }
    upper = {
        "name": "upper",
        "from": "lower",
        "pattern": {"sequence": [{"m": "o = 'k'"}]},
        "emit": {"o": "m.o"},
    }
    rules = load_rules({"events": EVENTS, "rules": [lower, upper]})
    local = LocalRun(build_plan(rules, order=OrderSpec()))
    late = replace(events_of("3@60")[0], row={"t": 60 * SECOND, "k": "z", "x": 3}, offset=9)
    for event in (*events_of("1@0 2@1 1@2"), late):
        local.step(table_of(rules[0], [event]))
    matches = local.step(None, finish=True).matches
    assert [(row["rule"], micros(row["matched_at"]) // SECOND) for row in matches.to_pylist()] == [
        ("lower", 60),
        ("upper", 60),
    ]


def test_the_end_of_a_forgotten_key_decides() -> None:
    clause = f"PARTITION BY k ORDER BY t {FALL % ''}"
    rule = rule_of(clause, forget_key_after="3 s")
    assert told_by_event(rule, "9@0 7@1 8@5 6@6 9@7") == [[], [], [4.0], [], [], [7.0]]


def test_what_is_kept_is_what_a_window_holds_and_what_is_looked_back_at() -> None:
    clause = "ORDER BY t PATTERN (a b* c) WITHIN INTERVAL '5' SECOND DEFINE c AS x = 7 AND PREV(x, 2) = 0"
    local = LocalRun(build_plan([rule_of(clause)], order=OrderSpec()))
    carried = [
        local.step(table_of(rule_of(clause), events_of(f"1@{second}"))).stats["carry"] for second in range(40)
    ]
    assert carried[10:] == [4 + 2] * 30  # of the fifth event of a window nobody can know yet


def test_why_names_the_variables_and_the_matches_of_an_event() -> None:
    begin = datetime(2024, 5, 1, tzinfo=timezone.utc)
    values = [9, 7, 8, 6]
    rows = [{"t": begin + timedelta(seconds=second), "k": "k", "x": x} for second, x in enumerate(values)]
    clause = f"PARTITION BY k ORDER BY t {FALL % WITHIN}, a AS COUNT(a.x) < 2"
    rules, events = [rule_of(clause)], pa.Table.from_pylist(rows)
    (found, last) = replay(rules, events).matches.table.to_pylist()
    assert [one["component"] for one in found["events"]] == ["A", "B"]
    answer = why(rules, events, rule="r", at=1, key='{"k":"k"}')
    assert [(one.component, one.holds) for one in answer.components] == [("A", None), ("B", True)]
    (test,) = answer.components[1].conditions
    assert (test.condition, test.values) == ("x < prev(x, 1)", {"x": 7, "prev(x, 1)": 9})
    assert [one.out_seq for one in answer.matches] == [0]
    third = str(why(rules, events, rule="r", at=2, key='{"k":"k"}'))
    assert "A: count(A.x) < 2 depends on other events" in third
    assert "not told     where the search for a row pattern went from here, and why it went back" in third
    assert last["selection_id"] == 1
