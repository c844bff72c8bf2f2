"""Tables of events in memory: what they may hold, and what is told of columns that they lack."""

from __future__ import annotations

from datetime import datetime, timezone
from decimal import Decimal
from html import escape
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import spark_pace
from spark_pace.errors import ConfigError, EventError
from tests.unit.project.test_python_api import EVENTS, TEXT, TIMES, as_table

NOW = "2024-01-01T00:00:00Z"
KINDS = "a pyarrow.Table, a frame of pandas or polars, a list of dicts, or the path of files"
BUILD = "Name a file or folder by a path, or build a table."
NO_RECORD = "null in every record; a name in the schema that no record has?"
NO_TIME = "must have the column time, the event time; got"
RENAME = "Rename a column, or correct event_time in the rules."
CORRECT = "Correct it, or leave the row out."
SAME = ", and of one type in all rows"
COLUMN = "Build one column of that type."
MANY_TYPES = """
events:
  schema: "time TIMESTAMP, x DOUBLE, n BIGINT, d DECIMAL(5,2), day DATE, o STRUCT<id: BIGINT, at: TIMESTAMP>"
  event_time: time
rules: [{name: r, pattern: {sequence: [a: x > 0]}}]
"""


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
            "Give JSON lines, CSV with a header, or Parquet; for lines of text, events needs the key text.",
        ),
        (
            [{"time": NOW, "x": 1.0}, {"time": "soon", "x": 1.0}],
            f"table, row 1: time — must be TIMESTAMP; got: 'soon'. {CORRECT}",
        ),
        ([{"x": 1.0}], f"table — {NO_TIME} the columns x. {RENAME}"),
        ([{}], f"table — {NO_TIME} no columns. {RENAME}"),
        (
            [{"time": None, "x": 1.0}],
            f"table, row 0: time — must be an event time from 1900 to 2199; got nothing. {CORRECT}",
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
            f"table, row 1: x — must be DOUBLE{SAME}; got: 'one', of the type str. {CORRECT}",
        ),
        (
            [{"time": "2024-01-01", "x": 1}, {"time": TIMES[0], "x": 1}],
            f"table, row 1: time — must be TIMESTAMP{SAME}; got: {TIMES[0]!r}, of the type datetime. "
            f"{CORRECT}",
        ),
        (
            [{"time": NOW, "x": "one"}],
            f"table: x — must be DOUBLE; got: a column of string. {COLUMN}",
        ),
        (
            [{"time": NOW, "n": 1}, {"time": NOW, "n": 2**63}],
            f"table, row 1: n — must be BIGINT{SAME}; got: 9223372036854775808, of the type int. {CORRECT}",
        ),
        (
            pd.DataFrame({"time": [NOW, NOW], "n": [1, None]}),
            f"table: n — must be BIGINT; got: a column of double. {COLUMN}",
        ),
        (
            pd.DataFrame({"time": [NOW, NOW], "x": ["a", "b"], "n": [1.5, None], "day": [1, "2024-01-01"]}),
            f"table, row 1: day — must be DATE{SAME}; got: '2024-01-01', of the type str. {CORRECT}\n"
            f"table: x — must be DOUBLE; got: a column of string. {COLUMN}\n"
            f"table: n — must be BIGINT; got: a column of double. {COLUMN}",
        ),
        (
            pd.DataFrame({"time": [NOW, NOW], "x": [1, "2"]}),
            f"table, row 1: x — must be DOUBLE{SAME}; got: '2', of the type str. {CORRECT}",
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
            f"table, row 1: o — must be STRUCT{SAME}; got: {{'id': 'a'}}, of the type dict. {CORRECT}",
        ),
        (
            [{"time": NOW, "o": {"at": NOW}}],
            f"table: o.at — must be TIMESTAMP; got: a column of string. {COLUMN}",
        ),
        (
            pa.table([pa.array([NOW]), pa.array([NOW])], names=["time", "time"]),
            "table: time — must be TIMESTAMP; got: 2 columns of that name. Build one column of that type. "
            "Or, if it has integers, declare it BIGINT, with time_unit: s in events.",
        ),
    ],
)
def test_wrong_events_are_told_in_one_line(events: object, message: str) -> None:
    with pytest.raises((ConfigError, EventError)) as caught:
        spark_pace.replay(MANY_TYPES, events)
    assert str(caught.value) == message


