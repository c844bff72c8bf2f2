"""`detect`: the matches of a user's streaming DataFrame are those of the core."""

from __future__ import annotations

import os
import random
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from spark_pace import load_rules, replay
from spark_pace.core.intake.pack import pack
from spark_pace.core.local_run import LocalRun
from spark_pace.core.order import OrderSpec
from spark_pace.core.plan.plan import build_plan
from spark_pace.errors import ConfigError
from spark_pace.io.event_files import read_events
from spark_pace.job_file import JobSpec
from spark_pace.spark.detect import detect
from tests.spark.jobs import EVENTS, FOLDS, RULES, job, random_events, write_files
from tests.support import expression_cases
from tests.support.expression_texts import random_text

pytestmark = pytest.mark.spark

ROOT = Path(__file__).parents[2]

ONLY_PAIRS = RULES[: RULES.index("  - name: sums")]
COMPUTED = ONLY_PAIRS.replace("kind = 'a'", "concat(kind, kind) = 'aa' and x + 1 > 0").replace(
    "kind = 'b'", "kind = 'b' and (x % 2 = 0 or not x * 3 < 10)"
)
EARLIER = ONLY_PAIRS.replace("kind = 'b'", "kind = 'b' and x >= prev(x)")


@pytest.mark.usefixtures("spark")
def test_the_documented_job_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    snippets = re.findall(r"```py\n(.*?)```", (ROOT / "docs" / "operations.md").read_text(), re.DOTALL)
    files = dict(re.findall(r"```\w+ (\S+)\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL))
    monkeypatch.chdir(tmp_path)
    Path("rules.yaml").write_text(files["rules.yaml"])
    Path("events").mkdir()
    Path("events", "events.json").write_text(files["events.json"])
    (snippet,) = snippets
    names: dict[str, Any] = {}
    for shown, tried in [
        ('"events"', f'"{tmp_path}/events"'),  # the JVM of the tests was started in another folder
        ('"checkpoint"', f'"{tmp_path}/checkpoint"'),
        ('format("console")', 'format("memory").queryName("documented")'),
    ]:
        assert snippet.count(shown) == 1
        snippet = snippet.replace(shown, tried)
    exec(snippet, names)
    names["query"].processAllAvailable()
    names["query"].stop()
    assert names["spark"].sql("SELECT rule, probed, taken FROM documented").collect() == [
        ("small_then_large", 1.5, 900.0)
    ]


def stream(spark: SparkSession, folder: Path) -> DataFrame:
    for second, path in enumerate(
        sorted((folder / "in").iterdir())
    ):  # Spark takes files in the order of their times
        os.utime(path, (1_700_000_000 + second, 1_700_000_000 + second))
    return (
        spark.readStream.schema("x long, t timestamp, other string, k string, kind string")
        .option("maxFilesPerTrigger", 1)
        .json(f"{folder}/in")
    )


def collected(found: DataFrame, folder: Path, name: str) -> tuple[list[dict[str, Any]], int]:
    """The rows found, and how many events were late."""
    query = (
        found.writeStream.format("memory")
        .queryName(name)
        .option("checkpointLocation", f"{folder}/checkpoint")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    late = sum(progress["observedMetrics"]["spark_pace"]["late"] for progress in query.recentProgress)
    return found.sparkSession.table(name).toArrow().to_pylist(), late


def expected(spec: JobSpec, delay_us: int) -> tuple[list[dict[str, Any]], int]:
    """What the core finds, where only wanted events move the frontier and nothing ends the input."""
    plan = build_plan(
        [replace(rule, merge="detection") for rule in spec.rules],
        order=OrderSpec(delay_us),
        tie_break="columns",
    )
    local, rows, late = LocalRun(plan), [], 0
    for path in sorted(Path(spec.files.path).iterdir()):
        events = read_events(str(path), "json", spec.events.schema, "").events
        wanted = pa.array(
            [offset for _, frame in pack(plan, events) for offset in frame["@offset"].to_pylist()], pa.int64()
        )
        step = local.step(events.filter(pc.is_in(events["@offset"], wanted)))
        rows += step.matches.to_pylist()
        late += step.late.num_rows
    for row in rows:
        del row["out_seq"]
        for event in row["events"]:
            event["offset"] = 0  # a DataFrame's events have no place in a source
    return rows, late


def order(row: dict[str, Any]) -> tuple[Any, ...]:
    return (
        row["rule"],
        str(row["key"]),
        row["selection_id"],
        row["seq"],
        [event["seq"] for event in row["events"]],
    )


@pytest.mark.parametrize(
    ("rules", "slots", "delay_us"),
    [
        pytest.param(ONLY_PAIRS, None, 2_000_000, marks=pytest.mark.long),
        pytest.param(ONLY_PAIRS, 1, 0, marks=pytest.mark.long),
        (COMPUTED, 1, 0),
        (EARLIER, 1, 0),
        (RULES + FOLDS.removeprefix(EVENTS), None, 2_000_000),
    ],
)
def test_detect_finds_what_the_core_finds_and_counts_what_is_late(
    spark: SparkSession, tmp_path: Path, rules: str, slots: int | None, delay_us: int
) -> None:
    spec = job(tmp_path, rules=rules)
    write_files(tmp_path, random_events(31), 3)
    found, late = collected(
        detect(stream(spark, tmp_path), spec.rules, delay_us=delay_us, slots=slots), tmp_path, "found"
    )
    wanted, wanted_late = expected(spec, delay_us)
    assert sorted(found, key=order) == sorted(wanted, key=order)
    assert late == wanted_late
    assert (late > 0) == (delay_us == 0)
    assert {row["rule"] for row in found} == {rule.name for rule in spec.rules}


def test_only_wanted_events_cross_into_python(spark: SparkSession, tmp_path: Path) -> None:
    spec = job(tmp_path, rules=ONLY_PAIRS)
    write_files(tmp_path, random_events(33, 5), 1)
    plan = detect(stream(spark, tmp_path), spec.rules)._jdf.queryExecution().analyzed().toString()
    assert "Filter ((((kind#" in plan or "Filter (((kind#" in plan


ROWS = 50
# what Spark's optimizer puts together, or gives another value in another time zone
WRITTEN = """i * 5000000000 * 5000000000 = 0
i + 9223372036854775807 + 3 < 0
3 + (9223372036854775807 + i) < 5
i * 4611686018427387904 * 2 * 2 <=> 0
i - 9223372036854775807 - 3 > 0
-(i * 5000000000 * 5000000000) is not null
hour(u) < 12
day(d) = 1 or cast(u as date) = d
x in (0.0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13)
round(x) <=> 0
s like '%b%' and i + 9223372036854775807 + 3 < 0"""


@pytest.fixture
def elsewhere(spark: SparkSession) -> Iterator[SparkSession]:
    """A session in another time zone."""
    spark.conf.set("spark.sql.session.timeZone", "Pacific/Auckland")
    yield spark
    spark.conf.set("spark.sql.session.timeZone", "UTC")


def test_every_condition_holds_for_the_same_events_as_in_the_core(
    elsewhere: SparkSession, tmp_path: Path
) -> None:
    """Each rule has events of its own, so that no other rule lets through what this one must not lose."""
    chance = random.Random(5)
    chains = [
        f"i {chance.choice('+-*')} {large(chance)} {chance.choice('+-*')} {large(chance)} "
        f"{chance.choice(['<', '=', '<=>'])} 0"
        for _ in range(20)
    ]
    written = [
        *WRITTEN.splitlines(),
        *chains,
        *(random_text("BOOLEAN", 3, chance) for _ in range(30)),
        "true",
    ]
    rules = load_rules(rules_over(written))
    events = events_for(len(written))
    (tmp_path / "in").mkdir()
    zoned = [
        field.with_type(pa.timestamp("us", "UTC")) if pa.types.is_timestamp(field.type) else field
        for field in events.schema
    ]
    pq.write_table(events.cast(pa.schema(zoned)), tmp_path / "in" / "events.parquet")
    schema = elsewhere.read.parquet(f"{tmp_path}/in").schema
    frame = elsewhere.readStream.schema(schema).parquet(f"{tmp_path}/in")
    found, late = collected(detect(frame, rules, slots=1), tmp_path, "conditions")
    # the last event waits for a later one
    wanted = Counter(replay(rules, events[:-1]).matches["rule"].to_pylist())
    held = Counter(row["rule"] for row in found)
    assert [
        (written[int(name[1:])], held[name], count) for name, count in wanted.items() if held[name] != count
    ] == []
    assert held == wanted
    assert (late, len(wanted) > 30) == (0, True)


def large(chance: random.Random) -> int:
    return chance.choice([3, 5_000_000_000, 2**62, 2**63 - 1, -(2**63) + 1, -7])


def rules_over(written: list[str]) -> dict[str, Any]:
    """A rule file with a rule for each condition, over the events that bear its number."""
    fields = [
        *((field.name, field.type) for field in expression_cases.SCHEMA.fields if " " not in field.name),
        ("n", "BIGINT"),
    ]
    rules = [
        {"name": f"r{n}", "filter": f"n = {n}", "pattern": {"sequence": [{"e": text}]}}
        for n, text in enumerate(written)
    ]
    events = {"schema": ", ".join(map(" ".join, fields)), "event_time": "t", "tie_break": ["n"]}
    return {"events": events, "rules": rules}


def events_for(rules: int) -> pa.Table:
    events = expression_cases.table(ROWS * rules, seed=11).drop_columns(["odd `name`"])
    times = pa.array(np.arange(events.num_rows) * 1_000_000, pa.timestamp("us"))
    events = events.set_column(events.column_names.index("t"), "t", times)
    return events.append_column("n", pa.array(np.arange(events.num_rows) // ROWS))


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (
            "time timestamp, Quantity long",
            "detect — must be given a DataFrame with the column quantities; got time, Quantity. "
            'Did you mean "Quantity"? Rename it.',
        ),
        (
            "time timestamp, quantities double",
            "detect — must be given the column quantities as BIGINT, or as a type that it holds; "
            'got quantities double. Cast it before: df.withColumn("quantities", …), or correct the schema.',
        ),
        (
            "time timestamp_ntz, quantities long",
            "detect — must be given the column time as TIMESTAMP, or as a type that it holds; "
            "got time timestamp_ntz, in a session in Asia/Kathmandu. "
            "Times without a zone are read as UTC: set spark.sql.session.timeZone to UTC.",
        ),
    ],
)
def test_a_frame_of_another_shape_is_refused(
    spark: SparkSession, tmp_path: Path, columns: str, message: str
) -> None:
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "Asia/Kathmandu")
    events = {"schema": "time TIMESTAMP, quantities BIGINT", "event_time": "time"}
    rules = load_rules({"events": events, "rules": [{"name": "r", "pattern": {"sequence": [{"a": "true"}]}}]})
    with pytest.raises(ConfigError) as refused:
        detect(session.readStream.schema(columns).json(str(tmp_path)), rules)
    assert str(refused.value) == message


def test_a_frame_at_rest_is_refused(spark: SparkSession) -> None:
    events = {"schema": "time TIMESTAMP, id BIGINT", "event_time": "time"}
    rules = load_rules({"events": events, "rules": [{"name": "r", "pattern": {"sequence": [{"a": "true"}]}}]})
    with pytest.raises(ConfigError) as refused:
        detect(spark.range(3).selectExpr("current_timestamp() AS time", "id"), rules)
    assert str(refused.value) == (
        "detect — must be given a streaming DataFrame; got one that does not stream. "
        "Make it by spark.readStream; for a table at rest take spark_pace.replay."
    )


@pytest.mark.parametrize("name", ["nope", 1, "tags"])
def test_a_tie_break_that_is_no_single_attribute_is_refused(
    spark: SparkSession, tmp_path: Path, name: object
) -> None:
    events = {"schema": "time TIMESTAMP, id BIGINT, tags ARRAY<STRING>", "event_time": "time"}
    rules = load_rules({"events": events, "rules": [{"name": "r", "pattern": {"sequence": [{"a": "true"}]}}]})
    df = spark.readStream.schema("time timestamp, id long, tags array<string>").json(str(tmp_path))
    with pytest.raises(ConfigError) as refused:
        detect(df, rules, tie_break=[name])  # type: ignore[list-item]
    assert str(refused.value) == (
        f"tie_break — must name attributes of the rules that are single values; got {name!r}. "
        "Use one of: time, id."
    )
