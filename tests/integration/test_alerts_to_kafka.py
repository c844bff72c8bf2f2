"""Alerts to topics of a real broker, which wants a password or is killed."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from kafka import KafkaConsumer

from examples.kafka.broker import Broker
from spark_pace.io.query import Tables
from tests.integration.conftest import PASSWORD, USER
from tests.support.alerts import LATE_SCHEMA, TIME, job_tables, look, match_rows, numbers_of, running, sent_by
from tests.support.certificates import BROKER, Certificates

pytestmark = pytest.mark.integration

SASL = {
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "PLAIN",
    "sasl.username": USER,
    "sasl.password": "${env:BUS_PASSWORD}",
}


def records(broker: Broker, topic: str) -> list[tuple[str, int, dict[str, Any]]]:
    """The key, the partition and the value of all records of a topic, in the order of each partition."""
    settings = {"auto_offset_reset": "earliest", "enable_auto_commit": False, "consumer_timeout_ms": 3000}
    with KafkaConsumer(topic, bootstrap_servers=broker.servers, **settings) as consumer:
        return [(one.key.decode(), one.partition, json.loads(one.value)) for one in consumer]


def late_events(*texts: str) -> pa.Table:
    row = {"event_time": TIME, "source": "in", "reason": "late"}
    rows = [{**row, "offset": offset, "event": text} for offset, text in enumerate(texts)]
    return pa.Table.from_pylist(rows, LATE_SCHEMA)


def test_a_rule_stays_in_order_in_one_partition(
    tmp_path: Path,
    broker: Broker,
    topic: str,
    certificates: Certificates,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """By a connection that is encrypted and asks for a password; what no broker takes is refused."""
    monkeypatch.setenv("BUS_PASSWORD", PASSWORD)
    options = {"ssl.ca.location": str(certificates.pem(BROKER)), **SASL}
    place = {"servers": broker.secure_servers["SASL_SSL"], "topic": topic, "options": options}
    tables = job_tables(tmp_path / "out")
    with running(tmp_path, {"name": "bus", "kafka": place, "tables": ["matches", "late"]}) as alerts:
        for batch in range(4):
            numbers = range(300 * batch, 300 * batch + 300)
            tables.append("matches", match_rows(("a", numbers), ("b", numbers)), batch)
        tables.append("late", late_events("x" * 2_000_000, "{}"), 4)
        sent_by(alerts)
        (counts,) = alerts.counts
    assert (counts.sent, counts.refused, counts.waiting, counts.failures) == (2401, 1, 0, 0)
    found = records(broker, topic)
    for rule in ("a", "b"):
        of_rule = [(partition, alert) for key, partition, alert in found if key == rule]
        assert [alert["out_seq"] for _, alert in of_rule] == list(range(1200))
        assert len({partition for partition, _ in of_rule}) == 1
    assert [alert["offset"] for key, _, alert in found if key == "late"] == [1]
    (kept,) = (
        Tables(tmp_path / "out", ["alerts_refused"])
        .query("SELECT * FROM alerts_refused")
        .read_all()
        .to_pylist()
    )
    assert (kept["status"], kept["id"]) == ("MSG_SIZE_TOO_LARGE", "cards:01234567/late/in/0")
    (told,) = (one.getMessage() for one in caplog.records if one.name.startswith("spark_pace"))
    assert told.startswith(
        "alerts.bus — refuses alerts, which go to the table alerts_refused; the first with:"
    )


@pytest.mark.long
def test_a_broker_that_is_killed_gets_all_in_order_once_it_is_back(
    tmp_path: Path, own_broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    own_broker.create_topic("alerts", 2)
    tables = job_tables(tmp_path / "out")
    target = {"name": "bus", "kafka": {"servers": own_broker.servers, "topic": "alerts"}, "timeout": "2 s"}
    with running(tmp_path, target) as alerts:
        tables.append("matches", match_rows(("a", range(700))), 0)
        sent_by(alerts)
        own_broker.kill()
        tables.append("matches", match_rows(("a", range(700, 1400))), 1)
        look(alerts)
        while not alerts.counts[0].is_failing:
            threading.Event().wait(0.05)
        own_broker.start()
        sent_by(alerts)
        assert alerts.counts[0].waiting == 0
    values = [alert for _, _, alert in records(own_broker, "alerts")]
    assert numbers_of(values, "a") == list(range(1400))
    own = [one.getMessage() for one in caplog.records if one.name.startswith("spark_pace.")]
    assert [message.split(" — ")[0] for message in own] == ["alerts.bus", "alerts.bus"]
