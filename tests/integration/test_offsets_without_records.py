"""Offsets at which no record is read: marks of transactions, what was aborted, what was compacted away."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient

from examples.kafka.broker import Broker
from spark_pace.errors import StateError
from spark_pace.job import run_job
from spark_pace.job_file import JobSpec
from tests.spark.jobs import LINES, matches, random_events, table
from tests.support.kafka_jobs import as_json, as_line, dealt, in_core, kafka_job

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("spark")]

Send = Callable[..., None]


def transaction(broker: Broker, name: str) -> KafkaProducer:
    """A producer with an open transaction."""
    patience = {"transaction_timeout_ms": 600_000}  # for jobs on a busy machine
    producer = KafkaProducer(bootstrap_servers=broker.servers, transactional_id=name, **patience)
    producer.init_transactions()
    producer.begin_transaction()
    return producer


def put(producer: KafkaProducer, topic: str, records: list[tuple[int, dict[str, Any]]]) -> None:
    for partition, record in records:
        producer.send(topic, partition=partition, **record)
    producer.flush()


def skipped(spec: JobSpec) -> list[int]:
    found: list[int] = table(spec, "metrics").sort_by("batch_id")["skipped_offsets"].to_pylist()
    return found


def without_offsets(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Matches that do not say at which offsets their events are."""
    return [row | {"events": [event | {"offset": None} for event in row["events"]]} for row in rows]


def test_a_job_reads_what_is_committed_and_no_further(
    broker: Broker, topic: str, send: Send, tmp_path: Path
) -> None:
    events = random_events(21, 80)
    records = dealt(events, as_json)
    with transaction(broker, topic) as producer:
        put(producer, topic, records[:30])
        producer.commit_transaction()
        producer.begin_transaction()
        put(producer, topic, records[:10])
        producer.abort_transaction()
        producer.begin_transaction()
        put(producer, topic, records[30:50])
        send(topic, *records[50:])
        spec = kafka_job(tmp_path, broker.servers, topic, finish=False)
        assert run_job(spec).records == 30
        producer.commit_transaction()
    spec = kafka_job(tmp_path, broker.servers, topic)
    summary = run_job(spec)
    assert (summary.events, summary.late, summary.finished) == (50, 0, True)
    assert without_offsets(matches(spec)) == without_offsets(in_core(spec, topic, events))
    assert skipped(spec) == [14, 2, 0]


@pytest.mark.long
def test_what_is_not_committed_is_read_where_the_job_file_says_so(
    broker: Broker, topic: str, send: Send, tmp_path: Path
) -> None:
    """Going back waits for the end of the transaction: a batch would end before it begins."""
    records = dealt(random_events(22, 60), as_json)
    with transaction(broker, topic) as producer:
        put(producer, topic, records[:20])
        producer.abort_transaction()
        producer.begin_transaction()
        put(producer, topic, records[20:40])
        level = {"kafka.isolation.level": "read_uncommitted"}
        spec = kafka_job(tmp_path, broker.servers, topic, finish=False, options=level)
        assert run_job(spec).records == 40
        spec = kafka_job(tmp_path, broker.servers, topic)
        with pytest.raises(StateError) as raised:
            run_job(spec)
        producer.commit_transaction()
    assert str(raised.value) == (
        "source.topics — must be committed as far as they were read; "
        f"got {topic}/0, committed up to 11 and read up to 21. Start the job once the transaction has "
        "ended, or with the kafka.isolation.level of before."
    )
    send(topic, *records[40:])
    assert run_job(spec).records == 20


@pytest.mark.long
def test_a_line_that_is_no_record_of_ours_is_no_offset_without_a_record(
    broker: Broker, topic: str, send: Send, tmp_path: Path
) -> None:
    send(topic, *dealt(random_events(8, 20), as_line), (0, {"value": b"no event"}))
    rules = LINES.replace("text: {", "text: {unmatched: ignore, ")
    spec = kafka_job(tmp_path, broker.servers, topic, rules=rules, format="text", finish=False)
    assert run_job(spec).records == 20
    assert skipped(spec) == [0]


@pytest.fixture
def compacted(broker: Broker, topic: str) -> str:
    """A topic that the broker compacts as soon as it can."""
    name = f"{topic}-compacted"
    soon = {"segment_ms": "100", "max_compaction_lag_ms": "100", "min_cleanable_dirty_ratio": "0.01"}
    broker.create_topic(name, cleanup_policy="compact", **soon)
    cleaner = ConfigResource(ConfigResourceType.BROKER, "1", configs={"log.cleaner.backoff.ms": "100"})
    with KafkaAdminClient(bootstrap_servers=broker.servers) as admin:
        admin.alter_configs([cleaner])
    return name


def wait_until_compacted(broker: Broker, topic: str, offset: int) -> None:
    """Wait until there is no record at an offset."""
    part = TopicPartition(topic, 0)
    with KafkaConsumer(bootstrap_servers=broker.servers) as consumer:
        consumer.assign([part])
        found = offset
        while found == offset:
            consumer.seek(part, offset)
            read = consumer.poll(timeout_ms=5_000)
            found = read[part][0].offset if part in read else offset


def test_what_was_compacted_before_it_was_read_is_counted_and_told_once(
    broker: Broker, compacted: str, send: Send, tmp_path: Path
) -> None:
    records = [{**as_json(event), "key": b"k"} for event in random_events(23, 61)]
    send(compacted, *((0, record) for record in records[:20]))
    spec = kafka_job(tmp_path, broker.servers, compacted, finish=False, max_offsets_per_trigger=20)
    run_job(spec)
    later = {
        "timestamp_ms": int(time.time() + 3_600) * 1_000
    }  # it begins a new segment; old ones are compacted
    send(compacted, *((0, record) for record in records[20:60]))
    send(compacted, (0, records[60] | later))
    wait_until_compacted(broker, compacted, 20)
    told: list[list[str]] = []
    run_job(spec, on_progress=lambda batch: told.append(batch.warnings))
    assert skipped(spec) == [0, 20, 19, 0]
    assert told == [
        [
            "source.topics — should have a record at each offset; got none at 20 of 20 in batch 1. "
            f"Kafka may compact {compacted} (cleanup.policy), and remove records before they are read; "
            "offsets of transactions count too (skipped_offsets in metrics). A min.compaction.lag.ms that is "
            "longer than the job may stand still keeps records until then."
        ],
        [],
        [],
    ]
