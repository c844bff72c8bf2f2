"""What `explain` says of disjunctions."""

from __future__ import annotations

from pathlib import Path

from spark_pace.rules import explain, explain_as_json, load_rules


def test_a_disjunction_is_told_component_by_component(tmp_path: Path) -> None:
    path = tmp_path / "rules.yaml"
    path.write_text(
        """
events: {schema: "time TIMESTAMP, type STRING, x BIGINT", event_time: time}
rules:
  - name: r
    pattern:
      sequence:
        - a: type = 'a'
        - disjunction: [b: type = 'b' and x > prev(x), c: type = 'c']
    where: b.x = a.x and c.x < 9 and c.x > a.x
    within: 5 s
""",
        encoding="utf-8",
    )
    (rule,) = load_rules(path)
    lines = explain(rule)
    assert [*lines[2:7]] == [
        "               b or c: the first of these that an event matches",
        "                 b: type = 'b'  [intake]; x > prev(x, 1)  [splitter, in stream order]",
        "                 c: type = 'c' and x < 9  [intake, on whole columns]",
        "  where        b.x = a.x  [on candidates]",
        "  where        c.x > a.x  [on candidates]",
    ]
    (either,) = [one for one in explain_as_json(rule)["pattern"]["components"] if one["members"]]
    assert [one["name"] for one in either["members"]] == ["b", "c"]


def test_a_comparison_of_each_component_with_the_same_is_looked_up(tmp_path: Path) -> None:
    path = tmp_path / "rules.yaml"
    path.write_text(
        """
events: {schema: "time TIMESTAMP, type STRING, x BIGINT, y BIGINT", event_time: time}
rules:
  - name: r
    pattern: {sequence: [a: type = 'a', disjunction: [b: type = 'b', c: type = 'c']]}
    where: b.x = a.x and a.x = c.y and b.y >= a.y and c.y > a.y
    within: 5 s
  - name: s
    pattern: {sequence: [a: type = 'a', disjunction: [b: type = 'b', c: type = 'c']]}
    where: b.x = a.x and a.x = c.x
    within: 5 s
""",
        encoding="utf-8",
    )
    different, same = load_rules(path)
    (step,) = explain_as_json(different)["cost"]["search"]["steps"]
    assert step["equality"] == "b.x = a.x and a.x = c.y"
    assert step["evaluated"] == ["b.y >= a.y", "c.y > a.y"]
    assert explain_as_json(same)["key"]["join"] == "x"


def test_the_cost_of_each_alternative_of_a_disjunction_of_sequences_is_told(tmp_path: Path) -> None:
    path = tmp_path / "rules.yaml"
    path.write_text(
        """
events: {schema: "time TIMESTAMP, type STRING, x BIGINT", event_time: time}
rules:
  - name: r
    pattern: {disjunction: [{sequence: [a: type = 'a', b: type = 'b']}, c: type = 'c']}
    where: a.x + b.x > 3
    within: 5 s
""",
        encoding="utf-8",
    )
    (rule,) = load_rules(path)
    lines = explain(rule)
    assert "  in order     a, then b" in lines
    assert "               each initiator: each alternative by itself, as a sequence is" in lines
    assert lines[-1] == (
        "               grows with the tests: a, then b: initiators × (events of b in its window), at most: "
        "until one fits; c: their number; each that matches is a match"
    )
    pattern = explain_as_json(rule)["pattern"]
    assert (pattern["order"], pattern["sequences"]) == ("disjunction", [["a", "b"]])
