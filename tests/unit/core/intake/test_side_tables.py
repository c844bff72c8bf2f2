"""Side tables: what is read of them, what is refused, and what is joined to events. No Spark."""

from __future__ import annotations

import gzip
import os
import shutil
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from spark_pace import load_rules, replay, why
from spark_pace.core.intake.sift import joined
from spark_pace.core.plan.rule import EventSchema, Field, SideTable
from spark_pace.errors import SparkPaceError
from spark_pace.io import side_tables
from spark_pace.io.replay import replay_files
from spark_pace.io.side_tables import read_side_table, read_side_tables, stamp_of
from spark_pace.job_file import as_planned, planned_settings, read_job
from spark_pace.spark import detect

OWN = (Field("time", "TIMESTAMP"), Field("host", "STRING"), Field("port", "BIGINT"))
OWNER = (Field("owner", "STRING"), Field("tier", "BIGINT"))
RULES = """
events:
  schema: "time TIMESTAMP, host STRING, port BIGINT"
  event_time: time
  lookup:
    hosts: {path: hosts.csv, on: host, schema: "owner STRING, tier BIGINT", refresh: 10 min}
rules:
  - name: pair
    partition_by: [hosts.owner]
    filter: hosts is not null
    pattern: {sequence: [first: hosts.tier = 1, second: port > 0]}
    where: first.host <> second.host
    within: 1 min
    emit: {tier: second.hosts.tier}
"""
HOSTS = "host,owner,tier\na,ann,1\nb,ann,\nc,bob,1\n"
EVENTS = """{"time": "2024-01-01T00:00:00Z", "host": "a", "port": 1}
{"time": "2024-01-01T00:00:01Z", "host": "c", "port": 1}
{"time": "2024-01-01T00:00:02Z", "host": "d", "port": 1}
{"time": "2024-01-01T00:00:03Z", "host": "b", "port": 1}
"""


def side(path: Path, **changes: Any) -> SideTable:
    given = {"name": "hosts", "path": str(path), "on": (("host", "host"),), "columns": OWNER, **changes}
    return SideTable(**given)


def schema_with(*sides: SideTable) -> EventSchema:
    return EventSchema((*OWN, *(field for one in sides for field in one.fields)), "time", side_tables=sides)


def test_each_event_gets_the_row_of_its_key_or_nulls(tmp_path: Path) -> None:
    first = side(tmp_path / "a.csv")
    both = side(tmp_path / "b.csv", name="ports", on=(("port", "number"), ("host", "at")), columns=OWNER[:1])
    (tmp_path / "a.csv").write_text("owner,host,tier\nann,a,1\n,b,2\nnobody,,3\n")
    (tmp_path / "b.csv").write_text("at,number,owner\na,1,one\na,2,two\nb,1,three\n")
    schema = schema_with(first, both)
    events = pa.table({
        "host": ["b", "a", None, "x", "a", "a"],
        "port": [1, 2, 1, 1, None, 3],
    })  # fmt: skip
    found = joined(events, schema, read_side_tables(schema))
    assert found.column_names[2:] == ["hosts", "hosts.owner", "hosts.tier", "ports", "ports.owner"]
    assert found["hosts"].to_pylist() == [True, True, None, None, True, True]
    assert found["hosts.owner"].to_pylist() == [None, "ann", None, None, "ann", "ann"]
    assert found["hosts.tier"].to_pylist() == [2, 1, None, None, 1, 1]
    assert found["ports.owner"].to_pylist() == ["three", "two", None, None, None, None]
    assert joined(events.slice(0, 0), schema, read_side_tables(schema)).num_rows == 0


ROWS = {
    "id": [7, 8],
    "text": ["a, b", None],
    "real": [1.5, None],
    "yes": [True, None],
    "day": [date(2024, 2, 29), None],
    "at": [datetime(2024, 1, 1, 10), None],
    "amount": [Decimal("1.25"), None],
}
TYPES = ("BIGINT", "STRING", "DOUBLE", "BOOLEAN", "DATE", "TIMESTAMP", "DECIMAL(5,2)")


def write(path: Path, kind: str) -> Path:
    table = pa.table(ROWS)
    if kind == "csv.gz":
        header = "id,text,real,yes,day,at,amount"
        text = f'{header}\n7,"a, b",1.5,true,2024-02-29,2024-01-01T10:00:00Z,1.25\n8,,,,,,\n'
        (path / "t.csv.gz").write_bytes(gzip.compress(text.encode()))
    elif kind == "parquet":
        pq.write_table(table, path / "t.parquet")
    else:
        write_deltalake(path / "t.delta", table.slice(0, 1), partition_by=["day"])
        write_deltalake(path / "t.delta", table.slice(1), mode="append")
    return path / f"t.{kind}"


