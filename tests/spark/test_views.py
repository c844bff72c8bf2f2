"""Views of a job's tables, and of each rule's matches."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_pace import create_views
from spark_pace.errors import ConfigError
from spark_pace.job import run_job
from tests.spark.jobs import job, matches, random_events, write_files

pytestmark = pytest.mark.spark


def test_a_view_of_a_rule_has_its_columns_only(tmp_path: Path, spark: SparkSession) -> None:
    spec = job(tmp_path)
    write_files(tmp_path, random_events(14, 60), 1)
    run_job(spec)
    create_views(spark, spec.sink_path, spec.rules)
    fixed = ["out_seq", "selection_id", "seq", "opened_at", "matched_at"]
    assert spark.table("keyed").columns == ["key", *fixed, "k", "events"]
    assert spark.table("metrics").count() == 1
    changes = spark.sql("SELECT DISTINCT batch_id, change FROM rule_changes").collect()
    assert [tuple(row) for row in changes] == [(0, "added")]
    assert spark.table("matches").count() == len(matches(spec))
    with pytest.raises(ConfigError, match="nowhere — must have the tables of a job"):
        create_views(spark, str(tmp_path / "nowhere"))
    assert spark.table("pairs").columns == [*fixed, "first", "second", "began", "events"]
    assert (
        spark.sql("SELECT count(*) FROM pairs WHERE second >= first").first()[0]
        == sum(row["rule"] == "pairs" for row in matches(spec))
        > 0
    )  # type: ignore[index]
