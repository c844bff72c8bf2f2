"""A store that is full, or over its quota, ends the job in one line; with room again, it goes on."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from examples.cluster.store_server import StoreServer
from jobs import run
from spark_pace.io.files import files
from spark_pace.job_file import JobSpec
from spark_pace.spark.checkpoint.checkpoint import Checkpoint
from tests.spark.jobs import (
    RULES,
    WAITING,
    Event,
    in_core,
    make_job,
    matches,
    random_events,
    table,
    waiting_events,
    write_files,
)
from tests.support.both_places import Kept, reach
from tests.support.commands import message_of
from tests.support.faulty_store import OF_CEPH, OF_MINIO, OF_MINIO_QUOTA, FaultyStore

pytestmark = [pytest.mark.integration, pytest.mark.spark, pytest.mark.stores]

FILES = 5
CODES = {
    OF_CEPH: "QuotaExceeded",
    OF_MINIO: "XMinioStorageFull",
    OF_MINIO_QUOTA: "XMinioAdminBucketQuotaExceeded",
}
# by what is missing: PUTs of Spark, and what ends the job behind them
REFUSED = {
    "offsets": (r"checkpoint/offsets/1", r"offsets/1|sequence/2"),
    "commits": (r"checkpoint/commits/0", r"commits/0|sequence/2"),
    "commits of the batch before": (r"checkpoint/commits/0", r"commits/0|sequence/3"),
    "state": (r"checkpoint/state/0/1/\d+\.", r"state/0/1/\d+\."),
}
LONG = ("offsets", "commits")
# the first PUT that there is no room for, what it and all others are answered, and the place that is named
MOMENTS = [
    ("checkpoint/.lock", OF_CEPH, "checkpoint/.lock"),
    ("checkpoint/layout.json", OF_MINIO_QUOTA, "checkpoint/layout.json"),
    ("checkpoint/offsets/", OF_MINIO_QUOTA, "checkpoint"),  # Spark makes the prefix first
    (r"checkpoint/manifest.jsonl/\d", OF_CEPH, r"checkpoint/manifest.jsonl/\d+"),
    ("checkpoint/claims/0", OF_CEPH, "checkpoint/claims/0"),
    (r"checkpoint/waiting/\w", OF_CEPH, r"checkpoint/waiting/\w+"),
    (r"checkpoint/waiting/\w", OF_MINIO, "checkpoint/.lock"),  # which is asked for while others wait
    (r"checkpoint/sequence/\d", OF_MINIO_QUOTA, r"checkpoint/sequence/\d.json"),
    ("out/matches/part", OF_CEPH, "out/matches/part-.*"),
    (r"out/matches/_delta_log/\d", OF_MINIO_QUOTA, "out/matches"),
    (r"out/metrics/_delta_log/\d", OF_CEPH, "out/metrics"),
]
TOLD = "must be in a store that has room for what the job writes; got one that is full, or over its quota"


@pytest.fixture
def proxy(spark: SparkSession, store: StoreServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultyStore]:
    """Before the store; jobs in this process reach it."""
    started = FaultyStore(int(store.endpoint.rpartition(":")[2]), 0.0, 1)
    reached = store.environment | {"AWS_ENDPOINT_URL": started.endpoint}
    reach(spark, reached)
    for name, value in reached.items():
        monkeypatch.setenv(name, value)
    yield started
    started.close()


def job_in(store: StoreServer, folder: Path, rules: str, events: list[Event]) -> JobSpec:
    job_file = make_job(folder, rules=rules)
    write_files(folder, events, FILES)
    return Kept.in_store(store, folder.name).for_job(job_file)


def ends_in_one_line(spec: JobSpec, folder: Path, capfd: pytest.CaptureFixture[str]) -> str:
    """The line of a run that fails; another one can begin at once, as if this process had ended."""
    assert run.main([os.fspath(folder / "job.yaml")]) == 1
    files.remove(Checkpoint(spec.checkpoint_folder).lock_file)
    said = capfd.readouterr().err
    told = [line for line in message_of(said).splitlines() if " — " in line]
    assert len(told) == 1 and "Traceback" not in said and "\tat " not in said, said
    return told[0].partition("): ")[2]


def goes_on(spec: JobSpec, folder: Path) -> None:
    """Let the job go on to its end; its rows are those of a run where nothing fails."""
    assert run.main([os.fspath(folder / "job.yaml")]) == 0
    assert matches(spec) == in_core(spec).matches.to_pylist() != []
    assert table(spec, "metrics").sort_by("batch_id")["batch_id"].to_pylist() == list(range(FILES))


def test_a_full_store_ends_the_job_in_one_line_and_room_lets_it_go_on(
    store: StoreServer, proxy: FaultyStore, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    spec = job_in(store, tmp_path, WAITING, waiting_events())
    bucket = spec.sink_path.rpartition("/")[0]
    for first, answer, place in MOMENTS:
        proxy.fill(answer, first)
        told = ends_in_one_line(spec, tmp_path, capfd)
        assert proxy.make_room(), first
        # or of the lease, which is renewed meanwhile
        line = rf"{bucket}/(?:{place}|checkpoint/\.lock) — {TOLD} \({CODES[answer]}\)\. Make room there, .*"
        assert re.fullmatch(line, told), told
    goes_on(spec, tmp_path)


@pytest.mark.parametrize(
    ("first", "refused"),
    [
        pytest.param(*puts, id=name, marks=pytest.mark.long if name in LONG else ())
        for name, puts in REFUSED.items()
    ],
)
def test_a_file_of_spark_s_that_a_store_has_refused_without_a_word_is_not_missed(
    store: StoreServer,
    proxy: FaultyStore,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    first: str,
    refused: str,
) -> None:
    spec = job_in(store, tmp_path, RULES, random_events(5))
    proxy.fill(OF_CEPH, first, refused)
    told = ends_in_one_line(spec, tmp_path, capfd)
    assert proxy.make_room()
    place = f"{spec.checkpoint_folder}/state — must have Spark's state of batch 0 for each of 2 slots; got"
    assert told.startswith(place) == ("state" in first), told
    goes_on(spec, tmp_path)
