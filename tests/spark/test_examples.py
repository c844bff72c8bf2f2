"""The examples in docstrings that need Spark, or a job that has run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import spark_pace
from spark_pace.job import run_job
from tests.spark.jobs import job, random_events, write_files
from tests.support.examples import tried

pytestmark = pytest.mark.spark


def test_the_examples_run_after_a_job(tmp_path: Path, spark: SparkSession) -> None:
    spec = job(tmp_path)
    write_files(tmp_path, random_events(1), 1)
    run_job(spec)
    folder = tmp_path / "events"
    folder.mkdir()
    for second, x in enumerate((9.0, 7.0)):
        event = {"time": f"2024-01-01T00:00:0{second}Z", "x": x}
        (folder / f"{second}.json").write_text(json.dumps(event), encoding="utf-8")
    values = {"spark": spark, "out": spec.sink_path, "folder": str(folder)}
    for documented in (spark_pace.read_table, spark_pace.create_views, spark_pace.detect):
        assert tried(documented, dict(values)) > 2
    for query in spark.streams.active:
        query.stop()