@pytest.mark.parametrize("kind", ["csv.gz", "parquet", "delta"])
def test_a_table_of_any_kind_has_the_declared_types(tmp_path: Path, kind: str) -> None:
    columns = tuple(Field(name, typ) for name, typ in zip(list(ROWS)[1:], TYPES[1:], strict=True))  # type: ignore[arg-type]
    one = side(write(tmp_path, kind), on=(("port", "id"),), columns=columns)
    table = read_side_table(one, schema_with(one)).sort_by("port")
    assert {name.removeprefix("hosts."): table[name].to_pylist() for name in table.column_names} == {
        "port": ROWS["id"],
        **{name: values for name, values in ROWS.items() if name != "id"},
    }
    assert stamp_of(one) == stamp_of(one)


def test_a_file_that_another_one_has_replaced_is_another_even_of_the_same_time_and_size(
    tmp_path: Path,
) -> None:
    one, other = side(tmp_path / "hosts.csv"), tmp_path / "other.csv"
    for path in (Path(one.path), other):
        path.write_text("host,owner,tier\na,ann,1\n")
        os.utime(path, ns=(0, 0))
    before = stamp_of(one)
    other.replace(one.path)
    assert stamp_of(one) != before


def test_a_delta_table_has_its_rows_of_now(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"host": ["a", "b"], "owner": ["ann", "bob"], "tier": [1, 2]}))
    one = side(tmp_path)
    before = stamp_of(one)
    DeltaTable(tmp_path).delete("host = 'a'")
    assert stamp_of(one) != before
    assert read_side_table(one, schema_with(one))["host"].to_pylist() == ["b"]


def test_another_delta_table_at_the_same_version_is_another(tmp_path: Path) -> None:
    one = side(tmp_path / "hosts")
    stamps = []
    for owner in ("ann", "bob"):
        rows = pa.table({"host": ["a"], "owner": [owner], "tier": [1]})
        write_deltalake(one.path, rows)
        stamps.append(stamp_of(one))
        assert stamp_of(one) == stamps[-1]
        shutil.rmtree(one.path)
    assert stamps[0] != stamps[1]
    assert stamps[0][1] == stamps[1][1] == 0


REFUSED = {
    "twice": (f"{HOSTS}a,eve,1\n", "one row for each key; got host = a in line 2 and in line 5"),
    "no number": (f"{HOSTS}d,eve,x\n", "rows as declared; got line 5: tier — must be"),
    "too few": (f"{HOSTS}d,eve\n", "rows as declared; got line 5: the record — must have the columns"),
    "no column": ("host,tier\na,1\n", "one column owner; got the columns host, tier"),
    "two columns": ("host,tier,owner,owner\n", "one column owner; got the columns host, tier, owner, owner"),
    "nothing": ("", "one column host; got the columns "),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_table_that_cannot_be_joined_is_refused_in_one_line(tmp_path: Path, name: str) -> None:
    text, words = REFUSED[name]
    (tmp_path / "hosts.csv").write_text(text)
    one = side(tmp_path / "hosts.csv")
    with pytest.raises(SparkPaceError) as caught:
        read_side_table(one, schema_with(one))
    assert str(caught.value).startswith(f"lookup.hosts: {tmp_path}/hosts.csv — must have {words}")
    assert str(caught.value).endswith(" Correct the table, or the lookup.")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("none.csv", "must be a table that can be read; got .*No such file or directory"),
        ("none", "must be a file .csv or .parquet, or the folder of a Delta table; got nothing there"),
        ("bad.parquet", "must be a table that can be read; got .*Parquet"),
        ("twice.parquet", r"one row for each key; got host = a, port = 1 in row 1 and in row 3"),
        (
            "typed.parquet",
            "must have columns of the declared types; got tier — must be BIGINT; got: a column of string",
        ),
    ],
)
def test_a_file_that_is_no_such_table_is_refused(tmp_path: Path, name: str, words: str) -> None:
    (tmp_path / "bad.parquet").write_text("no")
    keys = {"host": ["a", "a", "a"], "port": [1, 2, 1]}
    pq.write_table(pa.table({**keys, "owner": ["x"] * 3, "tier": [1] * 3}), tmp_path / "twice.parquet")
    pq.write_table(pa.table({**keys, "owner": ["x"] * 3, "tier": ["x"] * 3}), tmp_path / "typed.parquet")
    one = side(tmp_path / name, on=(("host", "host"), ("port", "port")))
    with pytest.raises(SparkPaceError, match=words):
        read_side_table(one, schema_with(one))


