"""What `explain` says of a rule's cost is what a run does: it calls what is named, and nothing dearer."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from spark_pace.core.match.contexts import CONTEXTS
from spark_pace.core.plan.rule import Rule
from spark_pace.io.replay import replay_files
from spark_pace.rules import explain, explain_as_json, load_rules
from spark_pace.rules.cost import METHODS
from tests.support.commands import spark_pace

COMPILED = {"completing", "walking", "least_of", "greatest_of", "decided"}
DEAR = {*COMPILED, "_within_horizons", "chosen", "queues", "earliest_unused", "in_turn", "in_turn_by_columns"}
OF_BEST = {"latest, zero": "greatest_of", "earliest, zero": "least_of"}
OF_ALL: dict[str, set[str]] = {**{one: {"chosen"} for one in OF_BEST}, "earliest, selected": set()}
OF_CLOSED = {"evaluated": {"chosen"}}
OF_CLOSED |= {form: {"greatest_of"} for form in ("two compared", "compared", "calculated", "group")}
SEQUENCES = {
    "plain": ("a: type = 'a', b: type = 'b', c: type = 'c'", ""),
    "two": ("a: type = 'a', b: type = 'b'", ""),
    "equal": ("a: type = 'a', b: type = 'b'", "a.x = b.x"),
    "two compared": ("a: type = 'a', b: type = 'b'", "a.x < b.x"),
    "compared": ("a: type = 'a', b: type = 'b', c: type = 'c'", "a.x = b.x and c.x > a.x"),
    "calculated": ("a: type = 'a', b: type = 'b', c: type = 'c'", "a.x + b.x < c.x"),
    "evaluated": ("a: type = 'a', b: type = 'b', c: type = 'c'", "a.type || b.type < c.type"),
    "none behind": ("a: type = 'a', {name: n, when: type = 'b', not: true}", ""),
    "group": ("a: type = 'a', {name: g, when: x = 1, times: 0+}, c: type = 'c'", "a.x = c.x"),
}


def rule_of(components: str, rest: str, order: str = "sequence") -> Rule:
    (rule,) = load_rules(
        'events: {schema: "time TIMESTAMP, type STRING, x BIGINT", event_time: time}\n'
        f"rules: [{{name: r, pattern: {{{order}: [{components}]}}, {rest}}}]\n"
    )
    return rule


@pytest.fixture
def events(tmp_path: Path) -> Path:
    path = tmp_path / "events.json"
    lines = [
        json.dumps({"time": f"2024-01-01T00:00:{second:02}Z", "type": "abc"[second % 3], "x": second % 4})
        for second in range(24)
    ]
    path.write_text("\n".join(lines) + "\n")
    return path


def called_in(rule: Any, events: Path, named: set[str] = DEAR) -> set[str]:
    """Those of some functions of `core.match` that a replay of the rule calls."""
    called = set()

    def note(frame: FrameType, event: str, argument: object) -> None:
        if event == "call" and frame.f_code.co_name in named and "/core/match/" in frame.f_code.co_filename:
            called.add(frame.f_code.co_name)

    before = sys.gettrace()
    sys.settrace(note)
    try:
        replay_files([rule], events)
    finally:
        sys.settrace(before)
    return called


def expected(context: str, form: str, told: dict[str, Any]) -> set[str]:
    """The dear functions that a search of this kind goes through."""
    by_method = {
        "nearest": set[str](),
        "in order": {"earliest_unused"},
        "production_sets": set(),
        "walk": {OF_BEST.get(context, "walking")} if told["compiled"] else set(),
        "in turn": {"in_turn", *(["decided"] if told["compiled"] else ["in_turn_by_columns", "chosen"])},
        "first candidate": {OF_BEST.get(context, "completing")},
        "all candidates": OF_ALL.get(context, {"_within_horizons"}),
    }
    of_closed = OF_CLOSED.get(form, set[str]()) if context == "latest, selected" else set()
    return by_method[told["method"]] | of_closed


@pytest.mark.parametrize("context", sorted({str(one.value) for one in CONTEXTS.values()}))
def test_a_run_searches_as_it_says(context: str, events: Path) -> None:
    told, seen = {}, {}
    for form, (sequence, where) in SEQUENCES.items():
        rest = f"context: '{context}', within: 8 s" + (f", where: {where}" if where else "")
        rule = rule_of(sequence, rest)
        told[form] = expected(context, form, explain_as_json(rule)["cost"]["search"])
        seen[form] = called_in(rule, events)
    assert seen == told


@pytest.mark.parametrize(
    ("components", "within", "method"),
    [
        ("a: type = 'a', b: type = 'b', c: type = 'c'", "", "production_sets"),
        ("a: type = 'a', b: type = 'b'", ", within: 8 s", "production_sets"),
        ("a: type = 'a', b: type = 'b', c: type = 'c'", ", within: 8 s", "in order"),
    ],
)
def test_lists_of_production_sets_are_taken_where_they_are_exact(
    events: Path, components: str, within: str, method: str
) -> None:
    rule = rule_of(components, f"context: 'earliest, selected'{within}")
    assert explain_as_json(rule)["cost"]["search"]["method"] == method
    of_lists = called_in(rule, events, {"production_sets", "in_order"})
    assert of_lists == {{"in order": "in_order"}.get(method, method)}


CONJUNCTIONS = {
    "nearest set": ("a: type = 'a', b: type = 'b', c: type = 'c'", ""),
    "any order": ("a: type = 'a', b: type = 'b', c: type = 'c', d: x = 1", "a.x < b.x"),
    "all candidates": ("a: type = 'a', b: type = 'b', c: type = 'c'", "a.x <=> b.x"),
}


@pytest.mark.parametrize("method", CONJUNCTIONS)
def test_a_run_searches_conjunctions_as_it_says(method: str, events: Path) -> None:
    components, where = CONJUNCTIONS[method]
    rest = "context: 'latest, zero', within: 8 s" + (f", where: {where}" if where else "")
    rule = rule_of(components, rest, "conjunction")
    cost = explain_as_json(rule)["cost"]
    assert (cost["search"]["method"], cost["search"]["each"]) == (method, "terminator")
    assert cost["search"]["compiled"] == (method != "all candidates")
    assert cost["dominant"] == ("events" if method == "nearest set" else "candidates")
    assert any(METHODS[method] in line for line in explain(rule))
    called = {
        "nearest set": {"greatest_of"},
        "any order": {"greatest_of"},
        "all candidates": {"chosen", "ending_with"},
    }
    found = called_in(rule, events, {*DEAR, "ending_with"})
    assert found == called[method]


@pytest.mark.parametrize(
    ("where", "method", "dominant"),
    [("", "in order", "events"), (", where: a.x < b.x", "in turn", "candidates")],
)
def test_conjunctions_that_use_events_up_cost_what_their_conditions_do(
    where: str, method: str, dominant: str
) -> None:
    rest = f"context: 'earliest, selected', within: 8 s{where}"
    rule = rule_of(SEQUENCES["plain"][0], rest, "conjunction")
    cost = explain_as_json(rule)["cost"]
    assert (cost["search"]["method"], cost["dominant"]) == (method, dominant)


def test_the_command_writes_an_object_for_each_rule() -> None:
    answer = spark_pace("explain", "--json", "conf/rules/flights.yaml")
    told = [json.loads(line) for line in answer.stdout.splitlines()]
    assert [one["rule"] for one in told] == ["three_airports_late", "knock_on", "slow_hour"]
    assert [one["key"]["partition_by"] for one in told] == [[], ["tailnum"], ["origin"]]
