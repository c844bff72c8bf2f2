"""Rules over rules: the golden cases, what is refused beside the golden files, and how the state is kept."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml

from spark_pace import load_rules, replay
from spark_pace.core.intake.pack import pack
from spark_pace.core.levels import Levels
from spark_pace.core.local_run import LocalRun, run
from spark_pace.core.merger import Merged
from spark_pace.core.operate.lane_matches import work_off
from spark_pace.core.operate.match_table import FAILED_SCHEMA
from spark_pace.core.order import OrderSpec, Progress
from spark_pace.core.plan.lower_rules import every_rule, input_schema, levels_of, over_input, readers_of
from spark_pace.core.plan.meaning import rule_parts
from spark_pace.core.plan.plan import build_plan
from spark_pace.core.plan.rule import Rule
from tests.oracle.levels import evaluate_levels
from tests.support.golden_cases import BESIDE, SCHEMA, SOURCE, beside, parse_events, parse_matches
from tests.support.results import Row, from_core, from_oracle, table_of

CASES = yaml.safe_load((Path(__file__).parents[2] / "golden/levels/levels.yaml").read_text())["cases"]


def loaded(rules: list[dict[str, Any]], schema: Any = SCHEMA) -> dict[str, Rule]:
    return {rule.name: rule for rule in load_rules(json.dumps({"events": schema, "rules": rules}, indent=1))}


def named(row: Row, ids: dict[int, str]) -> tuple[str, ...]:
    return tuple(
        ids[offset] if source == SOURCE else f"{source}#{offset}" for *_, source, offset in row["events"]
    )


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["note"].split()[0] + str(CASES.index(case)))
@pytest.mark.parametrize("by", ["core", "core, event by event", "oracle"])
def test_a_golden_case_of_levels_holds(case: dict[str, Any], by: str) -> None:
    rules = loaded(case["rules"])
    events = parse_events(case["events"])
    ids = {event.offset: event.row["id"] for event in events}
    read = next(rule for rule in rules.values() if not rule.reads)
    batches = [[event] for event in events] if by == "core, event by event" else [events]
    plan = build_plan(rules.values(), order=OrderSpec())
    matches = run(plan, [table_of(read, batch) for batch in batches]).matches
    found = evaluate_levels(rules.values(), events)
    for name, rule in rules.items():
        rows = from_core(rule, matches) if by != "oracle" else from_oracle(rule, found[name])
        expected = parse_matches(case["matches"][name])
        assert [named(row, ids) for row in rows] == [ids for _, ids in expected]
        for row, (selection, _) in zip(rows, expected, strict=True):
            assert selection in (None, row["selection_id"])
        for said in [said for said in BESIDE if name in case.get(said, {})]:
            assert [beside(row, said) for row in rows] == case[said][name]


CHAIN = [
    {"name": "low", "pattern": {"sequence": [{"a": "type = 'a'"}]}, "emit": {"x": "a.x"}},
    {"name": "mid", "from": "low", "pattern": {"sequence": [{"a": "x > 0"}]}, "emit": {"x": "a.x"}},
    {
        "name": "top",
        "from": ["mid", "events"],
        "pattern": {"sequence": [{"a": "rule = 'mid'"}, {"b": "type = 'b' and y = 1"}]},
        "within": "5 s",
        "emit": {"x": "a.x", "id": "b.id"},
    },
]


def test_a_rule_knows_those_that_it_reads_and_its_level() -> None:
    rules = loaded(CHAIN[::-1])
    assert list(rules) == ["top", "mid", "low"]
    assert [rule.name for rule in rules["top"].reads] == ["mid", "events of top"]
    assert levels_of(rules.values()) == {"top": 2, "mid": 1, "low": 0, "events of top": 0}
    assert readers_of({"low"}, [*rules.values()]) == {"low", "mid", "top"}
    assert readers_of({"mid"}, [*rules.values()]) == {"mid", "top"}
    assert input_schema([rules["top"]]) == rules["low"].schema


def test_events_are_handed_on_only_as_far_as_the_reader_can_want_them() -> None:
    rules = loaded(CHAIN)
    handing = rules["top"].reads[1]
    assert [field.name for field in handing.emit] == ["event.id", "event.type", "event.x", "event.y"]
    events = parse_events("a1=1,1 b1=1,1 b2=1,2 b3=1,1")
    local = LocalRun(build_plan(rules.values(), order=OrderSpec()))
    frames = [frame for _, frame in pack(local.plan, table_of(rules["low"], events))]
    handed = local.splitters[0].advance(frames, Progress(finish=True), partial(work_off, local.plan)).lanes
    assert [result.matches.num_rows for lane in handed for result in lane] == [1, 2]


def test_only_the_rules_that_are_asked_for_are_in_the_result() -> None:
    rules = loaded(CHAIN)
    events = pa.table({
        "time": pa.array([0, 1_000_000], pa.timestamp("us")),
        "id": ["a1", "b1"],
        "type": ["a", "b"],
        "x": [1, 1],
        "y": [1, 1],
    })  # fmt: skip
    matches = replay([rules["top"]], events).matches
    assert matches["rule"].to_pylist() == ["top"]
    assert "y" not in matches.column_names


def test_a_rule_means_something_else_where_a_rule_below_does() -> None:
    before = loaded(CHAIN)
    changed = loaded([CHAIN[0] | {"filter": "x < 9"}, *CHAIN[1:]])
    told = loaded([CHAIN[0] | {"description": "Told otherwise."}, *CHAIN[1:]])
    for name in ("low", "mid", "top"):
        assert rule_parts(before[name]) != rule_parts(changed[name])
        assert rule_parts(before[name]) == rule_parts(told[name])
    assert rule_parts(before["top"])["from"].startswith("mid ")
    assert rule_parts(before["top"])["from"].endswith(", events")


def test_an_attribute_more_changes_no_rule_that_reads_events_beside_matches() -> None:
    before = loaded(CHAIN)
    more = loaded(CHAIN, SCHEMA | {"schema": f"{SCHEMA['schema']}, z DOUBLE"})
    assert [rule_parts(rule) for rule in every_rule(before.values())] == [
        rule_parts(rule) for rule in every_rule(more.values())
    ]


def test_rules_are_put_over_another_schema_of_the_input_with_those_that_they_read() -> None:
    rules = loaded(CHAIN)
    other = replace(rules["low"].schema, tie_break=("id",))
    moved = over_input(rules.values(), other)
    assert [rule.schema for rule in every_rule(moved) if not rule.reads] == [other, other]
    assert [rule.schema for rule in moved[1:]] == [rules["mid"].schema, rules["top"].schema]


PAIR = {
    "name": "low",
    "partition_by": ["y"],
    "pattern": {"sequence": [{"a": "type = 'a'"}, {"b": "type = 'b'"}]},
    "where": "a.x = b.x",
    "within": "5 s",
    "emit": {"x": "a.x"},
}


@pytest.mark.parametrize(("low", "waiting"), [(PAIR, 1), (PAIR | {"within": "6 s"}, 0)])
def test_the_state_of_a_level_goes_to_the_same_rules_over_the_same_rules(
    low: dict[str, Any], waiting: int
) -> None:
    rules = loaded([PAIR, *CHAIN[1:]])
    local = LocalRun(build_plan(rules.values(), order=OrderSpec()))
    # the match of a2 and b1 waits for the selection of a1, and that of the other key for it
    events = parse_events("a1=1,1 a2=2,1 b1=2,1 a3=1,2 b2=1,2 c1=1,1")
    step = local.step(table_of(rules["low"], events))
    assert step.matches["rule"].to_pylist() == ["low"]
    assert local.levels.standing == {"pending": 2, "carry": 0, "open": 0}  # b1, which is handed on, waits too
    others = loaded([low, *CHAIN[1:]])
    kept = Levels(build_plan([others["low"], others["mid"]], order=OrderSpec()), local.levels.snapshot())
    merged = kept.advance(Merged((others["mid"],), {}, FAILED_SCHEMA.empty_table(), {}), 0, 20_000_000)
    assert merged.matches.num_rows == waiting


def test_a_match_of_the_third_level_is_in_the_batch_of_its_last_event() -> None:
    pair = {"within": "5 s", "merge": "detection", "emit": {"x": "a.x"}}
    low = pair | {"name": "low", "pattern": {"sequence": [{"a": "type = 'a'"}, {"b": "type = 'b'"}]}}
    mid = pair | {"name": "mid", "from": "low", "pattern": {"sequence": [{"a": "x = 1"}, {"b": "x = 2"}]}}
    top = pair | {"name": "top", "from": ["mid", "low"], "pattern": {"sequence": [{"a": "rule = 'mid'"}]}}
    rules = loaded([low, mid, top])
    local = LocalRun(build_plan(rules.values(), order=OrderSpec()))
    found = [
        local.step(table_of(rules["low"], [event])).matches["rule"].to_pylist()
        for event in parse_events("a1=1 b1 a2=2 b2 z1")
    ]
    assert found == [[], [], ["low"], [], ["low", "mid", "top"]]
