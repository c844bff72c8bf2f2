"""The functions of the package's top: what they take, what they give, and how they refuse."""

from __future__ import annotations

import json
import pickle
from datetime import datetime
from decimal import Decimal
from html import escape
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import yaml

import spark_pace
from spark_pace.errors import ConfigError, EventError, RuleError
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


NOW = "2024-01-01T00:00:00Z"
KINDS = "a pyarrow.Table, a frame of pandas or polars, a list of dicts, or the path of files"
BUILD = "Name a file or folder by a path, or build a table."
NO_RECORD = "null in every record; a name in the schema that no record has?"
NO_TIME = "must have the column time, the event time; got"
RENAME = "Rename a column, or correct event_time in the rules."
CORRECT = "Correct it, or leave the row out."
EXPORTED = {name for name in spark_pace.__all__ if name != "__version__"}
WITH_A_JOB = {"read_table", "create_views", "detect"}  # their examples run in tests/spark/test_examples.py
MANY_TYPES = """
events:
  schema: "time TIMESTAMP, x DOUBLE, n BIGINT, d DECIMAL(5,2), day DATE, o STRUCT<id: BIGINT, at: TIMESTAMP>"
  event_time: time
rules: [{name: r, pattern: {sequence: [a: x > 0]}}]
"""


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
        (7, f"events — must be {KINDS}; got int. {BUILD}"),
        (None, f"events — must be {KINDS}; got NoneType. {BUILD}"),
        ([1], f"events — must be {KINDS}; got list. {BUILD}"),
        (pd.Series([1]), f"events — must be {KINDS}; got Series. {BUILD}"),
        (
            "nowhere.json",
            "nowhere.json — must be a file or directory of events; got nothing there. "
            "Give JSON lines, CSV with a header, or Parquet.",
        ),
        (
            [{"time": NOW, "x": 1.0}, {"time": "soon", "x": 1.0}],
            f"table, row 1: time — must be TIMESTAMP; got: 'soon'. {CORRECT}",
        ),
        ([{"x": 1.0}], f"table — {NO_TIME} the columns x. {RENAME}"),
        ([{}], f"table — {NO_TIME} no columns. {RENAME}"),
        (
            [{"time": None, "x": 1.0}],
            "table, row 0: time — must be an event time from 1900 to 2199; got nothing",
        ),
        (
            pd.DataFrame({"TIME": [NOW], "X": [1.0], 7: [8]}),
            f'table — {NO_TIME} the columns TIME, X, 7. Did you mean "TIME"?',
        ),
        (pl.DataFrame({"tme": [NOW]}), f'table — {NO_TIME} the columns tme. Did you mean "tme"?'),
        (
            pd.DataFrame({"time": [NOW], "x": [1.0]}).set_index("time"),
            f"table — {NO_TIME} the columns x. It is in the index: call reset_index().",
        ),
        (pd.DataFrame({"time": [NOW]})[[]], f"table — {NO_TIME} no columns. {RENAME}"),
        (pa.table({"x": [1.0]}), f"table — {NO_TIME} the columns x. {RENAME}"),
        (
            [{"time": NOW, "x": 1}, {"time": NOW, "x": "one"}],
            f"table, row 1: x — must be DOUBLE; got: 'one', of the type str. {CORRECT}",
        ),
        (
            [{"time": "2024-01-01", "x": 1}, {"time": TIMES[0], "x": 1}],
            f"table, row 1: time — must be of one type in all rows, str; got: {TIMES[0]!r}, "
            f"of the type datetime. {CORRECT}",
        ),
        (
            [{"time": NOW, "x": "one"}],
            "table: x — must be DOUBLE; got: a column of string. Build the column with that type.",
        ),
        (
            [{"time": NOW, "n": 1}, {"time": NOW, "n": 2**63}],
            f"table, row 1: n — must be BIGINT; got: 9223372036854775808, of the type int. {CORRECT}",
        ),
        (
            pd.DataFrame({"time": [NOW, NOW], "n": [1, None]}),
            'table: n — must be BIGINT; got: a column of double. In pandas, write .astype("Int64"), '
            "which has room for missing numbers.",
        ),
        (
            pd.DataFrame({"time": [NOW, NOW], "x": [1, "2"]}),
            f"table, row 1: x — must be DOUBLE; got: '2', of the type str. {CORRECT}",
        ),
        (
            [{"time": NOW, "d": Decimal("1.5")}, {"time": NOW, "d": Decimal("1.005")}],
            f"table, row 1: d — must be DECIMAL(5,2); got: Decimal('1.005'). {CORRECT}",
        ),
        (
            [{"time": NOW, "day": "2024-02-28"}, {"time": NOW, "day": "2024-02-30"}],
            f"table, row 1: day — must be DATE; got: '2024-02-30'. {CORRECT}",
        ),
        (
            [{"time": NOW, "o": {"id": 1}}, {"time": NOW, "o": {"id": "a"}}],
            f"table, row 1: o.id — must be BIGINT; got: {{'id': 'a'}}, of the type dict. {CORRECT}",
        ),
        (
            [{"time": NOW, "o": {"at": NOW}}],
            "table: o.at — must be TIMESTAMP; got: a column of string. Build the column with that type.",
        ),
        (
            pa.table([pa.array([NOW]), pa.array([NOW])], names=["time", "time"]),
            "table: time — must be TIMESTAMP; got: 2 columns of that name. Build the column with that type.",
        ),
    ],
)
def test_wrong_events_are_told_in_one_line(events: object, message: str) -> None:
    with pytest.raises((ConfigError, EventError)) as caught:
        spark_pace.replay(MANY_TYPES, events)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    "events", [[], as_table()[:0], as_table().to_pandas()[:0], pl.DataFrame(as_table())[:0]]
)
def test_no_events_are_no_mistake(events: object) -> None:
    assert repr(spark_pace.replay(TEXT, events)) == "0 records; matches: none"