@pytest.mark.parametrize("kind", ["csv", "parquet", "delta"])
def test_a_table_that_is_too_large_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    rows = pa.table({"host": [f"h{n}" for n in range(99)], "owner": ["x"] * 99, "tier": [1] * 99})
    path = tmp_path / f"hosts.{kind}"
    if kind == "delta":
        for part in (rows.slice(0, 50), rows.slice(50)):
            write_deltalake(path, part, mode="append")
    elif kind == "csv":
        path.write_text("host,owner,tier\n" + "".join(f"h{n},some owner,1\n" for n in range(99)))
    else:
        pq.write_table(rows, path, row_group_size=50)
    assert read_side_table(side(path), schema_with(side(path))).num_rows == 99
    monkeypatch.setattr(side_tables, "MOST_BYTES", 1000)
    with pytest.raises(SparkPaceError, match=r"must have at most 1,000 bytes, for .*; got more\. Correct"):
        read_side_table(side(path), schema_with(side(path)))


def test_replay_and_why_join_what_rules_name(tmp_path: Path) -> None:
    for name, text in (("rules.yaml", RULES), ("hosts.csv", HOSTS), ("events.json", EVENTS)):
        (tmp_path / name).write_text(text)
    rules = load_rules(tmp_path / "rules.yaml")
    replayed = replay_files(rules, tmp_path / "events.json")
    assert replayed.result.matches.select(["key", "hosts_owner", "tier"]).to_pylist() == [
        {"key": '{"hosts.owner":"ann"}', "hosts_owner": "ann", "tier": None}
    ]
    assert replayed.absent == ()
    times = pa.array(range(0, 4_000_000, 1_000_000), pa.timestamp("us"))
    table = pa.table({"time": times, "host": ["a", "c", "d", "b"], "port": [1] * 4})
    assert replay(rules, table).matches.num_rows == 1
    told = why(rules, tmp_path / "events.json", rule="pair", at="events.json:2")
    assert told.not_in_stream is not None
    told = why(rules, tmp_path / "events.json", rule="pair", at="events.json:3")
    assert len(told.matches) == 1


UPPER = """  - name: upper
    from: [pair, events]
    pattern: {sequence: [p: rule = 'pair', e: hosts.owner = 'bob']}
    within: 1 min
    emit: {tier: p.tier, owner: p.hosts_owner, other: e.hosts.owner}
"""


def test_rules_over_rules_see_what_events_are_joined_with(tmp_path: Path) -> None:
    last = EVENTS.splitlines()[1].replace("00:00:01Z", "00:00:05Z")
    for name, text in (("rules.yaml", RULES + UPPER), ("hosts.csv", HOSTS), ("e.json", EVENTS + last)):
        (tmp_path / name).write_text(text)
    rules = load_rules(tmp_path / "rules.yaml")
    matches = replay_files(rules, tmp_path / "e.json").result.matches.to_pylist()
    (found,) = (match for match in matches if match["rule"] == "upper")
    assert (found["tier"], found["owner"], found["other"]) == (None, "ann", "bob")


def test_detect_joins_no_tables() -> None:
    words = "must be given rules whose events join no tables; got rules with events.lookup. Join the tables"
    with pytest.raises(SparkPaceError, match=words):
        detect._plan(load_rules(RULES), 0, (), 1, 1)


JOB = """
name: job
source: {kind: files, format: json, path: in}
events: {delay: 1 s}
rules: [rules.yaml]
sink: {kind: delta, path: out}
checkpoint: checkpoint
"""


def test_a_plan_keeps_the_lookups(tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text(RULES)
    (tmp_path / "job.yaml").write_text(JOB)
    spec = read_job(tmp_path / "job.yaml")
    (other,) = spec.events.schema.side_tables
    assert other.path == str(tmp_path / "hosts.csv")
    (tmp_path / "rules.yaml").write_text(RULES.replace("hosts.csv, on: host", "new.csv, on: {port: id}"))
    now = read_job(tmp_path / "job.yaml")
    assert now != spec
    assert as_planned(now, planned_settings(spec)) == spec


def test_late_events_stand_as_they_came(tmp_path: Path) -> None:
    for name, text in (("rules.yaml", RULES), ("hosts.csv", HOSTS), ("job.yaml", JOB)):
        (tmp_path / name).write_text(text)
    (tmp_path / "in").mkdir()
    lines = EVENTS.splitlines(keepends=True)
    (tmp_path / "in" / "1.json").write_text("".join(lines[1:]))
    (tmp_path / "in" / "2.json").write_text(lines[0])
    spec = read_job(tmp_path / "job.yaml")
    late = replay_files(spec.rules, tmp_path / "in", **spec.events.stream).result.late
    assert late["event"].to_pylist() == ['{"time": "2024-01-01 00:00:00", "host": "a", "port": 1}']
