"""STRUCT attributes: what a rule reads of them, what becomes of wrong ones, and how they are shown."""

import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spark_pace import replay
from spark_pace.core.intake.sift import late_table
from spark_pace.core.plan.rule import Rule
from spark_pace.errors import EventError
from spark_pace.io.event_files import read_events
from spark_pace.io.records import read_records

RULES = """
events:
  schema: "kind STRING, user STRUCT<id: BIGINT, at TIMESTAMP, home: STRUCT<city STRING, `a b` DECIMAL(5,2)>>"
  event_time: user.at
  tie_break: [user.id]
rules:
  - name: moved
    partition_by: [user.id]
    pattern:
      sequence:
        - a: kind = 'a' and user.home is not null
        - b: user.home.city <> 'X' and prev(user.home.city) = 'A'
    where: a.user.home.city <> b.user.home.city and b.user.home.`a b` >= a.user.home.`a b`
    within: 1 h
    emit: {from: a.user.home.city, to: b.user.home.city, who: user.id, rent: b.user.home.`a b`}
  - name: known
    filter: user is not null
    pattern: {sequence: [{name: a, when: kind = 'a', times: 1+}, b: user.home is null]}
    within: 1 h
    emit: {first: first(a.user.id), dearest: max(a.user.home.`a b`)}
  - name: asked
    span: {every: 10 s, size: 10 s}
    operator: tests.unit.core.plan.test_structs:cities
    emit: {cities: STRING}
"""
LINES = [
    {"kind": "a", "user": {"id": 1, "at": "2024-01-01T00:00:00Z", "home": {"city": "A", "a b": 1.5}, "x": 5}},
    {"kind": "a", "user": {"id": 1, "at": "2024-01-01T00:00:01Z", "home": {"city": "B", "a b": 2}}},
    {"kind": "b", "user": {"id": 1, "at": "2024-01-01T00:00:02Z", "home": None}},
    {"kind": "b", "user": {"id": 2, "at": "2024-01-01T00:00:03Z", "home": {"city": 7}}},
    {"kind": "b", "user": 5},
    {"kind": "b", "user": None},
    {"kind": "b", "user": {"id": "1", "at": "2024-01-01T00:00:03Z"}},
    {"kind": "b", "user": {"at": "2024-01-01T00:00:03Z", "home": {"a b": 1000}}},
]
NAMES = ["kind", "user", "user.id", "user.at", "user.home", "user.home.city", "user.home.a b"]


def cities(span: Any) -> Iterator[dict[str, Any]]:
    """The operator of the rule `asked`."""
    homes = [user["home"] for user in span.events["user"].to_pylist()]
    yield {
        "cities": " ".join(
            home["city"] if home else "none" for home in [*homes, span.opening["user"]["home"]]
        )
    }


@pytest.fixture
def path(tmp_path: Path) -> str:
    (tmp_path / "e.json").write_text("\n".join(map(json.dumps, LINES)))
    return str(tmp_path / "e.json")


def test_what_a_struct_holds_are_columns_and_a_wrong_one_is_a_bad_record(
    rules: tuple[Rule, ...], path: str
) -> None:
    read = read_events(path, "json", rules[0].schema, "e")
    assert read.events.column_names[3:] == NAMES
    assert [str(row[name]) for row in read.events.to_pylist() for name in NAMES[4:]] == [
        *("True", "A", "1.50"),
        *("True", "B", "2.00"),
        *("None", "None", "None"),
    ]
    assert [(row["offset"], row["reason"].partition(";")[0]) for row in read.bad.to_pylist()] == [
        (3, "user.home.city — must be STRING"),
        (4, "user — must be STRUCT"),
        (5, "user.at — must be an event time from 1900 to 2199"),
        (6, "user.id — must be BIGINT"),
        (7, "user.home.a b — must be DECIMAL(5,2)"),
    ]


def test_values_of_kafka_are_read_alike(rules: tuple[Rule, ...], path: str) -> None:
    lines = Path(path).read_bytes().split(b"\n")
    sources = pa.array(["topic/0"] * len(lines)).dictionary_encode()
    of_log = {"@source": sources, "@offset": pa.array(range(len(lines)))}
    records = pa.table({"@value": pa.array(lines, pa.binary()), **of_log})
    read, file = (
        read_records(records, "json", rules[0].schema),
        read_events(path, "json", rules[0].schema, ""),
    )
    assert read.events.select(NAMES).equals(file.events.select(NAMES))
    assert read.bad["reason"].equals(file.bad["reason"])


def nested_table() -> pa.Table:
    home = pa.struct([("city", pa.string()), ("a b", pa.decimal128(4, 1))])
    user = pa.struct([("home", home), ("at", pa.timestamp("us")), ("id", pa.int32())])
    rows = [
        {"kind": "a", "user": {"id": 1, "at": 0, "home": {"city": "A", "a b": Decimal("1.5")}}},
        {"kind": "a", "user": {"id": 1, "at": 1_000_000, "home": {"city": "B", "a b": Decimal(2)}}},
        {"kind": "b", "user": {"id": 1, "at": 2_000_000, "home": None}},
    ]
    return pa.Table.from_pylist(rows, pa.schema([("user", user), ("kind", pa.string())]))


def test_rules_read_what_structs_of_a_table_hold(rules: tuple[Rule, ...]) -> None:
    matches = {row["rule"]: row for row in replay(rules, nested_table()).matches.to_pylist()}
    moved, known = matches["moved"], matches["known"]
    assert matches["asked"]["cities"] == "A B none A"
    assert (moved["key"], moved["user_id"], moved["who"]) == ('{"user.id":1}', 1, 1)
    assert (moved["from"], moved["to"], str(moved["rent"])) == ("A", "B", "2.00")
    assert (known["first"], str(known["dearest"])) == (1, "2.00")


def test_parquet_holds_structs_and_another_type_is_one_bad_record(
    rules: tuple[Rule, ...], tmp_path: Path
) -> None:
    table = nested_table()
    pq.write_table(table, tmp_path / "good.parquet")
    read = read_events(str(tmp_path / "good.parquet"), "parquet", rules[0].schema, "e")
    assert read.events["user.home.city"].to_pylist() == ["A", "B", None]
    assert read.events["user.home"].to_pylist() == [True, True, None]
    pq.write_table(table.set_column(0, "user", pa.array([1, 2, 3])), tmp_path / "bad.parquet")
    read = read_events(str(tmp_path / "bad.parquet"), "parquet", rules[0].schema, "e")
    assert read.bad["reason"].to_pylist() == ["user — must be STRUCT; got: a column of int64"]
    with pytest.raises(EventError, match="user — must be STRUCT"):
        replay(rules, table.set_column(0, "user", pa.array([1, 2, 3])))


def test_late_events_are_shown_as_they_came(rules: tuple[Rule, ...], path: str) -> None:
    read = read_events(path, "json", rules[0].schema, "e")
    shown = map(json.loads, late_table(read.events, 0, False, rules[0].schema)["event"].to_pylist())
    assert [row["user"].get("home") for row in shown] == [
        {"city": "A", "a b": "1.50"},
        {"city": "B", "a b": "2.00"},
        None,
    ]


def test_what_structs_hold_is_shown_without_them(rules: tuple[Rule, ...], path: str) -> None:
    read = read_events(path, "json", rules[0].schema, "e")
    used = read.events.drop_columns(["user", "user.home", "user.home.a b"])
    shown = [json.loads(text) for text in late_table(used, 0, False, rules[0].schema)["event"].to_pylist()]
    assert [row["user"].get("home") for row in shown] == [{"city": "A"}, {"city": "B"}, None]
