"""Which events of files are late does not depend on batches, admission, kills or slots: nor does any row."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from spark_pace.errors import SparkPaceError
from spark_pace.io.replay import replay_files
from spark_pace.job import run_job
from spark_pace.job_file import JobSpec
from spark_pace.job_file.pace import Admission
from spark_pace.spark import start as inputs
from tests.spark.jobs import Event, job, matches, random_events, stop_at, table, write_files

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]

FILES = 4
OF_ADMISSION = 7
DELAYS = {"watermark": "delay: 5 s", "sources": "delay: 5 s, ordering: sources, source_column: k"}
SETTINGS = """{}, heartbeat: "x = 8", deduplicate_on: [x, kind]"""


def shuffled(seed: int) -> list[Event]:
    """Events of which one in six comes up to a minute too late."""
    chance = random.Random(seed)
    events = random_events(seed, 210)
    behind = [chance.randrange(60) if chance.random() < 1 / 6 else 0 for _ in events]
    places = sorted(range(len(events)), key=lambda number: number + behind[number])
    return [events[number] for number in places]


def late(spec: JobSpec) -> list[dict[str, Any]]:
    return table(spec, "late").sort_by([("source", "ascending"), ("offset", "ascending")]).to_pylist()  # type: ignore[no-any-return]


def expected(spec: JobSpec) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    result = replay_files(spec.rules, Path(spec.files.path), **spec.events.stream).result
    order = [("source", "ascending"), ("offset", "ascending")]
    return result.matches.to_pylist(), result.late.sort_by(order).to_pylist()


def assert_as_replayed(spec: JobSpec) -> None:
    found, late_rows = expected(spec)
    assert len(late_rows) > 5
    assert found
    assert late(spec) == late_rows
    assert matches(spec) == found
    metrics = table(spec, "metrics").to_pydict()
    assert sum(metrics["late"]) == len(late_rows)
    parts = ("events", "late", "heartbeats", "repeats", "bad_records")
    assert sum(metrics["records"]) == sum(sum(metrics[name]) for name in parts) == 210


@pytest.mark.parametrize(
    ("files", "slots", "ordering"),
    [
        pytest.param(1, 2, "sources", marks=pytest.mark.long),
        pytest.param(1, 2, "watermark", marks=pytest.mark.long),
        pytest.param(FILES, 3, "sources", marks=pytest.mark.long),
        (FILES, 3, "watermark"),
    ],
)
def test_however_many_files_a_batch_has(tmp_path: Path, ordering: str, files: int, slots: int) -> None:
    spec = job(tmp_path, events=SETTINGS.format(DELAYS[ordering]), slots=slots)
    write_files(tmp_path, shuffled(11), FILES)
    run_job(replace(spec, source=replace(spec.files, max_files_per_trigger=files)))
    assert_as_replayed(spec)


@pytest.mark.parametrize("name", ["late", pytest.param("metrics", marks=pytest.mark.long)])
def test_where_admission_cuts_and_a_batch_runs_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    spec = job(tmp_path, events=SETTINGS.format(DELAYS["watermark"]))
    write_files(tmp_path, shuffled(12), OF_ADMISSION)
    most = max(path.stat().st_size for path in (tmp_path / "in").iterdir())
    monkeypatch.setitem(inputs._FIRST_CAPS, "files", 4096 + most)
    source = replace(spec.files, max_files_per_trigger=None)
    spec = replace(spec, source=source, admission=Admission(batch_seconds=3600.0))
    with monkeypatch.context() as patch, pytest.raises(SparkPaceError, match="the disk is full"):
        stop_at(patch, name, batch_id=1)
        run_job(spec)
    run_job(spec)
    assert table(spec, "metrics").num_rows > 3
    assert_as_replayed(spec)
