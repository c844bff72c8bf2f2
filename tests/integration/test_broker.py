"""The broker of `make kafka`, one at a time on the port that it says, and the demo's producer."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from kafka import KafkaConsumer, TopicPartition

import examples.kafka.broker as program
from examples.flights.producer import PARTITIONS, Timetable, send
from examples.kafka.broker import Broker

pytestmark = pytest.mark.integration


def test_a_broker_on_another_port_than_the_one_that_runs_is_refused(
    broker: Broker, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(program, "FOLDER", broker.folder)
    port = broker.servers.rpartition(":")[2]
    for asked, code in (("1", 1), (port, 0)):
        monkeypatch.setattr(sys, "argv", ["broker", "start", "--port", asked])
        assert program.main() == code
    said = capsys.readouterr()
    assert said.out.startswith(f"Kafka answers at {broker.servers} (process {broker.pid}, log ")
    assert said.err == (
        f"port 1 — must be that of the broker that runs; got one at {broker.servers} (process {broker.pid}). "
        "Use that one, or stop it first: make kafka-stop\n"
    )


def flights(count: int) -> Timetable:
    """The first of a year that goes round the partitions."""
    row = np.arange(count)
    return Timetable([b"%d" % number for number in row], row, row % PARTITIONS, row // PARTITIONS)


def test_a_producer_that_was_stopped_goes_on_where_the_topic_ends(broker: Broker) -> None:
    broker.create_topic("flights", PARTITIONS)
    for count in (10, 25, 25):
        send(flights(count), broker.servers, "flights", speed=1.0)
    with KafkaConsumer(
        bootstrap_servers=broker.servers, auto_offset_reset="earliest", consumer_timeout_ms=5_000
    ) as consumer:
        consumer.assign([TopicPartition("flights", number) for number in range(PARTITIONS)])
        held = sorted((record.partition, record.offset, record.value) for record in consumer)
    assert held == sorted((number % PARTITIONS, number // PARTITIONS, b"%d" % number) for number in range(25))
