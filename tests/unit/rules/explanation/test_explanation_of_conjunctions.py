"""What `explain` says of conjunctions."""

from __future__ import annotations

from pathlib import Path

from spark_pace.rules import explain, explain_as_json, load_rules


def test_it_says_that_the_events_of_a_conjunction_come_in_any_order(tmp_path: Path) -> None:
    path = tmp_path / "rules.yaml"
    path.write_text(
        'events: {schema: "time TIMESTAMP, type STRING, x BIGINT", event_time: time}\n'
        "rules: [{name: r, pattern: {conjunction: [a: x = 1, b: x = 2]}, within: 5 s}]\n",
        encoding="utf-8",
    )
    (rule,) = load_rules(path)
    assert explain(rule)[1:4] == (
        "  conjunction  a: x = 1  [intake, on whole columns]",
        "               b: x = 2  [intake, on whole columns]",
        "  roles        in any order; an event that matches several may stand for any one of them",
    )


def test_it_says_which_components_of_a_conjunction_come_in_order(tmp_path: Path) -> None:
    path = tmp_path / "rules.yaml"
    path.write_text(
        'events: {schema: "time TIMESTAMP, type STRING, x BIGINT", event_time: time}\n'
        "rules: [{name: r, within: 5 s,"
        " pattern: {conjunction: [{sequence: [a: x = 1, b: x = 2]}, c: x = 3]}}]\n",
        encoding="utf-8",
    )
    (rule,) = load_rules(path)
    assert "  in order     a, then b" in explain(rule)
    pattern = explain_as_json(rule)["pattern"]
    assert (pattern["sequences"], pattern["where"]) == ([["a", "b"]], [])
