"""Topics change under a job: one is deleted and made again, gets partitions, loses its broker for a while."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from kafka import KafkaProducer
from pyspark.sql import DataFrame, SparkSession

from examples.kafka.broker import Broker
from spark_pace.errors import SetupError, SparkPaceError, StateError
from spark_pace.io.files.files import read_json, write_json
from spark_pace.io.metrics import BatchReport
from spark_pace.job import run_job
from spark_pace.job_file import JobSpec
from spark_pace.spark.checkpoint.checkpoint import Checkpoint
from spark_pace.spark.sources import kafka
from spark_pace.spark.stages.operators import BatchRows
from tests.long.chaos.topic import kill_for
from tests.spark.jobs import Event, matches, random_events, table
from tests.support.kafka_jobs import as_json, dealt, in_core, in_core_by_source, kafka_job

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("spark")]

Send = Callable[..., None]
OUTAGE_SECONDS = 8


def make_again(broker: Broker, send: Send, topic: str, events: list[Event]) -> None:
    """Delete the topic and make it again, with these events in it."""
    broker.delete_topic(topic)
    broker.create_topic(topic, 2)
    send(topic, *dealt(events, as_json))


def marks(spec: JobSpec) -> dict[str, Any]:
    """What the checkpoint knows of its source."""
    return read_json(Checkpoint(Path(spec.checkpoint_path)).source_file) or {}


def rows_written(spec: JobSpec) -> dict[str, int]:
    return {name: table(spec, name).num_rows for name in ("matches", "late", "quarantine", "metrics")}


def stop() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def test_a_topic_made_again_is_refused_at_every_start(
    broker: Broker, topic: str, send: Send, tmp_path: Path
) -> None:
    """It is longer than the job has come, so offsets alone tell nothing."""
    send(topic, *dealt(random_events(1, 50), as_json))
    spec = kafka_job(tmp_path, broker.servers, topic, finish=False)
    run_job(spec)
    before, known = rows_written(spec), marks(spec)["ids"][topic]
    make_again(broker, send, topic, random_events(2))
    for _ in range(2):
        with pytest.raises(StateError) as raised:
            run_job(spec)
        assert str(raised.value).startswith(
            "source.topics — must be the topics that the checkpoint has read from; "
            f"got {topic}, which is a new one, deleted and made again, or of another cluster "
            f"(its id was {known}, and is "
        )
        assert str(raised.value).endswith("). Start a new checkpoint with a sink of its own.")
    assert rows_written(spec) == before


def test_a_topic_made_again_while_the_job_runs_is_refused_before_its_records_are_written(
    broker: Broker, topic: str, send: Send, tmp_path: Path
) -> None:
    send(topic, *dealt(random_events(1, 50), as_json))
    spec = kafka_job(tmp_path, broker.servers, topic, finish=False, trigger="200 ms")
    found: list[BatchReport] = []

    def on_progress(batch: BatchReport) -> None:
        found.append(batch)
        make_again(broker, send, topic, random_events(2)) if len(found) == 1 else stop()

    with pytest.raises(StateError, match=f"got {topic}, which is a new one, deleted and made again"):
        run_job(spec, on_progress=on_progress)
    assert [batch.events for batch in found] == [50]
    assert rows_written(spec)["metrics"] == 1


def test_a_topic_that_is_deleted_while_the_job_runs_ends_it_in_one_line(
    broker: Broker, topic: str, send: Send, tmp_path: Path
) -> None:
    send(topic, *dealt(random_events(1, 50), as_json))
    spec = kafka_job(tmp_path, broker.servers, topic, finish=False, trigger="200 ms")
    with pytest.raises(StateError) as raised:
        run_job(spec, on_progress=lambda batch: broker.delete_topic(topic))
    assert str(raised.value) == (
        "source.topics — must be there while the job runs; got: This server does not host this "
        "topic-partition. Start the job again when it is back; one made anew needs a new checkpoint and sink."
    )


def test_a_checkpoint_from_before_takes_the_ids_over(
    broker: Broker, topic: str, send: Send, tmp_path: Path
) -> None:
    events = random_events(3)
    send(topic, *dealt(events[:100], as_json))
    spec = kafka_job(tmp_path, broker.servers, topic, finish=False)
    run_job(spec)
    write_json(
        Checkpoint(Path(spec.checkpoint_path)).source_file, {"kind": "kafka", "topics": marks(spec)["topics"]}
    )
    send(topic, *dealt(events[100:], as_json))
    assert run_job(spec).events == 100
    make_again(broker, send, topic, events)
    with pytest.raises(StateError, match="deleted and made again"):
        run_job(spec)


@pytest.mark.long
def test_other_servers_have_topics_with_ids_of_their_own(
    broker: Broker, topic: str, send: Send, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    events = random_events(4)
    send(topic, *dealt(events[:100], as_json))
    run_job(kafka_job(tmp_path, broker.servers, topic, finish=False))
    make_again(broker, send, topic, events)
    spec = kafka_job(tmp_path, broker.servers.replace("127.0.0.1", "localhost"), topic)
    assert run_job(spec).events == 100
    assert [record.message for record in caplog.records if record.name.endswith("kafka")] != []
    assert matches(spec) == in_core(spec, topic, events)


def test_no_id_is_what_brokers_without_ids_give(spark: SparkSession) -> None:
    jvm: Any = spark._jvm
    assert jvm.org.apache.kafka.common.Uuid.ZERO_UUID.toString() == kafka._NO_ID


@pytest.mark.parametrize("ordering", ["watermark", pytest.param("sources", marks=pytest.mark.long)])
def test_events_of_partitions_added_while_the_job_runs_are_matched_or_late(
    broker: Broker, topic: str, send: Send, tmp_path: Path, ordering: str
) -> None:
    """The frontier that held when their first batch began says which are late."""
    events, late = random_events(5), random_events(6, 3)
    send(topic, *dealt(events[:100], as_json))
    source = {"order": {"ordering": ordering}, "trigger": "200 ms"}
    new = {0: events[100::3], 1: events[101::3], 2: late + events[102::3]}
    seen: list[BatchReport] = []

    def on_progress(batch: BatchReport) -> None:
        seen.append(batch)
        if len(seen) == 1:
            broker.add_partitions(topic, 1)
            send(topic, *((part, as_json(event)) for part, sent in new.items() for event in sent))
        if sum(each.records for each in seen) == 203:
            stop()

    run_job(kafka_job(tmp_path, broker.servers, topic, finish=False, **source), on_progress=on_progress)
    spec = kafka_job(tmp_path, broker.servers, topic, order=source["order"])
    run_job(spec)  # does the second batch again if the signal came before Spark had noted its end
    assert [batch.records for batch in seen] == [100, 103]
    rows = table(spec, "late").sort_by("offset").to_pylist()
    assert [(row["source"], row["offset"]) for row in rows] == [(f"{topic}/2", place) for place in range(3)]
    by_source = {f"{topic}/{partition}": events[:100][partition::2] + new[partition] for partition in (0, 1)}
    core = in_core_by_source(spec, by_source | {f"{topic}/2": new[2]}, late=3)
    assert matches(spec) == core


@pytest.fixture(scope="module")
def mortal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A broker that may be killed."""
    broker = Broker(tmp_path_factory.mktemp("mortal"))
    yield broker
    broker.kill()


