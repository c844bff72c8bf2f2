"""Whole jobs on the shared session: the tables are those of the core, whatever happens on the way."""

from __future__ import annotations

import errno
import gzip
import os
import re
import shutil
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from spark_pace import read_table
from spark_pace.errors import EventError, OperatorError, SetupError, SparkPaceError, StateError, shown
from spark_pace.io.delta_tables import DeltaTables
from spark_pace.io.metrics import BatchReport
from spark_pace.job import run_job
from spark_pace.job_file import Parallelism
from spark_pace.spark.checkpoint.checkpoint import Checkpoint
from spark_pace.spark.checkpoint.lock import checkpoint_lock
from spark_pace.spark.sources.own_sources import TELLS_LIMITS
from tests.spark.jobs import (
    failing,
    in_core,
    job,
    matches,
    random_events,
    stop_at,
    table,
    write_files,
)

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]


@pytest.mark.parametrize(
    ("slots", "buckets", "seed"),
    [
        pytest.param(1, 1, 1, marks=pytest.mark.long),
        pytest.param(1, 4, 2, marks=pytest.mark.long),
        (4, 4, 3),
    ],
)
def test_a_job_finds_what_the_core_finds(tmp_path: Path, slots: int, buckets: int, seed: int) -> None:
    bound_us = 1 if slots == 4 else None  # as long as nothing takes
    batches = 4 if TELLS_LIMITS else 1
    spec = job(tmp_path, slots=slots, buckets=buckets)
    spec = replace(spec, parallelism=replace(spec.parallelism, latency_bound_us=bound_us))
    write_files(tmp_path, random_events(seed), 4)
    seen: list[BatchReport] = []
    summary = run_job(spec, on_progress=seen.append)
    core = in_core(spec)
    expected = core.matches.to_pylist()
    assert matches(spec) == expected
    assert {row["rule"] for row in expected} == {"pairs", "keyed", "sums"}
    assert summary.matches == {rule: sum(row["rule"] == rule for row in expected) for rule in summary.matches}
    assert (summary.events, summary.late, summary.quarantined, summary.batches, summary.still_open) == (
        200,
        0,
        0,
        batches,
        core.stats["open"],
    )
    assert summary.finished
    assert [progress.finished for progress in seen] == [False] * (batches - 1) + [True]
    metrics = table(spec, "metrics").sort_by("batch_id")
    assert metrics["events"].to_pylist() == [200 // batches] * batches
    written = read_table(spec.sink_path, "matches", ["batch_id"])["batch_id"].to_pylist()
    counts = [written.count(batch) for batch in metrics["batch_id"].to_pylist()]
    assert counts == metrics["matches"].to_pylist()
    assert sum(metrics["selections"].to_pylist()) >= len(
        {(r["rule"], r["key"], r["selection_id"]) for r in expected}
    )
    assert min(metrics["operator_seconds"].to_pylist()) > 0
    assert [
        (row["longest_lane_predicted"] is not None, row["over_bound"] is not None)
        for row in metrics.to_pylist()
    ] == [(False, False)] + [(bound_us is not None,) * 2] * (batches - 1)
    assert sum(metrics["seconds"].to_pylist()) < summary.seconds
    for row in metrics.to_pylist():
        assert 0 < row["batch_seconds"] < row["seconds"]
        assert 0 < row["longest_lane_seconds"] <= row["operator_seconds"]
        assert 0 < row["lanes"] <= row["distinct_rows"] <= row["lane_rows"]


@pytest.mark.in_parts
def test_a_batch_that_runs_again_is_written_once(tmp_path: Path) -> None:
    spec = job(tmp_path, finish=False)
    write_files(tmp_path, [*random_events(6), {"t": "2024-01-01T00:00:00", "k": "u", "kind": "a", "x": 1}], 2)
    run_job(spec)
    before = {name: table(spec, name).to_pylist() for name in ("matches", "late", "quarantine", "metrics")}
    # as a crash between the tables and the commit leaves it
    (Path(spec.checkpoint_path) / "commits" / "1").unlink()
    assert run_job(spec).batches == 1
    assert {name: table(spec, name).to_pylist() for name in before} == before
    assert len(before["late"]) == 1
    run_job(replace(spec, finish=True))
    assert matches(spec) == in_core(spec).matches.to_pylist()


def test_an_input_that_goes_on_after_its_end_is_refused_and_one_with_nothing_new_writes_nothing(
    tmp_path: Path,
) -> None:
    spec = job(tmp_path)
    write_files(tmp_path, random_events(7, 40), 1)
    run_job(spec)
    done = matches(spec)
    assert run_job(spec).batches == 0
    write_files(tmp_path, random_events(8, 5), 1, first=1)
    with pytest.raises(StateError, match=r"must not go on after its end, .* got 1 new file, "):
        run_job(spec)
    assert matches(spec) == done
    assert table(spec, "metrics").num_rows == 1


def test_changed_slots_and_buckets_are_refused(tmp_path: Path) -> None:
    spec = job(tmp_path, finish=False, slots=1, buckets=1)
    write_files(tmp_path, random_events(9, 20), 1)
    run_job(spec)
    message = (
        "parallelism — must be as the checkpoint knows it; got slots 4 instead of 1, buckets 2 instead of 1. "
        "Restore it, or start a new checkpoint with a sink of its own."
    )
    with pytest.raises(StateError, match=f"^{re.escape(message)}$"):
        run_job(replace(spec, parallelism=Parallelism(4, 2)))


def test_a_checkpoint_is_held_by_one_job(tmp_path: Path) -> None:
    spec = job(tmp_path)
    with (
        checkpoint_lock(Checkpoint(Path(spec.checkpoint_path))),
        pytest.raises(SetupError, match=f"one job at a time; got a second while process {os.getpid()} runs"),
    ):
        run_job(spec)


def test_a_missing_source_is_named(tmp_path: Path) -> None:
    spec = job(tmp_path)
    (tmp_path / "in").rmdir()
    with pytest.raises(SetupError, match=r"in — must be a file or a directory of events; got nothing there"):
        run_job(spec)


def test_a_failing_operator_stops_the_job_if_told_to(tmp_path: Path) -> None:
    events = random_events(12)
    events[100]["x"] = 666
    spec = failing(job(tmp_path), on_operator_error="fail")
    write_files(tmp_path, events, 1)
    with pytest.raises(OperatorError, match="the number of the beast") as caught:
        run_job(spec)
    assert "\n" not in str(caught.value)
    assert "org.apache.spark" not in str(caught.value)


def spoilt(folder: Path) -> None:
    write_files(folder, random_events(13, 60), 2)
    path = folder / "in" / "001.json"
    path.write_text('{"t":"9999-01-01T00:00:00"}\n' + path.read_text() + '\n{"t": nonsense\n')


def test_bad_records_go_to_the_quarantine_with_place_reason_and_bytes(tmp_path: Path) -> None:
    spec = job(tmp_path)
    spoilt(tmp_path)
    summary = run_job(spec)
    first, second = table(spec, "quarantine").sort_by("offset").to_pylist()
    assert (first["kind"], first["source"], first["offset"], first["raw"]) == (
        "record",
        "001.json",
        0,
        b'{"t":"9999-01-01T00:00:00"}',
    )
    assert first["reason"] == "t — must be an event time from 1900 to 2199; got 9999-01-01 00:00:00"
    assert (second["offset"], second["raw"]) == (31, b'{"t": nonsense')
    assert (summary.quarantined, summary.events) == (2, 60)
    assert matches(spec) == in_core(spec).matches.to_pylist()


def test_a_bad_record_stops_the_job_if_told_to(tmp_path: Path) -> None:
    spec = failing(job(tmp_path), on_bad_record="fail")
    spoilt(tmp_path)
    message = (
        "001.json row 0: t — must be an event time from 1900 to 2199; got 9999-01-01 00:00:00. "
        "Correct it, or set on_bad_record to quarantine."
    )
    with pytest.raises(EventError, match=f"^{re.escape(message)}$"):
        run_job(spec)


def test_what_fails_beside_a_signal_to_stop_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = job(tmp_path)
    write_files(tmp_path, random_events(15), 1)

    def signalled(self: DeltaTables, name: str, rows: object, batch_id: int) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "metrics")

    monkeypatch.setattr(DeltaTables, "append", signalled)
    with pytest.raises(
        SetupError, match=r"^the disk of the checkpoint \S+, .* — must have room for the tables"
    ):
        run_job(spec)
    monkeypatch.undo()
    run_job(spec)
    assert matches(spec) == in_core(spec).matches.to_pylist()


