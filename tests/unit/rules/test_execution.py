"""What `explain` says of job files, of what reads JSON, and of rules over rules.

`test_golden_explanations.py` has what it says of single rules.
"""

from __future__ import annotations

from pathlib import Path

from spark_pace.job_file import rules_in
from spark_pace.rules import explain, explain_as_json, load_rules

RULES = """
events: {schema: "time TIMESTAMP, x BIGINT", event_time: time}
rules: [{name: r, pattern: {sequence: [a: x = 1, b: x = 2]}}]
"""


def test_it_says_what_reads_json() -> None:
    for text, told in {
        RULES: "compiled code, where much is read; records that are not plain by pyarrow",
        RULES.replace("x BIGINT", "x DECIMAL(5, 2)"): "pyarrow: compiled code does not know x DECIMAL(5,2)",
    }.items():
        assert f"  json         {told}" in explain(*load_rules(text))


def test_a_job_file_is_explained_by_its_rules() -> None:
    assert [rule.name for rule, _ in rules_in(["conf/jobs/flights.yaml"])] == [
        rule.name for rule in load_rules("conf/rules/flights.yaml")
    ]


def test_a_job_without_json_is_told_of_no_reader_of_json(tmp_path: Path) -> None:
    job = Path("conf/jobs/flights.yaml").read_text()
    for source_format in ("json", "csv", "parquet"):
        path = tmp_path / f"{source_format}.yaml"
        text = job.replace("format: json", f"format: {source_format}")
        path.write_text(text.replace("../rules", f"{Path('conf/rules').resolve()}"))
        for one in rules_in([path]):
            told = any(line.startswith("  json ") for line in explain(*one))
            assert told == (source_format == "json")


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


def test_it_says_what_a_rule_over_rules_reads_and_for_how_long_matches_wait() -> None:
    low, mid, top = load_rules(OVER_RULES)
    assert explain(mid)[1:4] == (
        "  levels       level: 1",
        "               reads: rule: low, waits: 20 s",
        "               waits: 20 s",
    )
    assert explain(top)[1:5] == (
        "  levels       level: 2",
        "               reads: rule: mid",
        "               reads: rule: events, condition: type = 'c'",
        "               waits: 20 s",
    )
    assert explain_as_json(mid)["parallel"]["why"].endswith("in the merger, on one core of the driver")
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


def test_it_counts_the_conditions_of_the_rule_alone() -> None:
    costs = [explain_as_json(rule)["cost"] for rule in load_rules(OVER_RULES)]
    assert [cost["conditions_per_event"] for cost in costs] == [2, 1, 2]


def test_it_warns_where_all_events_go_to_the_driver() -> None:
    _, state, sums, some = load_rules(ALL_EVENTS)
    warning = (
        "all events of the input go to one core of the driver; "
        "read a rule of one component instead, which picks those that are needed"
    )
    for rule in (state, sums):
        assert f"               warning: {warning}" in explain(rule)
        assert explain_as_json(rule)["levels"]["warning"] == warning
    assert explain_as_json(some)["levels"]["warning"] is None
    assert not any("warning" in line for line in explain(some))
