"""The stream in a topic, and the job that reads it."""

from __future__ import annotations

import threading
from pathlib import Path

from kafka import KafkaProducer

from examples.kafka.broker import Broker
from tests.long.chaos.job import write_job
from tests.long.chaos.stream import Stream


def produce(broker: Broker, topic: str, stream: Stream) -> dict[int, str]:
    """Write the stream into a new topic, part i into partition i; returns the source of each part."""
    parts = stream.table["part"].to_pylist()
    broker.create_topic(topic, max(parts) + 1)
    with KafkaProducer(
        bootstrap_servers=broker.servers, acks="all", linger_ms=20, batch_size=1 << 17
    ) as producer:
        for part, line in zip(parts, stream.lines, strict=True):
            producer.send(topic, line, partition=part)
        producer.flush()
    return {part: f"{topic}/{part}" for part in set(parts)}


def write_topic_job(
    folder: Path, broker: Broker, topic: str, batch: int, ordering: str = "watermark"
) -> Path:
    """A job that reads so many records of the topic in a batch."""
    topics = f'servers: "{broker.servers}", topics: [{topic}]'
    source = f"{{kind: kafka, {topics}, format: json, max_offsets_per_trigger: {batch}}}"
    return write_job(folder, source, ordering)


def kill_for(broker: Broker, seconds: int) -> None:
    """Kill a broker, and start it again on its data after so many seconds."""
    broker.kill()
    threading.Event().wait(seconds)
    broker.start()