OF_AN_ARCHIVE = "the file — must be undamaged; got: Truncated compressed stream"


def with_an_archive(folder: Path) -> bytes:
    """Three files in, the second a damaged archive; returns it undamaged."""
    write_files(folder, random_events(15, 90), 3)
    whole = gzip.compress((folder / "in" / "001.json").read_bytes())
    (folder / "in" / "001.json").unlink()
    (folder / "in" / "001.json.gz").write_bytes(whole[: len(whole) * 3 // 4])
    return whole


@pytest.fixture(scope="module")
def at_an_archive(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, bytes]:
    """The folder of a job that a damaged archive has stopped, and what is to be in it."""
    folder = tmp_path_factory.mktemp("job")
    spec = failing(job(folder), on_bad_record="fail")
    whole = with_an_archive(folder)
    ways = "Correct it, or set on_bad_record to quarantine."
    message = f"001.json.gz — must be undamaged; got: Truncated compressed stream. {ways}"
    with pytest.raises(EventError, match=f"^{re.escape(message)}$"):
        run_job(spec)
    return folder, whole


@pytest.mark.in_parts
@pytest.mark.parametrize("way_out", [pytest.param("an intact file", marks=pytest.mark.long), "quarantine"])
def test_a_job_that_a_damaged_archive_stops_goes_on_in_the_two_ways_that_its_message_names(
    tmp_path: Path, at_an_archive: tuple[Path, bytes], way_out: str
) -> None:
    folder, whole = at_an_archive
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    spec = failing(job(tmp_path), on_bad_record="fail")
    if way_out == "an intact file":
        (tmp_path / "in" / "001.json.gz").write_bytes(whole)
    else:
        spec = failing(spec, on_bad_record="quarantine")
    summary = run_job(spec)
    told = table(spec, "quarantine").select(["kind", "reason", "source", "offset", "raw"]).to_pylist()
    expected = [("record", OF_AN_ARCHIVE, "001.json.gz", 0, b"")] if way_out == "quarantine" else []
    assert [tuple(row.values()) for row in told] == expected
    assert (summary.batches, summary.finished, summary.quarantined) == (2, True, len(told))
    assert summary.bad_records == len(told)
    assert matches(spec) == in_core(spec).matches.to_pylist() != []


@pytest.mark.in_parts
def test_a_file_taken_away_from_an_unfinished_batch_is_asked_for_and_an_empty_one_does(
    tmp_path: Path, at_an_archive: tuple[Path, bytes]
) -> None:
    folder, _ = at_an_archive
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    spec = failing(job(tmp_path), on_bad_record="fail")
    path = tmp_path / "in" / "001.json.gz"
    path.unlink()
    message = (
        rf"^{re.escape(str(path))} — must be a readable json file; "
        r"got: .* an empty json file of that name, compressed, in its place lets the job go on\.$"
    )
    with pytest.raises(EventError, match=message):
        run_job(spec)
    path.write_bytes(gzip.compress(b""))
    summary = run_job(spec)
    assert (summary.batches, summary.finished, summary.bad_records, summary.events) == (2, True, 0, 30)
    assert matches(spec) == in_core(spec).matches.to_pylist() != []


def test_the_trace_of_a_failed_query_can_be_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = job(tmp_path)
    write_files(tmp_path, random_events(17, 30), 1)
    stop_at(monkeypatch, "metrics", batch_id=0)
    with pytest.raises(
        SparkPaceError, match=r"got OSError: the disk is full.* SPARK_PACE_TRACEBACK=1 shows the whole trace"
    ) as caught:
        run_job(spec)
    assert len(shown(caught.value).splitlines()) == 1
    monkeypatch.setenv("SPARK_PACE_TRACEBACK", "1")
    *trace, line = shown(caught.value).splitlines()
    assert line == str(caught.value)
    assert any(", in stop_at" in text or ", in failing" in text for text in trace)
