"""A store that is full, or over its quota, ends the job in one line; with room again, it goes on."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from examples.cluster.store_server import StoreServer
from jobs import run
from spark_pace.job_file import read_job
from spark_pace.spark.checkpoint import file_access
from spark_pace.spark.checkpoint.checkpoint import Checkpoint
from tests.spark.jobs import WAITING, in_core, make_job, matches, table, waiting_events, write_files
from tests.support.both_places import Kept, reach
from tests.support.commands import message_of
from tests.support.faulty_store import OF_CEPH, OF_MINIO, OF_MINIO_QUOTA, FaultyStore

pytestmark = [pytest.mark.integration, pytest.mark.spark]

FILES = 5
CODES = {
    OF_CEPH: "QuotaExceeded",
    OF_MINIO: "XMinioStorageFull",
    OF_MINIO_QUOTA: "XMinioAdminBucketQuotaExceeded",
}
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


def test_a_full_store_ends_the_job_in_one_line_and_room_lets_it_go_on(
    spark: SparkSession,
    store: StoreServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    proxy = FaultyStore(int(store.endpoint.rpartition(":")[2]), 0.0, 1)
    reached = store.environment | {"AWS_ENDPOINT_URL": proxy.endpoint}
    reach(spark, reached)
    for name, value in reached.items():
        monkeypatch.setenv(name, value)
    job_file = make_job(tmp_path, rules=WAITING)
    write_files(tmp_path, waiting_events(), FILES)
    kept = Kept.in_store(store, tmp_path.name)
    spec = kept.for_job(job_file)
    for first, answer, place in MOMENTS:
        proxy.fill(answer, first)
        assert run.main([os.fspath(job_file)]) == 1
        assert proxy.make_room(), first
        file_access.remove(Checkpoint(spec.checkpoint_folder).lock_file)  # its process would have ended
        said = capfd.readouterr().err
        told = [line for line in message_of(said).splitlines() if " — " in line]
        assert len(told) == 1, said
        line = rf".*: {kept.address}/{place} — {TOLD} \({CODES[answer]}\)\. Make room there, .* again: .*"
        assert re.fullmatch(line, told[0]), said
        assert "Traceback" not in said and "\tat " not in said
    assert run.main([os.fspath(job_file)]) == 0
    proxy.close()
    monkeypatch.setenv("AWS_ENDPOINT_URL", store.endpoint)
    spec = read_job(job_file)
    assert matches(spec) == in_core(spec).matches.to_pylist() != []
    assert table(spec, "metrics").sort_by("batch_id")["batch_id"].to_pylist() == list(range(FILES))
