"""The functions of the package's top: what they take, what they give, and how they refuse."""

from __future__ import annotations

import doctest
import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
import yaml

import spark_pace
from spark_pace.errors import ConfigError, EventError, RuleError
from tests.support.commands import SPARK_PACE, called

TEXT = """
events: {schema: "time TIMESTAMP, k STRING, x DOUBLE", event_time: time}
rules:
  - name: rise
    pattern: {sequence: [{a: x < 5}, {b: x > 5}]}
    within: 1 min
    emit: {k: a.k, to: b.x}
"""
EVENTS: list[dict[str, Any]] = [
    {"time": "2024-01-01T00:00:00Z", "k": "<b>u</b>", "x": 1.0},
    {"time": "2024-01-01T00:00:10.5Z", "k": "v", "x": 9.0},
    {"time": "2024-01-01T00:00:20+00:00", "x": 2.0},
    {"time": "2024-01-01T00:00:30Z", "k": "w", "x": 7.0},
]
TIMES = [datetime.fromisoformat(event["time"].replace("Z", "+00:00")) for event in EVENTS]


class Stream:
    """What has the stream of Arrow and nothing else, as frames of polars have."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


def as_table() -> pa.Table:
    return pa.table(
        {
            "time": pa.array([time.replace(tzinfo=None) for time in TIMES], pa.timestamp("us")),
            "k": [event.get("k") for event in EVENTS],
            "x": [event["x"] for event in EVENTS],
        }
    )


def as_file(folder: Path) -> Path:
    path = folder / "events.json"
    path.write_text("".join(json.dumps(event) + "\n" for event in EVENTS), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "kind", ["dicts", "table", "pandas", "texts in pandas", "stream", "path", "text of a path", "folder"]
)
def test_events_of_every_kind_have_the_same_matches(kind: str, tmp_path: Path) -> None:
    texts = as_table().set_column(0, "time", pa.array([event["time"] for event in EVENTS]))
    events: dict[str, object] = {
        "dicts": EVENTS,
        "table": as_table(),
        "pandas": as_table().to_pandas(),
        "texts in pandas": texts.to_pandas(),
        "stream": Stream(as_table()),
        "path": as_file(tmp_path),
        "text of a path": str(tmp_path / "events.json"),
        "folder": tmp_path,
    }
    found = spark_pace.replay(TEXT, events[kind])
    assert found.matches["to"].to_pylist() == [9.0, 7.0]
    assert found.matches["matched_at"].to_pylist() == [TIMES[1], TIMES[3]]
    assert (len(found), found.read_rows, repr(found)) == (2, 4, "4 records; matches: rise 2")


def test_rules_are_a_path_a_text_a_dict_or_what_was_loaded(tmp_path: Path) -> None:
    path = tmp_path / "rules.yaml"
    path.write_text(TEXT, encoding="utf-8")
    loaded = spark_pace.load_rules(path)
    for rules in (path, str(path), TEXT, yaml.safe_load(TEXT), loaded):
        assert spark_pace.replay(rules, EVENTS).matches.num_rows == 2
    assert spark_pace.load_rules([TEXT]) == spark_pace.load_rules(yaml.safe_load(TEXT)) == loaded


def test_types_are_there_when_somebody_asks_for_them() -> None:
    (rule,) = spark_pace.load_rules(TEXT)
    assert isinstance(rule, spark_pace.Rule)
    assert isinstance(rule.schema, spark_pace.EventSchema)
    assert isinstance(spark_pace.replay([rule], EVENTS), spark_pace.Replay)
    assert isinstance(spark_pace.why([rule], EVENTS, rule="rise", at=0), spark_pace.Why)
    with pytest.raises(AttributeError, match="no attribute 'Rules'"):
        spark_pace.Rules  # noqa: B018


def test_a_notebook_shows_a_table_and_acts_on_nothing_in_it() -> None:
    shown = spark_pace.replay(TEXT, EVENTS)._repr_html_()
    assert "&lt;b&gt;u&lt;/b&gt;" in shown
    assert "<b>" not in shown
    assert "4 records; matches: rise 2" in shown
    assert "a#0 b#1" in shown
    many = [{**event, "time": TIMES[0]} for event in EVENTS[:1]] * 50
    rules = TEXT.replace("{a: x < 5}, {b: x > 5}", "{b: x < 5}").replace("a.k", "b.k")
    shown = spark_pace.replay(rules, many)._repr_html_()
    assert shown.count("<tr>") == 41
    assert "and 10 more" in shown


def test_a_frame_of_the_matches_has_their_columns() -> None:
    found = spark_pace.replay(TEXT, EVENTS)
    frame = found.to_pandas()
    assert isinstance(frame, pd.DataFrame)
    assert list(frame.columns) == found.matches.column_names
    assert frame["to"].tolist() == [9.0, 7.0]


@pytest.mark.parametrize(
    ("events", "message"),
    [
        (7, "events — must be a pyarrow.Table, a frame of pandas or polars, a list of dicts, or the path"),
        ("nowhere.json", "nowhere.json — must be a file or directory of events; got nothing there"),
        ([{"time": "soon", "x": 1.0}], "events: time — must be TIMESTAMP; got: .*soon"),
        ([{"x": 1.0}], "table, row 0: time — must be an event time"),
        ([{"time": 1, "x": {}}, {"time": "a", "x": 1}], "events — must be columns of one type each"),
        ([{"time": TIMES[0], "x": "one"}], "x — must be DOUBLE; got: a column of string"),
    ],
)
def test_wrong_events_are_told_in_one_line(events: object, message: str) -> None:
    with pytest.raises((ConfigError, EventError), match=message) as caught:
        spark_pace.replay(TEXT, events)
    assert "\n" not in str(caught.value)


def test_wrong_rules_are_told_with_their_place() -> None:
    with pytest.raises(RuleError, match=r"rules:5:42 .*must name an attribute"):
        spark_pace.replay(TEXT.replace("x > 5", "y > 5"), EVENTS)
    with pytest.raises(RuleError, match="rules — must be a dict that YAML can say"):
        spark_pace.load_rules({"rules": [object()]})


def test_the_examples_of_the_documentation_run() -> None:
    assert doctest.testmod(spark_pace).failed == 0
    assert doctest.testmod(spark_pace).attempted > 4


def test_help_tells_what_each_function_takes_and_gives() -> None:
    for name in ("load_rules", "replay", "why", "read_table", "create_views", "detect"):
        told = getattr(spark_pace, name).__doc__
        assert "Args:" in told
        assert "Raises:" in told
    assert "matched_at" in spark_pace.replay.__doc__


def test_polars_need_not_be_there() -> None:
    asked = "import sys, spark_pace; spark_pace.replay; print('polars' in sys.modules)"
    assert called(SPARK_PACE.parent / "python", "-c", asked).stdout == "False\n"
