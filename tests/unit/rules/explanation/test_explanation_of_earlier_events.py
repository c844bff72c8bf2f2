"""What `explain` says of rules that look at the events before."""

from __future__ import annotations

from pathlib import Path

from spark_pace.rules import explain, explain_as_json, load_rules

RULES = """
events: {schema: "time TIMESTAMP, type STRING, x BIGINT, k STRING", event_time: time}
rules:
  - name: r
    filter: x <> prev(x)
    pattern: {sequence: [a: type = 'a', b: type = 'b']}
    where: prev(b.x, 2) = a.x and b.x > prev(b.x)
    within: 5 s
    emit: {before: prev(a.k)}
"""


def test_a_filter_and_conditions_that_look_back_are_told(tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text(RULES, encoding="utf-8")
    (rule,) = load_rules(tmp_path / "rules.yaml")
    assert [*explain(rule)[1:5]] == [
        "  filter       x <> prev(x, 1)  [splitter, in stream order]",
        "  sequence     a: type = 'a'  [intake, on whole columns]",
        "               b: type = 'b'  [intake]; x > prev(x, 1)  [splitter, in stream order]",
        "  where        prev(b.x, 2) = a.x  [on candidates]",
    ]
    told = explain_as_json(rule)
    assert told["carried"]["last_values"] == [
        "x of the last event before the filter",
        "x of the last 2 events",
        "k of the last event",
    ]
    (step,) = told["cost"]["search"]["steps"]
    assert step["equality"] == "prev(b.x, 2) = a.x"
