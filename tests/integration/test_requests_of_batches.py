"""How many requests the batches of a job ask a store for, counted by a proxy in front of it."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path

import obstore
import pytest
from obstore.store import S3Store

from examples.cluster.store_server import StoreServer
from spark_pace.io.query import read_table
from spark_pace.job_file import read_job
from spark_pace.watching.subject import tables_of
from tests.long.chaos.processes import sessions
from tests.spark.jobs import make_job
from tests.support.faulty_store import FaultyStore

pytestmark = [pytest.mark.integration, pytest.mark.stores]

SLOTS, WITH_FILES, LAST = 2, (0, 4), 7
SPARK = 18 + 5 * SLOTS
DELTA = 8
METRICS = re.compile(r"^PUT .*/out/metrics/part-")
OF_SOURCE = re.compile(r"^GET .*list-type=2&prefix=in/|^PUT .*/manifest\.jsonl/")  # in a process of its own


@pytest.fixture
def proxy(server: StoreServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultyStore]:
    """A proxy that lets all pass, where the job finds the store."""
    started = FaultyStore(int(server.endpoint.rpartition(":")[2]), 0.0, 1)
    for name, value in (server.environment | {"AWS_ENDPOINT_URL": started.endpoint}).items():
        monkeypatch.setenv(name, value)
    yield started
    started.close()


def test_a_batch_counts_what_it_asks_for_and_one_of_nothing_asks_for_little(
    server: StoreServer, bucket: str, proxy: FaultyStore, tmp_path: Path
) -> None:
    job, store = job_that_ticks(tmp_path, bucket), client(server, bucket)
    put_events(store, 0)
    with sessions("tests.long.chaos.driver") as start:
        running = start(job, tmp_path / "job.err")
        for number in range(LAST + 1):
            assert running.next_fact() == {"batch": number, "finished": False}, running.said()
            if number + 1 in WITH_FILES:
                put_events(store, number + 1)
        os.kill(running.process.pid, signal.SIGTERM)
        assert running.code() == 0, running.said()
    columns = ["batch_id", "records", "store_requests"]
    rows = (
        read_table(tables_of(read_job(job)), "metrics", columns).sort_by("batch_id").to_pylist()[: LAST + 1]
    )
    of_batches = windows(proxy.asked)
    assert [row["batch_id"] for row in rows] == [*range(LAST + 1)]
    files = [row["batch_id"] for row in rows if row["records"]]
    assert files[0] == 0 and len(files) == len(WITH_FILES)
    renewals, seen = 0, 0  # of the lease, by a thread: one at the end of a batch may count for the next
    for number in range(1, LAST + 1):
        spark, delta, ours = of_batches[number]
        asked = [request for request in ours if not OF_SOURCE.match(request)]
        counted = [request for request in asked if not request.endswith("/.lock")]
        assert rows[number]["store_requests"] >= len(counted), counted
        renewals += rows[number]["store_requests"] - len(counted)
        seen += len(asked) - len(counted)
        assert abs(renewals - seen) <= 1, (rows, asked)
        if number in files:
            assert sum("/in/" in request for request in counted) == 1
        else:
            assert len(counted) == 4, counted
            assert len(spark) == SPARK and len(delta) == DELTA, (spark, delta)
            assert sum("manifest" in request for request in ours) == 1


def job_that_ticks(folder: Path, bucket: str) -> Path:
    """A job over a bucket whose clock lets a batch run every two seconds."""
    job = make_job(folder, slots=SLOTS, buckets=2, finish=False)
    text = job.read_text()
    for place in ("path: in", "path: out", "checkpoint: checkpoint"):
        key, name = place.split(": ")
        text = text.replace(place, f'{key}: "s3a://{bucket}/{name}"')
    text = text.replace("trigger: available_now", "trigger: 500 ms")
    text = text.replace("events: {", "events: {clock: {every: 2 s, slack: 1 h}, ")
    seldom = {"spark.sql.streaming.stateStore.maintenanceInterval": "1h"}
    job.write_text(f"{text}spark: {json.dumps(seldom)}\n")
    return job


def client(server: StoreServer, bucket: str) -> S3Store:
    given = server.environment
    return S3Store(
        bucket,
        endpoint=server.endpoint,
        access_key_id=given["AWS_ACCESS_KEY_ID"],
        secret_access_key=given["AWS_SECRET_ACCESS_KEY"],
        client_options={"allow_http": True},
    )


def put_events(store: S3Store, number: int) -> None:
    """A file with three events of now."""
    now = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%f")
    lines = [json.dumps({"t": now, "k": "k", "kind": kind, "x": 1}) for kind in "abc"]
    obstore.put(store, f"in/{number}.json", "\n".join(lines).encode())


def windows(asked: list[tuple[str, str, str]]) -> list[tuple[list[str], list[str], list[str]]]:
    """(Spark's, delta-rs's, the job's own requests) up to each row of metrics, as a batch counts them."""
    found: list[tuple[list[str], list[str], list[str]]] = [([], [], [])]
    for method, path, agent in asked:
        request = f"{method} {path}"
        if METRICS.match(request):
            found.append(([], [], []))
        spark, delta, ours = found[-1]
        of_delta = "/part-" in path or ("/_delta_log/" in path and method != "HEAD")
        (spark if "Hadoop" in agent else delta if of_delta else ours).append(request)
    return found
