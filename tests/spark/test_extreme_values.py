"""No value of a record ends a job: every type, its extreme values, in every format and in every role.

Each value comes in an event that is wanted, in one that is late, and in one that is a repeat. It is a key, is
emitted, breaks ties, is aggregated and handed to a Python operator. What no event may have is a bad record.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from spark_pace import detect, load_rules
from spark_pace.cli.show import FORMS, sql_command
from spark_pace.core import local_run
from spark_pace.core.expr import ARROW_TYPES
from spark_pace.core.expr.time_functions import FIRST_DAY, FIRST_US, LAST_DAY, LAST_US
from spark_pace.core.plan.plan import build_plan
from spark_pace.io.event_files import read_events
from spark_pace.io.query import TABLES
from spark_pace.job import run_job
from spark_pace.job_file import JobSpec, read_job
from tests.spark.jobs import make_job, matches, random_events, table, write_files

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]

SINGLE = {
    "u": "TIMESTAMP",
    "d": "DATE",
    "n": "BIGINT",
    "x": "DOUBLE",
    "p": "DECIMAL(38,2)",
    "s": "STRING",
    "b": "BOOLEAN",
}
NESTED = {"o.u": "TIMESTAMP", "o.d": "DATE", "l": "ARRAY<TIMESTAMP>", "m": "ARRAY<DATE>"}
GOOD_TIMES = [
    "0001-01-01T00:00:00Z",
    "0001-01-01T00:00:00.1234567+00:00",
    "1582-10-10T00:00:00",
    "1676-12-31T23:59:59.123456789",
    "1969-12-31T23:59:59.9999999",
    "2262-12-31T00:00:00.1234567",
    "9999-12-31T23:59:59.9999999Z",
]
BAD_TIMES = [
    "0000-06-01T00:00:00Z",
    "0000-12-31T23:59:59.9999999",
    "0001-01-01T00:00:00+01:00",
    "9999-12-31T23:59:59-05:00",
]
GOOD_DATES, BAD_DATES = ["0001-01-01", "9999-12-31"], ["0000-01-01", "0000-12-31"]
FAR = 2**63 - 1
NEAR_US = [FIRST_US - 1, LAST_US + 1, FAR, -FAR]
NEAR_DAYS = [FIRST_DAY - 1, LAST_DAY + 1, 2**31 - 1, -(2**31)]
OTHERS: dict[str, list[Any]] = {
    "n": [2**63 - 1, -(2**63), 0, None],
    "x": [1e308, -1e308, 5e-324, -0.0, None],
    "p": ["9" * 36 + ".99", "-" + "9" * 36 + ".99", "0.00", None],
    "s": ["", "\x00", "\x1b[2J", "‮\U0001f642", "'\"\\", "x" * 10_000, "9999-12-31", None],
    "b": [True, False, None],
}
WANTED, LATE = "2024-06-01T00:00:00", "2020-06-01T00:00:00"
LATE_US = 1_590_969_600_000_000
YEARS_US = 126_230_400_000_000  # between the two
REASONS = [
    "must be an event time from 1900 to 2199; got ",
    "must be from 0001-01-01 to 9999-12-31",
    "s — must be UTF-8; got other bytes",
    "n — must be BIGINT; got: 2 columns of that name",
    "the file — must be undamaged; got: an archive of 0 bytes",
]
RULES = """
events:
  schema: "{schema}"
  event_time: t
  tie_break: [u, d, n, x, p, s, b]
rules:
{keyed}
  - name: least
    span: {{every: 1 d, size: 2 d}}
    emit: {{u: min(u), d: max(d), s: first(s), n: min(n), x: max(x), count: count(*)}}
  - name: opened
    span: {{open: "true", close: d >= open.d, within: 1 s}}
    operator: tests.spark.test_extreme_values:opening
    emit: {{u: TIMESTAMP, d: DATE, s: STRING, n: BIGINT, x: DOUBLE, since: TIMESTAMP}}
"""
KEYED = """
  - name: by_{number}
    partition_by: ["{key}"]
    pattern: {{sequence: [a: "true"]}}
    emit: {{ {emitted} }}
