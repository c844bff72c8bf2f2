"""What `explain` says of groups that read what they have so far, and of optional ones in first place."""

from __future__ import annotations

from pathlib import Path

from spark_pace.rules import explain, explain_as_json, load_rules


def test_a_group_is_told_with_where_it_begins_and_what_it_asks(tmp_path: Path) -> None:
    path = tmp_path / "rules.yaml"
    path.write_text(
        """
events: {schema: "time TIMESTAMP, type STRING, x BIGINT", event_time: time}
rules:
  - name: r
    pattern:
      sequence:
        - {name: a, when: "type = 'a' and x > last(a.x)", times: 0+}
        - {name: n, when: type = 'n', not: true}
        - {name: b, when: type = 'b', follows: relaxed}
    within: 5 s
""",
        encoding="utf-8",
    )
    (rule,) = load_rules(path)
    lines = explain(rule)
    assert [*lines[1:6]] == [
        "  sequence     a 0+: type = 'a'  [intake, on whole columns]",
        "               not n: type = 'n'  [intake, on whole columns]",
        "               b: type = 'b'  [intake, on whole columns]",
        "  group        a: every event that matches it from the initiator on, before b, unless that is the "
        "initiator, those behind the first only with a.x > last(a.x) of the events so far; 0 or more",
        "  forbids      n: an event that matches it between the last a (if there is one) and b",
    ]
    components = explain_as_json(rule)["pattern"]["components"]
    assert [one["further"] for one in components] == ["a.x > last(a.x)", None, None]
