"""The functions of the package's top: what they take, what they give, and how they refuse."""

from __future__ import annotations

import json
import pickle
from datetime import datetime
from html import escape
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

import spark_pace
from spark_pace.errors import ConfigError, RuleError
from tests.support.commands import SPARK_PACE, called
from tests.support.commands import spark_pace as spark_pace_command
from tests.support.examples import tried

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


EXPORTED = {name for name in spark_pace.__all__ if name != "__version__"}
WITH_SPARK = {"read_table", "create_views", "detect", "sql"}  # their examples run in tests/spark


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
    path.write_text("".join(json.dumps(event) + "\n" for event in EVENTS))
    return path


@pytest.mark.parametrize(
    "kind",
    [
        "dicts",
        "table",
        "pandas",
        "texts in pandas",
        "polars",
        "texts in polars",
        "path",
        "text of a path",
        "folder",
    ],
)
def test_events_of_every_kind_have_the_same_matches(kind: str, tmp_path: Path) -> None:
    texts = as_table().set_column(0, "time", pa.array([event["time"] for event in EVENTS]))
    events: dict[str, object] = {
        "dicts": EVENTS,
        "table": as_table(),
        "pandas": as_table().to_pandas(),
        "texts in pandas": texts.to_pandas(),
        "polars": pl.DataFrame(as_table()),
        "texts in polars": pl.DataFrame(texts),
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
    path.write_text(TEXT)
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


def test_a_frame_keeps_integers_that_no_float_keeps_where_other_rules_have_none() -> None:
    rules = [
        {"name": name, "pattern": {"sequence": [{"a": f"id > {least}"}]}, "emit": {name: "a.id"}}
        for name, least in (("large", 2**60), ("any", 0))
    ]
    events = {"schema": "time TIMESTAMP, id BIGINT", "event_time": "time"}
    given = [{"time": f"2024-01-01T00:00:0{n}Z", "id": 2**60 + n} for n in (1, 3)]
    frame = spark_pace.replay({"events": events, "rules": rules}, given).to_pandas()
    assert sorted(frame["large"].dropna()) == [2**60 + 1, 2**60 + 3]
    assert str(frame["large"].dtype) == "Int64"
    assert str(frame["seq"].dtype) == "int64"


FAILING = """
events: {schema: "time TIMESTAMP, k STRING, x DOUBLE", event_time: time}
rules:
  - name: high
    span: {every: 10 s, size: 10 s}
    operator: tests.unit.project.test_python_api:rounded
    emit: {n: BIGINT}
"""


def rounded(span: Any) -> list[dict[str, object]]:
    x = span.opening["x"]
    if x > 8:
        raise ValueError("<x> is too large")
    return [{"n": x if x > 1 else 1}]


@pytest.mark.parametrize(
    ("first", "counts", "told"),
    [
        (0, "4 records; matches: high 1", "3 selections failed, the first: rule high, ValueError: <x>"),
        (
            3,
            "1 record; matches: none",
            "1 selection failed, the first: rule high, TypeError: emit n — must be ",
        ),
    ],
)
def test_failed_selections_are_told_beside_the_matches(first: int, counts: str, told: str) -> None:
    found = spark_pace.replay(FAILING, EVENTS[first:])
    shown, failures = repr(found).splitlines()
    assert shown == counts
    assert failures.startswith(told)
    assert f"<p>{escape(failures)}</p>" in found._repr_html_()


def test_the_first_bad_record_is_told_beside_its_number(tmp_path: Path) -> None:
    path = as_file(tmp_path)
    path.write_text(path.read_text().replace("9.0", '"nine"'))
    assert repr(spark_pace.replay(TEXT, path)) == (
        "4 records, 1 bad (events.json:L2 x — must be DOUBLE; got: a JSON string); matches: rise 2"
    )
    stored = tmp_path / "stored.parquet"
    pq.write_table(as_table().set_column(2, "x", as_table()["k"]), stored)
    assert repr(spark_pace.replay(TEXT, stored)) == (
        "1 record, 1 bad (stored.parquet:0 x — must be DOUBLE; got: a column of string); matches: none"
    )
    (tmp_path / "long.json").write_text("!" * 500)
    counts = repr(spark_pace.replay(TEXT, tmp_path / "long.json"))
    assert len(counts) < 210
    assert "\n" not in counts


def test_wrong_rules_are_told_with_their_place() -> None:
    with pytest.raises(RuleError, match=r"rules:5:42 .*must name an attribute"):
        spark_pace.replay(TEXT.replace("x > 5", "y > 5"), EVENTS)
    with pytest.raises(RuleError, match="rules — must be a dict that YAML can say"):
        spark_pace.load_rules({"rules": [object()]})


def test_the_examples_of_the_documentation_run() -> None:
    assert tried(spark_pace, {}) > 4
    examples = {name: tried(getattr(spark_pace, name), {}) for name in EXPORTED - WITH_SPARK}
    assert min(examples.values()) > 2


def test_help_tells_what_each_function_and_class_takes_and_gives() -> None:
    for name in EXPORTED:
        told = getattr(spark_pace, name).__doc__
        parts = () if name[0].isupper() else ("Args:", "Returns:", "Raises:")
        assert [part for part in (*parts, "Example:") if part not in told] == [], name
        assert "SKIP" not in told
    assert all(
        name in spark_pace.Matches.__doc__
        for name in spark_pace.replay(TEXT, EVENTS).matches.schema.names[:7]
    )


def test_one_rule_or_a_list_of_texts_are_rules_too() -> None:
    (rule,) = spark_pace.load_rules(TEXT)
    for rules in (rule, [rule], [TEXT], (TEXT,), [yaml.safe_load(TEXT)]):
        assert len(spark_pace.replay(rules, EVENTS)) == 2


def test_matches_show_themselves_and_are_what_arrow_takes() -> None:
    matches = spark_pace.replay(TEXT, EVENTS).matches
    assert (repr(matches), len(matches), matches.num_rows) == ("2 matches: rise 2", 2, 2)
    shown = matches._repr_html_()
    assert "<p>2 matches: rise 2</p>" in shown
    assert "&lt;b&gt;u&lt;/b&gt;" in shown
    assert matches.table.schema == matches.schema
    assert pa.table(matches).equals(matches.table)
    assert pl.DataFrame(matches)["to"].to_list() == [9.0, 7.0]
    assert matches.to_pandas()["to"].tolist() == [9.0, 7.0]
    assert pickle.loads(pickle.dumps(matches))["to"].to_pylist() == [9.0, 7.0]
    assert repr(spark_pace.replay(TEXT, EVENTS[:1]).matches) == "0 matches"
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        matches.nothing  # noqa: B018


def test_an_answer_prints_as_the_command_does(tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text(TEXT)
    events = as_file(tmp_path)
    asked = ("why", "rules.yaml", events.name, "--rule", "rise", "--at", "events.json:1")
    answer = spark_pace.why(TEXT, events, rule="rise", at="events.json:1")
    assert spark_pace_command(*asked, cwd=tmp_path).stdout == f"{answer}\n"


def test_polars_are_imported_by_nothing() -> None:
    asked = "import sys, spark_pace; spark_pace.replay; print('polars' in sys.modules)"
    assert called(SPARK_PACE.parent / "python", "-c", asked).stdout == "False\n"


@pytest.mark.parametrize("told", ["check", "explain"])
def test_rules_are_told_of_as_the_commands_do(told: str, tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text(TEXT)
    (tmp_path / "wrong.yaml").write_text(TEXT.replace("x > 5", "y > '<b>'"))
    path = tmp_path / ("wrong.yaml" if told == "check" else "rules.yaml")
    answer = spark_pace_command(told, path.name, cwd=tmp_path)
    shown = getattr(spark_pace, told)(path)
    assert repr(shown).replace(f"{tmp_path}/", "") == (answer.stderr or answer.stdout).rstrip("\n")
    assert escape(repr(shown)) in shown._repr_html_()
    assert "<b>" not in shown._repr_html_()


def test_rules_are_checked_without_an_error_whatever_says_them() -> None:
    loaded = spark_pace.load_rules(TEXT)
    for rules in (TEXT, yaml.safe_load(TEXT), [TEXT], loaded, "conf/jobs/flights.yaml"):
        assert repr(spark_pace.check(rules)) == "no problems"
        assert spark_pace.explain(rules).as_json()[0]["rule"] in ("rise", "three_airports_late")
    (problem,) = spark_pace.check("nowhere.yaml").problems
    assert problem.must == "must be a file that can be read"
    for function in (spark_pace.check, spark_pace.explain):
        with pytest.raises(ConfigError, match="rules — must be rules, or what says them; got int"):
            function(3)  # type: ignore[arg-type]
