"""Types that have parts or digits: read as Spark reads them, and through a whole job and `detect`."""

import random
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from spark_pace.core.plan.rule import EventSchema, Field
from spark_pace.io.event_files import read_events
from spark_pace.job import run_job
from spark_pace.spark.detect import detect
from tests.spark.jobs import Event, in_core, job, matches, table, write_files

pytestmark = pytest.mark.spark

RULES = r"""
events:
  schema: >-
    t TIMESTAMP, n BIGINT, m DECIMAL(10,2),
    u STRUCT<k STRING, home STRUCT<x BIGINT, tags ARRAY<STRING>>, at ARRAY<TIMESTAMP>>
  event_time: t
  tie_break: [n]
rules:
  - name: keyed
    partition_by: [u.k]
    filter: u is not null
    pattern:
      sequence:
        - a: m >= 1.5 and array_contains(u.home.tags, 'x')
        - b: size(u.home.tags) > 1 and u.k rlike '^[ab]$'
    where: b.u.home.x >= a.u.home.x and b.m <> a.m
    within: 1 min
    emit: {least: a.m, first: "element_at(b.u.home.tags, -1)", at: "element_at(a.u.at, 1)", x: b.u.home.x}
  - name: sums
    pattern: {sequence: [{name: a, when: u.home is null, times: 1+}, b: u.at is null]}
    where: size(b.u.home.tags) >= 0 and sum(a.m) > 3
    within: 30 s
    emit: {total: sum(a.m), n: count(a)}
"""
NUMBERS = [
    "0",
    "-0",
    "1",
    "1.5",
    '"1.5"',
    "1.005",
    "-1.005",
    "1.00499",
    '"1.005"',
    "1e2",
    "1E-3",
    '"1e2"',
    '"+1"',
    '".5"',
    '"1."',
    "99999999.99",
    "99999999.995",
    "-99999999.994",
    "100000000",
    "123456789",
    '"abc"',
    '""',
    '" 1"',
    '"NaN"',
    "true",
    "null",
    '"0x10"',
    '"1_0"',
    '"--1"',
    "0.1234567890123456789",
    "12345678.900000000000000001",
]


@pytest.mark.parametrize("kind", ["DECIMAL(10,2)", "DECIMAL(38,30)", "DECIMAL(9,0)"])
def test_a_decimal_in_json_is_read_as_spark_reads_it(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    lines = [f'{{"t":"2024-01-01","n":{n},"d":{value}}}' for n, value in enumerate(NUMBERS)]
    path = tmp_path / "e.json"
    path.write_text("\n".join(lines))
    schema = EventSchema((Field("t", "TIMESTAMP"), Field("n", "BIGINT"), Field("d", kind)), "t")
    read = read_events(str(path), "json", schema, "e")
    ours = {row["n"]: row["d"] for row in read.events.to_pylist()}
    rows = spark.read.schema(f"t STRING, n BIGINT, d {kind}, bad STRING").json(
        str(path), columnNameOfCorruptRecord="bad"
    )
    theirs = {row["n"]: row["d"] for row in rows.collect() if row["bad"] is None}
    assert {n: str(value) for n, value in ours.items()} == {n: str(value) for n, value in theirs.items()}
    assert len(theirs) > 10
    assert read.bad.num_rows == len(lines) - len(ours)


def random_events(seed: int, count: int) -> list[Event]:
    """One a second; some STRUCTs and ARRAYs are null or empty."""
    chance = random.Random(seed)

    def one(second: int) -> Event:
        tags = chance.choice([None, [], ["x"], ["x", "y"], ["z", None, "x"]])
        home = chance.choice(
            [None, {"x": None, "tags": tags}, *[{"x": chance.randrange(5), "tags": tags}] * 3]
        )
        at = chance.choice([None, [], [f"2024-01-01T00:00:{second % 60:02d}Z", None]])
        user = {"k": chance.choice("abc"), "home": home, "at": at}
        time = f"2024-01-01T00:{second // 60:02d}:{second % 60:02d}Z"
        return {
            "t": time,
            "n": second,
            "m": chance.randrange(500) / 100,
            "u": chance.choice([user, user, None]),
        }

    return [one(second) for second in range(count)]


@pytest.mark.usefixtures("spark")
def test_a_job_gives_what_the_core_gives(tmp_path: Path) -> None:
    spec = job(tmp_path, rules=RULES)
    events = random_events(1, 120)
    write_files(tmp_path, [*events, events[3] | {"n": 999}], 3)
    bad = tmp_path / "in" / "002.json"
    bad.write_text(bad.read_text() + '\n{"t":"2024-01-01T00:01:59Z","u":{"home":{"tags":[1]}}}\n')
    run_job(spec)
    core = in_core(spec)
    assert matches(spec) == core.matches.to_pylist()
    assert {row["rule"] for row in matches(spec)} == {"keyed", "sums"}
    assert table(spec, "late")["event"].to_pylist() == core.late["event"].to_pylist()
    assert core.late.num_rows == 1
    (reason,) = table(spec, "quarantine")["reason"].to_pylist()
    assert reason.startswith("u.home.tags — must be ARRAY<STRING>; got: ")


def test_detect_gives_what_the_core_gives(spark: SparkSession, tmp_path: Path) -> None:
    spec = job(tmp_path, rules=RULES)
    write_files(tmp_path, random_events(2, 120), 2)
    home = "STRUCT<x: BIGINT, tags: ARRAY<STRING>, y: INT>"
    types = f"t TIMESTAMP, n INT, m DECIMAL(12,2), u STRUCT<k: STRING, home: {home}, at: ARRAY<TIMESTAMP>>"
    stream = spark.readStream.schema(types).json(str(tmp_path / "in"))
    query = (
        detect(stream, spec.rules, delay_us=2_000_000, slots=2)
        .writeStream.format("memory")
        .queryName("typed")
        .trigger(availableNow=True)
        .option("checkpointLocation", str(tmp_path / "detected"))
        .start()
    )
    query.awaitTermination()
    names = ["rule", "key", "u_k", "selection_id", "seq", "least", "first", "at", "x", "total", "n"]
    order = [(name, "ascending") for name in ("rule", "key", "selection_id", "seq")]
    theirs = spark.table("typed").select(names).toArrow().sort_by(order)
    ours = in_core(spec).matches.select(names).sort_by(order)
    found = {tuple(map(str, row.values())) for row in theirs.cast(ours.schema).to_pylist()}
    expected = {tuple(map(str, row.values())) for row in ours.to_pylist()}
    assert found <= expected  # no end of input comes, so that the last windows stay open
    assert len(found) > len(expected) // 2 > 5
    assert pa.types.is_decimal(theirs.schema.field("total").type)
