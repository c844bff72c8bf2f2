"""`detect`: the matches of a user's streaming DataFrame are those of the core."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from spark_pace.core import local
from spark_pace.core.plan import build_plan
from spark_pace.io.files import read_events
from spark_pace.job_file import JobSpec
from spark_pace.spark.detect import detect
from tests.spark.jobs import RULES, job, random_events, write_files

pytestmark = pytest.mark.spark

ONLY_PAIRS = RULES[: RULES.index("  - name: sums")]


def stream(spark: SparkSession, folder: Path) -> DataFrame:
    for second, path in enumerate(sorted((folder / "in").iterdir())):  # Spark takes files in the order of their times
        os.utime(path, (1_700_000_000 + second, 1_700_000_000 + second))
    return spark.readStream.schema("x long, t timestamp, other string, k string, kind string").option("maxFilesPerTrigger", 1).json(f"{folder}/in")


def collected(found: DataFrame, folder: Path, name: str) -> list[dict[str, Any]]:
    query = found.writeStream.format("memory").queryName(name).option("checkpointLocation", f"{folder}/checkpoint").trigger(availableNow=True).start()
    query.awaitTermination()
    return found.sparkSession.table(name).toArrow().to_pylist()  # type: ignore[no-any-return]


def expected(spec: JobSpec, delay_us: int) -> list[dict[str, Any]]:
    """The core's matches where nothing says that the input ends; a DataFrame's events have no place in a source."""
    plan = build_plan(spec.rules, delay_us=delay_us, tie_break="columns")
    files = sorted(Path(spec.source.path).iterdir())
    rows = local.run(plan, [read_events(str(path), "json", spec.events.schema, "").events for path in files], finish=False).matches.to_pylist()
    for row in rows:
        del row["out_seq"]
        for event in row["events"]:
            event["offset"] = 0
    return rows


def order(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["rule"], str(row["key"]), row["selection_id"], row["seq"], [event["seq"] for event in row["events"]]


def test_detect_finds_what_the_core_finds(spark: SparkSession, tmp_path: Path) -> None:
    spec = job(tmp_path, rules=ONLY_PAIRS)
    write_files(tmp_path, random_events(31), 3)
    found = collected(detect(stream(spark, tmp_path), spec.rules, delay_us=2_000_000), tmp_path, "pairs_found")
    wanted = expected(spec, 2_000_000)
    # only wanted events move the frontier of detect: matches may come later than in a job, but no other ones
    assert sorted(found, key=order) == [row for row in sorted(wanted, key=order) if row in found]
    assert len(wanted) - 5 <= len(found) <= len(wanted)
    assert {row["rule"] for row in found} == {"pairs", "keyed"}


def test_a_rule_with_a_python_operator_gets_every_event(spark: SparkSession, tmp_path: Path) -> None:
    spec = job(tmp_path)
    write_files(tmp_path, random_events(32), 2)
    found = collected(detect(stream(spark, tmp_path), spec.rules, delay_us=2_000_000, slots=1), tmp_path, "all_found")
    assert sorted(found, key=order) == sorted(expected(spec, 2_000_000), key=order)


def test_only_wanted_events_cross_into_python(spark: SparkSession, tmp_path: Path) -> None:
    spec = job(tmp_path, rules=ONLY_PAIRS)
    write_files(tmp_path, random_events(33, 5), 1)
    plan = detect(stream(spark, tmp_path), spec.rules)._jdf.queryExecution().analyzed().toString()
    assert "Filter ((((kind#" in plan or "Filter (((kind#" in plan
