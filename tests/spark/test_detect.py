"""`detect`: the matches of a user's streaming DataFrame are those of the core."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import DataFrame, SparkSession

from spark_pace.core.intake import pack
from spark_pace.core.local import LocalRun
from spark_pace.core.order import OrderSpec
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


def collected(found: DataFrame, folder: Path, name: str) -> tuple[list[dict[str, Any]], int]:
    """The rows found, and how many events were late."""
    query = found.writeStream.format("memory").queryName(name).option("checkpointLocation", f"{folder}/checkpoint").trigger(availableNow=True).start()
    query.awaitTermination()
    late = sum(progress["observedMetrics"]["spark_pace"]["late"] for progress in query.recentProgress)
    return found.sparkSession.table(name).toArrow().to_pylist(), late


def expected(spec: JobSpec, delay_us: int) -> tuple[list[dict[str, Any]], int]:
    """The same of the core, where only wanted events move the frontier and nothing says that the input ends."""
    plan = build_plan([replace(rule, merge="detection") for rule in spec.rules], order=OrderSpec(delay_us), tie_break="columns")
    local, rows, late = LocalRun(plan), [], 0
    for path in sorted(Path(spec.files.path).iterdir()):
        events = read_events(str(path), "json", spec.events.schema, "").events
        wanted = pa.array([offset for _, frame in pack(plan, events) for offset in frame["@offset"].to_pylist()], pa.int64())
        step = local.step(events.filter(pc.is_in(events["@offset"], wanted)))
        rows += step.matches.to_pylist()
        late += step.late.num_rows
    for row in rows:
        del row["out_seq"]
        for event in row["events"]:
            event["offset"] = 0  # a DataFrame's events have no place in a source
    return rows, late


def order(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["rule"], str(row["key"]), row["selection_id"], row["seq"], [event["seq"] for event in row["events"]]


@pytest.mark.parametrize(("rules", "slots", "delay_us"), [(ONLY_PAIRS, None, 2_000_000), (ONLY_PAIRS, 1, 0), (RULES, 1, 2_000_000)])
def test_detect_finds_what_the_core_finds_and_counts_what_is_late(spark: SparkSession, tmp_path: Path, rules: str, slots: int | None, delay_us: int) -> None:
    spec = job(tmp_path, rules=rules)
    write_files(tmp_path, random_events(31), 3)
    found, late = collected(detect(stream(spark, tmp_path), spec.rules, delay_us=delay_us, slots=slots), tmp_path, "found")
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