@pytest.fixture
def own_broker(mortal: Broker, topic: str) -> Broker:
    """The same, running, with a topic."""
    if not mortal.pid:
        mortal.start()
    mortal.create_topic(topic, 2)
    return mortal


def produce(broker: Broker, topic: str, events: list[Event]) -> None:
    with KafkaProducer(bootstrap_servers=broker.servers, acks="all") as producer:
        for partition, record in dealt(events, as_json):
            producer.send(topic, partition=partition, **record)


@pytest.mark.long
@pytest.mark.parametrize("ordering", ["watermark", "sources"])
def test_a_job_goes_on_after_its_broker_was_gone(
    own_broker: Broker, topic: str, tmp_path: Path, ordering: str
) -> None:
    """The broker is killed while a batch is written; what the job may not survive, its next start does."""
    events = random_events(7)

    def away() -> None:
        kill_for(own_broker, OUTAGE_SECONDS)
        produce(own_broker, topic, events[100:])

    outage = threading.Thread(target=away)
    seen: list[BatchReport] = []

    def on_progress(batch: BatchReport) -> None:
        seen.append(batch)
        if len(seen) == 1:
            outage.start()
        if sum(each.records for each in seen) == 200:
            stop()

    produce(own_broker, topic, events[:100])
    # a partition of a broker that has just started may get its records behind the other's, 100 s of them
    source = {"order": {"ordering": ordering, "delay": "102 s"}, "max_offsets_per_trigger": 40}
    spec = kafka_job(tmp_path, own_broker.servers, topic, finish=False, trigger="200 ms", **source)
    while sum(each.records for each in seen) < 200:
        try:
            run_job(spec, on_progress=on_progress)
        except SparkPaceError as error:
            print(f"ended, and is started again: {error}")
            assert "\n" not in str(error)
            outage.join()
    outage.join()
    spec = kafka_job(tmp_path, own_broker.servers, topic, **source)
    run_job(spec)
    counted = table(spec, "metrics")
    assert [sum(counted[name].to_pylist()) for name in ("records", "events", "late")] == [200, 200, 0]
    assert matches(spec) == in_core(spec, topic, events)


def kill_after_reading(monkeypatch: pytest.MonkeyPatch, broker: Broker, then: Callable[[], None]) -> None:
    """Kill the broker when a batch was read and nothing of it is written."""
    collect = BatchRows.collect

    def killing(self: BatchRows, rows: DataFrame) -> pa.Table:
        collected = collect(self, rows)
        broker.kill()
        then()
        return collected

    monkeypatch.setattr(BatchRows, "collect", killing)


@pytest.mark.long
def test_a_batch_is_not_written_while_no_broker_tells_the_ids(
    own_broker: Broker, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = random_events(8)
    produce(own_broker, topic, events)
    spec = kafka_job(tmp_path, own_broker.servers, topic)
    kill_after_reading(monkeypatch, own_broker, lambda: None)
    monkeypatch.setattr(kafka, "WAIT_SECONDS", 2)
    monkeypatch.setattr(kafka, "TIMEOUT_SECONDS", 8)  # as long as the client waits at least
    with pytest.raises(SetupError) as raised:
        run_job(spec)
    assert str(raised.value).startswith("source.servers — must answer while the job runs; got: Timed out ")
    assert str(raised.value).endswith("Start the broker and then the job again: it goes on where it stopped.")
    assert rows_written(spec)["metrics"] == 0
    monkeypatch.undo()
    own_broker.start()
    run_job(spec)
    assert matches(spec) == in_core(spec, topic, events)


@pytest.mark.long
def test_a_job_that_asks_for_the_ids_can_be_stopped(
    own_broker: Broker, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    produce(own_broker, topic, random_events(9, 20))
    kill_after_reading(monkeypatch, own_broker, lambda: threading.Timer(1, stop).start())
    monkeypatch.setattr(kafka, "WAIT_SECONDS", 400)
    began = time.monotonic()
    assert run_job(kafka_job(tmp_path, own_broker.servers, topic)).stopped_by == signal.SIGINT
    assert time.monotonic() - began < kafka.WAIT_SECONDS