@pytest.mark.parametrize(
    ("events", "told"),
    [
        (as_table().to_pandas().rename(columns={"x": "X"}), [f'x: {NO_RECORD} Did you mean "X"?']),
        (as_table().to_pandas().set_index("x"), [f"x: {NO_RECORD} It is in the index: call reset_index()."]),
        (as_table().to_pandas()[["time"]], [f"k, x: {NO_RECORD}"]),
        (pl.DataFrame(as_table()).rename({"x": "x<"}), [f'x: {NO_RECORD} Did you mean "x<"?']),
        (
            as_table().rename_columns(["time", "a", "X"]),
            [f'x: {NO_RECORD} Did you mean "X"?', f"k: {NO_RECORD}"],
        ),
        ([{"time": NOW, "X": 1.0}, {"time": NOW, "k": ""}], [f'x: {NO_RECORD} Did you mean "X"?']),
        ([{"time": NOW, "k": None}], [f"k, x: {NO_RECORD}"]),
    ],
)
def test_attributes_that_no_record_has_are_told_beside_the_matches(events: object, told: list[str]) -> None:
    found = spark_pace.replay(TEXT, events)
    count, *lines = repr(found).splitlines()
    assert count.endswith("; matches: none")
    assert lines == told
    assert all(f"<p>{escape(line)}</p>" in found._repr_html_() for line in (count, *told))


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


@pytest.mark.parametrize("kind", [pl.Categorical, pl.Enum(["v", "w", "<b>u</b>"])])
def test_categories_of_polars_are_texts(kind: Any) -> None:
    frame = pl.DataFrame(as_table()).with_columns(pl.col("k").cast(kind))
    found = spark_pace.replay(TEXT, frame)
    assert found.matches["k"].to_pylist() == ["<b>u</b>", None]
    assert len(spark_pace.replay(TEXT, pl.concat([frame[:1], frame[1:]], rechunk=False))) == 2
    assert len(spark_pace.replay(TEXT, frame[:0])) == 0
    with pytest.raises(EventError, match="table: x — must be DOUBLE; got: a column of string"):
        spark_pace.replay(TEXT, frame.with_columns(x=frame["k"]))


def test_categories_of_polars_inside_lists_and_structs_are_texts() -> None:
    rules = TEXT.replace("k STRING", "k STRING, tags ARRAY<STRING>, o STRUCT<s: STRING>").replace(
        "event_time: time", "event_time: time, tie_break: [x]"
    )
    rules = rules.replace("k: a.k", "k: a.o.s, tag: 'element_at(b.tags, 1)'")
    names = pl.Series(["a", "b", None, "d"], dtype=pl.Categorical)
    frame = pl.DataFrame(as_table()).with_columns(tags=names.reshape((4, 1)).arr.to_list(), s=names)
    found = spark_pace.replay(rules, frame.with_columns(o=pl.struct("s")))
    assert found.matches["k"].to_pylist() == ["a", None]
    assert found.matches["tag"].to_pylist() == ["b", "d"]


def test_columns_that_no_attribute_has_may_hold_anything() -> None:
    frame = as_table().to_pandas().assign(other=[1, "a", None, {}])
    dicts = [{**event, "other": value} for event, value in zip(EVENTS, [1, "a", None, {}], strict=True)]
    assert [len(spark_pace.replay(TEXT, events)) for events in (frame, dicts)] == [2, 2]


def test_wrong_rules_are_told_with_their_place() -> None:
    with pytest.raises(RuleError, match=r"rules:5:42 .*must name an attribute"):
        spark_pace.replay(TEXT.replace("x > 5", "y > 5"), EVENTS)
    with pytest.raises(RuleError, match="rules — must be a dict that YAML can say"):
        spark_pace.load_rules({"rules": [object()]})


def test_the_examples_of_the_documentation_run() -> None:
    assert tried(spark_pace, {}) > 4
    examples = {name: tried(getattr(spark_pace, name), {}) for name in EXPORTED - WITH_A_JOB}
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
    (tmp_path / "rules.yaml").write_text(TEXT, encoding="utf-8")
    events = as_file(tmp_path)
    asked = ("why", "rules.yaml", events.name, "--rule", "rise", "--at", "events.json:1")
    answer = spark_pace.why(TEXT, events, rule="rise", at="events.json:1")
    assert spark_pace_command(*asked, cwd=tmp_path).stdout == f"{answer}\n"


def test_polars_are_imported_by_nothing() -> None:
    asked = "import sys, spark_pace; spark_pace.replay; print('polars' in sys.modules)"
    assert called(SPARK_PACE.parent / "python", "-c", asked).stdout == "False\n"
