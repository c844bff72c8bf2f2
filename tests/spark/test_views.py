"""What Spark reads of a job: views of its tables and of matches, and the examples in docstrings."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_pace import create_views, detect, read_table
from spark_pace.cli.status import status_command
from spark_pace.core.operate.match_table import FIXED_COLUMNS
from spark_pace.errors import ConfigError
from spark_pace.job import run_job
from spark_pace.job_file import JobSpec, read_job
from spark_pace.watching.subject import Subject
from tests.spark.jobs import in_core, job, make_job, matches, random_events, write_files
from tests.support.examples import tried

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def ended(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> JobSpec:
    """A job that has run."""
    folder = tmp_path_factory.mktemp("job")
    spec = job(folder)
    write_files(folder, random_events(14, 60), 1)
    run_job(spec)
    return spec


@pytest.mark.long
def test_a_view_of_a_rule_has_its_columns_only(ended: JobSpec, tmp_path: Path, spark: SparkSession) -> None:
    spec = ended
    create_views(spark, spec.sink_path, spec.rules)
    fixed = [name for name in FIXED_COLUMNS if name not in ("rule", "key", "events")]
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


def test_folders_may_have_any_characters_in_their_names(
    tmp_path: Path, spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    nasty = "a b #?'\"`{ä} 100%"
    path = make_job(tmp_path)
    text = path.read_text().replace("path: in,", f"path: {json.dumps(f'in %20 [x] {nasty}')},")
    text = text.replace("path: out}", f"path: {json.dumps(nasty)}}}").replace(
        ": checkpoint", f": {json.dumps(f'checkpoint %20 [x] {nasty}')}"
    )
    path.write_text(text)
    spec = read_job(path)
    write_files(tmp_path, random_events(16, 90), 2)
    (tmp_path / "in").rename(spec.files.path)
    run_job(replace(spec, finish=False))
    assert run_job(spec).finished
    expected = in_core(spec).matches.to_pylist()
    assert matches(spec) == expected
    create_views(spark, spec.sink_path, spec.rules)
    assert spark.table("pairs").count() == sum(row["rule"] == "pairs" for row in expected) > 0
    status_command(Subject(spec.sink_path))
    assert "90 records" in capsys.readouterr().out
    assert {entry.name for entry in tmp_path.iterdir()} == {
        path.name,
        "rules.yaml",
        nasty,
        f"in %20 [x] {nasty}",
        f"checkpoint %20 [x] {nasty}",
    }


def test_the_examples_run_after_a_job(ended: JobSpec, tmp_path: Path, spark: SparkSession) -> None:
    folder = tmp_path / "events"
    folder.mkdir()
    for second, x in enumerate((9.0, 7.0)):
        event = {"time": f"2024-01-01T00:00:0{second}Z", "x": x}
        (folder / f"{second}.json").write_text(json.dumps(event))
    values = {"spark": spark, "out": ended.sink_path, "folder": str(folder)}
    for documented in (read_table, create_views, detect):
        assert tried(documented, dict(values)) > 2
    for query in spark.streams.active:
        query.stop()