"""


def opening(span: Any) -> Iterator[dict[str, Any]]:
    """The operator of the rule `opened`."""
    first = span.opening
    yield {name: first[name] for name in ("u", "d", "s", "n", "x")} | {"since": first["t"]}


def values_of(kind: str, good: bool) -> list[Any]:
    """What events of text hold."""
    if kind.startswith("ARRAY"):
        return [[value] for value in values_of(kind[6:-1], good)]
    if kind == "TIMESTAMP":
        return GOOD_TIMES if good else BAD_TIMES
    return GOOD_DATES if good else BAD_DATES


def events_of(fields: dict[str, str], good: bool) -> list[dict[str, Any]]:
    """An event for each extreme value, with that attribute alone."""
    listed = [
        {name: value}
        for name, kind in fields.items()
        if name not in OTHERS
        for value in values_of(kind, good)
    ]
    if good:
        return listed + [{name: value} for name, values in OTHERS.items() for value in values]
    return [*listed, *({"t": time} for time in [*GOOD_TIMES[:4], *BAD_TIMES])]


def as_text(events: list[dict[str, Any]], fields: dict[str, str], format: str) -> str:
    if format == "csv":
        text = io.StringIO()
        writer = csv.DictWriter(text, ["t", *fields], lineterminator="\n")
        writer.writeheader()
        for event in events:
            shown = {name: str(v).lower() if isinstance(v, bool) else v for name, v in event.items()}
            writer.writerow(shown)
        return text.getvalue()
    for event in events:
        for name in [name for name in event if "." in name]:
            event["o"] = {name[2:]: event.pop(name)}
    return "\n".join(map(json.dumps, events))


def write_text(folder: Path, fields: dict[str, str], format: str) -> tuple[int, int]:
    """Files of wanted, late and repeated events; how many are good in each, and how many bad."""
    good, bad = events_of(fields, True), events_of(fields, False)
    if format == "csv":  # a text of CSV holds no NUL, and an empty one must be quoted
        good = [event for event in good if event.get("s") not in ("\x00", "")]
    for number, time in enumerate([WANTED, LATE, WANTED]):
        events = [{"t": time} | event for event in [*good, *bad, {"s": "last"}]]
        (folder / "in" / f"{number}.{format}").write_text(as_text(events, fields, format))
    return len(good) + 1, len(bad)


def stored_column(name: str, kind: str, events: list[dict[str, Any]]) -> pa.Array:
    """A column of Parquet of attributes that are numbers for times and dates, else values of JSON."""
    given = [event.get(name) for event in events]
    if kind.startswith("DECIMAL"):
        return pa.array(given, pa.string()).cast(ARROW_TYPES["DECIMAL(38,2)"])
    target = ARROW_TYPES[kind]
    if kind.startswith("ARRAY"):
        numbers = pa.int64() if "TIME" in kind else pa.int32()
        return pa.array(given, pa.list_(numbers)).cast(target)
    if kind in ("TIMESTAMP", "DATE"):
        return pa.array(given, pa.int64() if kind == "TIMESTAMP" else pa.int32()).cast(target)
    return pa.array(given, target)


def write_stored(folder: Path, fields: dict[str, str], format: str) -> tuple[int, int]:
    """The same as Parquet, with years that no text has, and texts that are no UTF-8."""
    ends: dict[str, tuple[list[int], list[int]]] = {
        "TIMESTAMP": ([FIRST_US, LAST_US], NEAR_US),
        "DATE": ([FIRST_DAY, LAST_DAY], NEAR_DAYS),
    }
    good, bad = ([{name: v} for name, values in OTHERS.items() for v in values], list[dict[str, Any]]())
    for name, kind in fields.items():
        if name not in OTHERS:
            for some, values in zip(
                (good, bad), ends[kind.removeprefix("ARRAY<")[:9].rstrip(">")], strict=True
            ):
                some += [{name: [v] if kind.startswith("ARRAY") else v} for v in values]
    bad += [{"t": v} for v in [FIRST_US, LAST_US, *NEAR_US]] + [{"s": "no UTF-8"}]
    for number, time in enumerate([LATE_US + YEARS_US, LATE_US, LATE_US + YEARS_US]):
        events = [{"t": time} | event for event in [*good, *bad, {"s": "last"}]]
        columns = {
            name: stored_column(name, kind, events)
            for name, kind in {"t": "TIMESTAMP", **fields}.items()
            if "." not in name
        }
        texts = columns["s"].cast(pa.binary())
        columns["s"] = pc.if_else(pc.equal(texts, b"no UTF-8"), b"\xff\xfe", texts).view(pa.string())
        inner = [
            stored_column(f"o.{name}", kind, events) for name, kind in (("u", "TIMESTAMP"), ("d", "DATE"))
        ]
        columns["o"] = pa.StructArray.from_arrays(inner, ["u", "d"])
        pq.write_table(pa.table(columns), folder / "in" / f"{number}.{format}")
    return len(good) + 1, len(bad)


def job_of(folder: Path, fields: dict[str, str], format: str) -> JobSpec:
    declared = [f"{name} {kind}" for name, kind in {"t": "TIMESTAMP", **SINGLE}.items()]
    if len(fields) > len(SINGLE):
        declared += ["o STRUCT<u: TIMESTAMP, d: DATE>", "l ARRAY<TIMESTAMP>", "m ARRAY<DATE>"]
    keys = [name for name in fields if name not in ("x", "l", "m")]
    emitted = {key: ", ".join(f"{name}: a.{name}" for name in SINGLE if name != key) for key in keys}
    keyed = "".join(
        KEYED.format(number=number, key=key, emitted=emitted[key]) for number, key in enumerate(keys)
    )
    rules = RULES.format(schema=", ".join(declared), keyed=keyed)
    events = f"delay: 1 d, deduplicate_on: [{', '.join(SINGLE)}]"
    path = make_job(folder, rules=rules, events=events)
    text = path.read_text().replace("format: json", f"format: {format}")
    path.write_text(text.replace("operators: [tests.spark.jobs]", "operators: [tests.spark]"))
    return read_job(path)


def in_core(spec: JobSpec) -> local_run.LocalResult:
    paths = sorted(Path(spec.files.path).iterdir())
    reads = [read_events(str(path), spec.files.format, spec.events.schema, path.name) for path in paths]
    plan = build_plan(spec.rules, order=spec.events.order)
    return local_run.run(plan, [read.events for read in reads])


@pytest.mark.parametrize("format", ["json", pytest.param("csv", marks=pytest.mark.long), "parquet"])
def test_no_value_ends_a_job(tmp_path: Path, format: str, capsys: pytest.CaptureFixture[str]) -> None:
    fields = SINGLE if format == "csv" else {**SINGLE, **NESTED}
    spec = job_of(tmp_path, fields, format)
    write = write_stored if format == "parquet" else write_text
    good, bad = write(tmp_path, fields, format)
    if format == "parquet":
        twice = pa.table([pa.array([LATE_US], pa.timestamp("us")), [1], [2]], ["t", "n", "n"])
        pq.write_table(twice, tmp_path / "in" / "3.parquet")
    else:
        (tmp_path / "in" / f"3.{format}.gz").touch()
    summary = run_job(spec)
    assert summary.records == 3 * (good + bad) + 1
    assert (summary.bad_records, summary.late) == (3 * bad + 1, good)
    assert summary.events + summary.repeats == 2 * good
    assert summary.events >= good / 2
    reasons = table(spec, "quarantine").to_pylist()
    assert len(reasons) == 3 * bad + 1
    assert all(any(known in row["reason"] for known in REASONS) for row in reasons)
    for text in table(spec, "late")["event"].to_pylist():
        assert set(json.loads(text)) == {"t", *(name.split(".")[0] for name in fields)}
    assert repr(matches(spec)) == repr(in_core(spec).matches.to_pylist())
    assert {row["rule"] for row in matches(spec)} == {rule.name for rule in spec.rules}
    for name in TABLES:
        for form in FORMS:
            sql_command(spec.sink_path, f"SELECT * FROM {name}", form)
            assert capsys.readouterr().out
    assert run_job(spec).records == 0


def test_no_value_ends_a_query_of_detect(spark: SparkSession, tmp_path: Path) -> None:
    rows = [{"t": WANTED, "days": days, "us": us} for days in (*NEAR_DAYS[:2], 0) for us in (*NEAR_US[:2], 0)]
    rows.append({"t": "2024-06-02", "days": 0, "us": 0})  # which moves the frontier behind the others
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "0.json").write_text("\n".join(map(json.dumps, rows)))
    stream = spark.readStream.schema("t timestamp, days int, us long").json(str(tmp_path / "in"))
    day = F.date_add(F.lit("1970-01-01").cast("date"), F.col("days"))
    events = stream.select("t", day.alias("d"), F.timestamp_micros("us").alias("u"))
    query = (
        detect(
            events,
            load_rules("""
