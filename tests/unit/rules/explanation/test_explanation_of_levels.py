"""What `explain` says of rules over rules."""

from pathlib import Path

from spark_pace.rules import explain, explain_as_json, load_rules

OVER_RULES = """
events: {schema: "time TIMESTAMP, type STRING, x BIGINT", event_time: time}
rules:
  - name: low
    pattern: {sequence: [a: type = 'a', b: type = 'b']}
    where: a.x = b.x
    within: 20 s
    emit: {x: a.x}
  - {name: mid, from: low, partition_by: [x], pattern: {sequence: [a: x > 1]}, emit: {y: a.x}}
  - name: top
    from: [mid, events]
    pattern: {sequence: [m: rule = 'mid', e: rule <> 'mid' and type = 'c']}
    within: 5 s
"""


def test_it_says_what_a_rule_over_rules_reads_and_for_how_long_matches_wait(tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text(OVER_RULES, encoding="utf-8")
    low, mid, top = load_rules(tmp_path / "rules.yaml")
    assert explain(mid)[:3] == (
        "rule mid",
        "  from         matches of low; one that waits does so for 20 s at most",
        "  level        1 above the rules over events; what it reads waits while a match below that waits may"
        " come before it, 20 s at most",
    )
    assert explain(top)[1:4] == (
        "  from         matches of mid",
        "               events of the input with type = 'c'",
        "  level        2 above the rules over events; what it reads waits while a match below that waits may"
        " come before it, 20 s at most",
    )
    assert "  parallel     nothing: rules over rules run in the merger, on one core of the driver" in explain(
        mid
    )
    assert explain_as_json(low)["levels"] is None
    told = explain_as_json(top)
    assert told["levels"] == {
        "level": 2,
        "reads": [
            {"rule": "mid", "condition": None, "waits": None},
            {"rule": "events", "condition": "type = 'c'", "waits": None},
        ],
        "waits": "20 s",
        "warning": None,
    }
    assert told["json"] is None
    assert not explain_as_json(mid)["parallel"]["buckets"]


ALL_EVENTS = """
events: {schema: "time TIMESTAMP, type STRING, x BIGINT", event_time: time}
rules:
  - {name: low, pattern: {sequence: [a: type = 'a']}, emit: {x: a.x}}
  - name: state
    from: [low, events]
    fold: {initial: "off", moves: [{from: "off", when: x > 1, to: "on"}, {from: "on", to: "off"}]}
  - {name: sums, from: [low, events], span: {every: 1 h, size: 1 h}, emit: {n: count(*)}}
  - {name: some, from: [low, events], filter: x > 5, span: {every: 1 h, size: 1 h}, emit: {n: count(*)}}
"""


def test_it_counts_the_conditions_of_the_rule_alone(tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text(OVER_RULES, encoding="utf-8")
    costs = [explain_as_json(rule)["cost"] for rule in load_rules(tmp_path / "rules.yaml")]
    assert [cost["conditions_per_event"] for cost in costs] == [2, 1, 2]


def test_it_warns_where_all_events_go_to_the_driver(tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text(ALL_EVENTS, encoding="utf-8")
    _, state, sums, some = load_rules(tmp_path / "rules.yaml")
    warning = (
        "all events of the input go to one core of the driver; "
        "read a rule of one component instead, which picks those that are needed"
    )
    for rule in (state, sums):
        assert f"  warning      {warning}" in explain(rule)
        assert explain_as_json(rule)["levels"]["warning"] == warning
    assert explain_as_json(some)["levels"]["warning"] is None
    assert not any("warning" in line for line in explain(some))
