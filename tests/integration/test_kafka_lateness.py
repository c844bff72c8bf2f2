"""Which records of a topic are late with `ordering: sources` follows from the topic, however it is read."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from examples.kafka.broker import Broker
from spark_pace.errors import SparkPaceError
from spark_pace.io.replay import replay_files
from spark_pace.job import run_job
from spark_pace.job_file import JobSpec
from tests.spark.jobs import Event, matches, random_events, stop_at, table
from tests.support.kafka_jobs import as_json, kafka_job

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("spark")]

ORDER = {"ordering": "sources", "delay": "5 s", "heartbeat": "x = 8", "deduplicate_on": ["x", "kind"]}
BY_KEY = {"source_column": "k", "expected_sources": ["u", "v", "w"]}
PLACE = [("source", "ascending"), ("offset", "ascending")]


def disorderly(seed: int) -> list[tuple[int, Event]]:
    """Events of three sources on two partitions, one of which is far behind; one in six comes too late."""
    chance = random.Random(seed)
    events = random_events(seed, 240)
    behind = [chance.randrange(60) if chance.random() < 1 / 6 else 0 for _ in events]
    places = sorted(range(len(events)), key=lambda n: n + behind[n] + 100 * (events[n]["k"] == "w"))
    return [(int(events[number]["k"] == "w"), events[number]) for number in places]


def as_files(folder: Path, topic: str, dealt: list[tuple[int, Event]]) -> Path:
    """A file for each partition, with the name of the partition and an ending."""
    (folder / "partitions" / topic).mkdir(parents=True)
    for partition in (0, 1):
        lines = [as_json(event)["value"] for part, event in dealt if part == partition]
        (folder / "partitions" / topic / f"{partition}.json").write_bytes(b"\n".join(lines))
    return folder / "partitions"


def rows_of(found: Any) -> list[dict[str, Any]]:
    """Rows with sources as files have them."""
    rows = found.to_pylist()
    for row in rows:
        for place in [*(row.get("events") or []), *([row] if "source" in row else [])]:
            place["source"] = place["source"].removesuffix(".json")
    return rows  # type: ignore[no-any-return]


def assert_as_replayed(spec: JobSpec, files: Path) -> None:
    result = replay_files(spec.rules, files, **spec.events.stream).result
    late = rows_of(result.late.sort_by(PLACE))
    assert len(late) > 10
    assert rows_of(table(spec, "late").sort_by(PLACE)) == late
    assert all("its source had passed" in row["reason"] for row in late)
    found = rows_of(result.matches)
    assert len(found) > 10
    assert matches(spec) == found


@pytest.mark.parametrize(
    ("sources", "most", "again"),  # records of a batch, and the batch that runs again
    [
        pytest.param({}, 1_000, 0, id="partitions", marks=pytest.mark.long),
        pytest.param(BY_KEY, 70, 2, id="column"),
    ],
)
def test_however_it_is_cut_and_though_a_batch_runs_again(
    broker: Broker,
    topic: str,
    send: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    sources: dict[str, Any],
    most: int,
    again: int,
) -> None:
    dealt = disorderly(21)
    send(topic, *((partition, as_json(event)) for partition, event in dealt))
    files = as_files(tmp_path, topic, dealt)
    spec = kafka_job(tmp_path, broker.servers, topic, order=ORDER | sources, max_offsets_per_trigger=most)
    spec = replace(spec, admission="off")
    with monkeypatch.context() as patch, pytest.raises(SparkPaceError, match="the disk is full"):
        stop_at(patch, "metrics", batch_id=again)
        run_job(spec)
    run_job(spec)
    assert table(spec, "metrics").num_rows > 240 // most
    assert_as_replayed(spec, files)