events: {schema: "t TIMESTAMP, d DATE, u TIMESTAMP", event_time: t}
rules:
  - {name: by_day, partition_by: [d], pattern: {sequence: [a: "true"]}, emit: {u: a.u}}
  - {name: by_time, partition_by: [u], pattern: {sequence: [a: "true"]}}
"""),
        )
        .writeStream.format("memory")
        .queryName("extreme")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    found = spark.sql("SELECT rule, count(*), count(DISTINCT key) FROM extreme GROUP BY rule ORDER BY rule")
    assert [tuple(row) for row in found.collect()] == [("by_day", 9, 3), ("by_time", 9, 3)]


def test_many_bad_records_of_a_file_are_counted_and_the_first_ones_are_told(tmp_path: Path) -> None:
    path = make_job(tmp_path)
    path.write_text(path.read_text().replace("path: in,", "path: in, max_bad_records_per_file: 3,"))
    spec = read_job(path)
    write_files(tmp_path, random_events(13, 60), 2)
    for name in ("000.json", "001.json"):
        file = tmp_path / "in" / name
        file.write_text("x\n" * 500 + file.read_text() + "\n{}" * 500)
    summary = run_job(spec)
    assert (summary.records, summary.events, summary.bad_records) == (2_060, 60, 2_000)
    assert summary.quarantined == 2_000
    told = table(spec, "quarantine").sort_by([("source", "ascending"), ("offset", "ascending")]).to_pylist()
    assert [(row["source"], row["offset"]) for row in told] == [
        (name, row) for name in ("000.json", "001.json") for row in range(4)
    ]
    others = "997 bad records of rows 3 to 1029, of which this is the first: "
    assert {row["reason"] for row in told if row["offset"] == 3} == {
        f"{others}the record — must be a JSON object that begins with {{ and ends with }} in its line"
    }
    assert {row["raw"] for row in told} == {b"x"}
    assert matches(spec) == in_core(spec).matches.to_pylist() != []
