"""How much batches of files read: Spark is told after each one, and results do not depend on it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from spark_pace.errors import SparkPaceError
from spark_pace.job import run_job
from spark_pace.job_file import JobSpec
from spark_pace.job_file.pace import Admission
from spark_pace.spark import queries
from spark_pace.spark import start as inputs
from tests.spark.jobs import in_core, job, matches, random_events, stop_at, table, write_files

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]

FILES = 13
EVENTS = 13  # in a file
SLOWLY = Admission(batch_seconds=3600.0)  # so that a busy machine does not end the warm-up


@pytest.fixture
def spec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> JobSpec:
    """A job whose first batch reads one file, with the cap of that."""
    spec = job(tmp_path)
    write_files(tmp_path, random_events(5, FILES * EVENTS), FILES)
    most = max(path.stat().st_size for path in (tmp_path / "in").iterdir())
    monkeypatch.setitem(inputs._FIRST_CAPS, "files", 4096 + most)
    source = replace(spec.files, max_files_per_trigger=None)
    return replace(spec, source=source, admission=SLOWLY)


def files_of_batches(spec: JobSpec) -> list[float]:
    return [records / EVENTS for records in table(spec, "metrics").sort_by("batch_id")["records"].to_pylist()]


def test_batches_double_and_a_planned_one_is_done_again_as_it_was(
    spec: JobSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch, pytest.raises(SparkPaceError, match="the disk is full"):
        stop_at(patch, "metrics", batch_id=2)
        run_job(spec)
    assert files_of_batches(spec) == [1, 2]
    summary = run_job(spec)
    # the third has the cap of the first run; the fourth that of a run whose first batch was full
    assert files_of_batches(spec) == [1, 2, 4, 2, 4]
    assert (summary.late, summary.finished) == (0, True)
    assert matches(spec) == in_core(spec).matches.to_pylist()


def test_without_admission_all_is_one_batch(spec: JobSpec) -> None:
    run_job(replace(spec, admission="off"))
    assert files_of_batches(spec) == [FILES]


def test_where_spark_takes_no_limits_the_first_one_stays_and_the_job_says_so(
    spec: JobSpec, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*_: object) -> None:
        raise AttributeError("no such table")

    monkeypatch.setitem(inputs._FIRST_CAPS, "files", 8 * inputs._FIRST_CAPS["files"])
    monkeypatch.setattr(queries, "set_limits", refuse)
    assert run_job(spec).finished
    assert files_of_batches(spec)[0] == 8
    assert "admission — must set how much Spark reads; got: no such table" in caplog.text


def test_where_spark_tells_sources_no_limits_admission_is_off_and_the_job_says_so(
    spec: JobSpec, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(queries, "TELLS_LIMITS", False)
    assert run_job(spec).finished
    assert files_of_batches(spec) == [FILES]
    assert "admission — must set how much Spark reads, which Spark " in caplog.text
