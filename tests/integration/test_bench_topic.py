"""The topic that `spark-pace bench` sends to, at a real broker."""

from __future__ import annotations

import json
import time
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from kafka import KafkaProducer

from examples.kafka.broker import Broker
from spark_pace.core.plan.rule import EventSchema
from spark_pace.core.tables import OFFSET, SOURCE, TIME, array, numbers
from spark_pace.errors import SetupError
from spark_pace.job_file import KafkaSource
from spark_pace.rules import load_rules
from spark_pace_bench import targets
from spark_pace_bench.records import Records
from spark_pace_bench.targets import Topic

pytestmark = pytest.mark.integration

RULES = """
events: {schema: "t TIMESTAMP, n BIGINT", event_time: t}
rules:
  - {name: pair, pattern: {sequence: [a: n = 1, b: n = 2]}, within: 1 s}
"""
RECORDS = 120_000
DUE_US = 1_700_000_000_000_000 + 1_000 * np.arange(RECORDS)


@pytest.fixture
def schema() -> EventSchema:
    return load_rules(RULES)[0].schema


def target(topic: str, servers: str, schema: EventSchema) -> Topic:
    after = [f',"n":{number}}}' for number in range(RECORDS)]
    records = Records(schema, "json", ['{"t":'] * RECORDS, after, own_times=False)
    return Topic(KafkaSource("json", servers, (topic,), "earliest", None, (), {}), servers, records)


def test_every_record_is_where_it_is_said_to_be(
    broker: Broker, topic: str, schema: EventSchema, tmp_path: Path
) -> None:
    """The topic holds a record already."""
    with closing(KafkaProducer(bootstrap_servers=broker.servers)) as other:
        other.send(topic, b"{}", partition=1)
    with closing(target(topic, broker.servers, schema)) as sent_to:
        before = time.time()
        at = np.concatenate([sent_to.send(0, DUE_US[:7]), sent_to.send(7, DUE_US[7:])])
        sent_to.settle()
        assert before <= at[0] and at[-1] <= time.time() and (np.diff(at) >= 0).all()
        events = sent_to.events(tmp_path / "events")
    number = numbers(events, "n")
    assert sorted(number.tolist()) == list(range(RECORDS))
    assert (numbers(events, TIME) == DUE_US[number]).all()
    sources = array(events, SOURCE).to_pylist()
    assert (sent_to.numbers(sources, numbers(events, OFFSET)) == number).all()
    read = sent_to.read_by({topic: {"0": 3, "1": 1 + 2}})
    assert sorted(read.tolist()) == [0, 1, 2, 3, 4]


def test_another_writer_is_noticed(broker: Broker, topic: str, schema: EventSchema) -> None:
    with closing(target(topic, broker.servers, schema)) as sent_to:
        sent_to.send(0, DUE_US[:4])
        with closing(KafkaProducer(bootstrap_servers=broker.servers)) as other:
            other.send(topic, json.dumps({"n": 0}).encode(), partition=0)
        with pytest.raises(SetupError, match="must have no other writer during the run; got offsets up to"):
            sent_to.settle()


def test_a_topic_that_is_not_there_is_told(broker: Broker, schema: EventSchema) -> None:
    with pytest.raises(SetupError, match="topic not_there — must be there; got none of that name"):
        target("not_there", broker.servers, schema)


@pytest.mark.long
def test_records_that_no_broker_takes_are_told(
    tmp_path: Path, schema: EventSchema, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(targets, "TIMEOUT_SECONDS", 3)
    broker = Broker(tmp_path / "broker")
    broker.start()
    try:
        broker.create_topic("ends")
        with closing(target("ends", broker.servers, schema)) as sent_to:
            broker.kill()
            sent_to.send(0, DUE_US[:4])
            with pytest.raises(
                SetupError, match=r"topic ends — must take all records; got: .*See the broker"
            ):
                sent_to.settle()
    finally:
        broker.kill()
