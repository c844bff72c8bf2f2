"""What `explain` says of rules with a span: whether panes or events are carried, and what bounds them."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_pace.rules import explain, load_rules


@pytest.mark.parametrize(
    ("field", "carried"),
    [
        (
            "count(distinct x)",
            "the events of spans that are not closed, for count(distinct x) needs all values at once",
        ),
        (
            "median(x) + avg(x)",
            "the events of spans that are not closed, for median(x) needs all values at once",
        ),
        (
            "approx_count_distinct(x)",
            "a row for each pane of 2 s and key, with 1 sketch of 512 bytes, in spans that are not closed",
        ),
        ("sum(x * 2)", "a row for each pane of 2 s and key, in spans that are not closed"),
    ],
)
def test_it_says_what_an_aggregate_keeps(tmp_path: Path, field: str, carried: str) -> None:
    path = tmp_path / "rules.yaml"
    path.write_text(
        f"""
events: {{schema: "time TIMESTAMP, type STRING, x BIGINT", event_time: time}}
rules:
  - {{name: r, partition_by: [type], span: {{every: 4 s, size: 6 s}}, emit: {{value: {field}}}}}
""",
        encoding="utf-8",
    )
    (rule,) = load_rules(path)
    lines = explain(rule)
    assert any(line.startswith(f"  carried      {carried};") for line in lines), lines
    sorts = any("whose values are sorted for each span" in line for line in lines)
    assert sorts == ("at once" in carried)


@pytest.mark.parametrize(
    ("span", "carried"),
    [
        ("{every: 4 s, size: 6 s}", "a row for each pane of 2 s and key, in spans that are not closed"),
        ("{every: 1 s, size: 1 d}", "a row for each pane of 1 s and key, in spans that are not closed"),
        ("{every: 4 events, size: 6 events}", "the events of spans that are not closed"),
    ],
)
def test_it_says_whether_panes_or_events_are_carried(tmp_path: Path, span: str, carried: str) -> None:
    path = tmp_path / "rules.yaml"
    path.write_text(
        f"""
events: {{schema: "time TIMESTAMP, type STRING, x BIGINT", event_time: time}}
rules:
  - {{name: r, partition_by: [type], span: {span}, emit: {{mean: avg(x)}}}}
""",
        encoding="utf-8",
    )
    (rule,) = load_rules(path)
    assert any(line.startswith(f"  carried      {carried};") for line in explain(rule))
