"""Offsets at which no record is read: marks of transactions, what was aborted, what was compacted away."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaProducer

from examples.kafka.broker import Broker
from spark_pace.errors import StateError
from spark_pace.job import run_job
from tests.spark.jobs import matches, random_events
from tests.support.kafka_jobs import as_json, dealt, in_core, kafka_job

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("spark")]

Send = Callable[..., None]


def transaction(broker: Broker, name: str) -> KafkaProducer:
    """A producer with an open transaction."""
    producer = KafkaProducer(bootstrap_servers=broker.servers, transactional_id=name)
    producer.init_transactions()
    producer.begin_transaction()
    return producer


def put(producer: KafkaProducer, topic: str, records: list[tuple[int, dict[str, Any]]]) -> None:
    for partition, record in records:
        producer.send(topic, partition=partition, **record)
    producer.flush()


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