def at(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, timezone.utc).replace(tzinfo=None)


DECIMALS = """
events: {schema: "time TIMESTAMP, d DECIMAL(5,2)", event_time: time}
rules: [{name: r, pattern: {sequence: [a: "true"]}, emit: {d: a.d}}]
"""


@pytest.mark.parametrize(
    "values",
    [
        [12, None, -999],
        [Decimal("12"), None, -999],
        [12, None, Decimal("-999.00")],
        [np.int16(12), None, Decimal("-999.00")],
    ],
)
def test_integers_are_decimals_where_they_fit(values: Any) -> None:
    frame = pd.DataFrame({"time": [f"2024-01-01T00:00:0{n}Z" for n in range(3)], "d": values}, dtype=object)
    for events in (frame, frame.astype(object).where(frame.notna(), None).to_dict("records")):
        found = spark_pace.replay(DECIMALS, events).matches["d"].to_pylist()
        assert found == [Decimal("12.00"), None, Decimal("-999.00")]


@pytest.mark.parametrize("kind", ["Int64", "int64", "int8", "uint64"])
def test_a_column_of_integers_is_one_of_decimals(kind: str) -> None:
    found = spark_pace.replay(DECIMALS, pd.DataFrame({"time": [NOW], "d": pd.array([12], kind)}))
    assert found.matches["d"].to_pylist() == [Decimal(12)]


@pytest.mark.parametrize("large", [1000, Decimal("1000"), -(2**63)])
def test_an_integer_that_does_not_fit_a_decimal_is_told_with_its_row(large: Any) -> None:
    with pytest.raises(EventError) as caught:
        spark_pace.replay(DECIMALS, [{"time": NOW, "d": 1}, {"time": NOW, "d": large}])
    got = repr(Decimal(large) if isinstance(large, Decimal) else large)
    assert str(caught.value) == f"table, row 1: d — must be DECIMAL(5,2); got: {got}. {CORRECT}"


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


def test_a_column_of_event_times_that_are_numbers_may_be_declared_so() -> None:
    with pytest.raises(
        EventError, match=r"Or, if it has integers, declare it BIGINT, with time_unit: s in events\.$"
    ):
        spark_pace.replay(DECIMALS, [{"time": 5}])
    counted = DECIMALS.replace("time TIMESTAMP", "time BIGINT").replace(
        "time: time", "time: time, time_unit: s"
    )
    assert len(spark_pace.replay(counted, [{"time": 5}])) == 1


def test_nan_is_null_in_pandas_and_dicts_and_above_all_numbers_in_other_tables() -> None:
    rules = """
    events: {schema: "time TIMESTAMP, x DOUBLE, l ARRAY<DOUBLE>", event_time: time, tie_break: [x]}
    rules:
      - {name: none, pattern: {sequence: [a: "x is null and element_at(l, 1) is null"]}}
      - {name: above, pattern: {sequence: [a: "x > 1e308 and element_at(l, 1) > 1e308"]}}
    """
    row = {"time": at(0), "x": float("nan"), "l": [float("nan")]}
    table = pa.table({name: pa.array([value]) for name, value in row.items()})
    found = {
        "dicts": spark_pace.replay(rules, [row]),
        "pandas": spark_pace.replay(rules, pd.DataFrame([row])),
        "arrow": spark_pace.replay(rules, table),
        "polars": spark_pace.replay(rules, pl.DataFrame(table)),
    }
    assert {name: found.matches.by_rule for name, found in found.items()} == {
        "dicts": {"none": 1},
        "pandas": {"none": 1},
        "arrow": {"above": 1},
        "polars": {"above": 1},
    }
