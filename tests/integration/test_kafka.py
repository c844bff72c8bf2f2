"""Topics of a real broker through the streaming job: every format, place, order and refusal."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from examples.kafka.broker import Broker
from spark_pace.core import local
from spark_pace.core.order.order import OrderSpec
from spark_pace.core.plan.plan import build_plan
from spark_pace.errors import SetupError, SparkPaceError, StateError
from spark_pace.io.files import table_events
from spark_pace.io.metrics import BatchReport
from spark_pace.job import run_job
from spark_pace.job_file import JobSpec, read_job
from spark_pace.spark.sources import kafka_check
from tests.integration.conftest import PASSWORD, USER
from tests.spark.jobs import RULES, Event, make_job, matches, only, random_events, stop_at, table

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("spark")]

SASL = {
    "kafka.security.protocol": "SASL_PLAINTEXT",
    "kafka.sasl.mechanism": "PLAIN",
    "kafka.sasl.jaas.config": f'org.apache.kafka.common.security.plain.PlainLoginModule required username="{USER}" password="${{env:KAFKA_PASSWORD}}";',
}


def kafka_job(
    folder: Path,
    servers: str,
    *topics: str,
    finish: bool = True,
    trigger: str = "available_now",
    order: Any = None,
    **source: Any,
) -> JobSpec:
    section = {"kind": "kafka", "format": "json", "servers": servers, "topics": list(topics), **source}
    job = {
        "name": "test",
        "source": section,
        "events": {"delay": "2 s", **(order or {})},
        "rules": ["rules.yaml"],
        "sink": {"kind": "delta", "path": "out"},
        "checkpoint": "checkpoint",
        "trigger": trigger,
        "finish": finish,
        "operators": ["tests.spark.jobs"],
        "parallelism": {"slots": 1, "buckets": 1},
    }
    (folder / "rules.yaml").write_text(RULES)
    (folder / "job.yaml").write_text(json.dumps(job))  # JSON is YAML
    return read_job(folder / "job.yaml")


def as_json(event: Event) -> dict[str, Any]:
    return {"value": json.dumps(event).encode()}


def as_csv(event: Event) -> dict[str, Any]:
    return {"value": f"{event['t']},{event['k']},{event['kind']},{event['x']}\r\n".encode()}


def as_columns(event: Event) -> dict[str, Any]:
    """The key in the record's key, the time in its time stamp, the rest in headers."""
    time = round(datetime.fromisoformat(event["t"] + "+00:00").timestamp() * 1000)
    headers = [("kind", b"an older one"), ("kind", event["kind"].encode()), ("x", str(event["x"]).encode())]
    return {"key": event["k"].encode(), "timestamp_ms": time, "headers": headers}


COLUMNS = {"t": "timestamp", "k": "key", "kind": "headers.kind", "x": "headers.x"}


def dealt(events: list[Event], record: Callable[[Event], dict[str, Any]]) -> list[tuple[int, dict[str, Any]]]:
    """The records of events, by turns on both partitions."""
    return [(number % 2, record(event)) for number, event in enumerate(events)]


def in_core(spec: JobSpec, topic: str, events: list[Event]) -> list[dict[str, Any]]:
    """What the core finds in events that were dealt to a topic."""
    parts = [(f"{topic}/{partition}", events[partition::2]) for partition in (0, 1)]
    tables = [table_events(columns_of(part), spec.events.schema, source).events for source, part in parts]
    events_read = pa.concat_tables(tables).unify_dictionaries()
    return local.run(build_plan(spec.rules, order=OrderSpec()), [events_read]).matches.to_pylist()  # type: ignore[no-any-return]


def columns_of(events: list[Event]) -> pa.Table:
    table = pa.Table.from_pylist(events)
    return table.set_column(0, "t", table["t"].cast(pa.timestamp("us")))


@pytest.mark.parametrize(
    ("record", "source"),
    [
        (as_json, {"max_offsets_per_trigger": 80}),
        (as_csv, {"format": "csv"}),
        (as_columns, {"format": "columns", "columns": COLUMNS}),
    ],
    ids=["json", "csv", "columns"],
)
def test_a_job_finds_what_the_core_finds(
    broker: Broker, topic: str, send: Any, tmp_path: Path, record: Any, source: Any
) -> None:
    events = random_events(7)
    send(topic, *dealt(events, record))
    spec = kafka_job(tmp_path, broker.servers, topic, **source)
    batches: list[BatchReport] = []
    summary = run_job(spec, on_progress=batches.append)
    assert (summary.events, summary.late, summary.finished) == (200, 0, True)
    assert [batch.records for batch in batches] == ([80, 80, 40, 0] if record is as_json else [200, 0])
    assert matches(spec) == in_core(spec, topic, events)


def test_bad_records_keep_their_place_and_bytes(
    broker: Broker, topic: str, send: Any, tmp_path: Path
) -> None:
    second = topic + "-too"
    broker.create_topic(second)
    good = as_json(random_events(1)[0])
    send(topic, (0, good), (0, {"value": b'{"t": 1}'}), (1, {"value": None, "key": b"a tombstone"}))
    send(second, (0, {"value": b""}), (0, {"value": b"\xff"}), (0, good))
    spec = kafka_job(tmp_path, broker.servers, topic, second)
    summary = run_job(spec)
    assert (summary.records, summary.events, summary.bad_records) == (6, 2, 4)
    rows = table(spec, "quarantine").sort_by([("source", "ascending"), ("offset", "ascending")]).to_pylist()
    assert [(row["source"], row["offset"], row["raw"]) for row in rows] == [
        (f"{second}/0", 0, b""),
        (f"{second}/0", 1, b"\xff"),
        (f"{topic}/0", 1, b'{"t": 1}'),
        (f"{topic}/1", 0, b""),
    ]
    assert rows[0]["reason"] == rows[3]["reason"] == "the value — must be one event; got nothing"
    assert rows[1]["reason"] == "the record — must be a JSON object"
    assert rows[2]["reason"].startswith("t — must be TIMESTAMP; got: ")


def test_a_job_goes_on_where_it_stopped_and_takes_what_comes_after_the_end_for_late(
    broker: Broker, topic: str, send: Any, tmp_path: Path
) -> None:
    events = random_events(8)
    records = dealt(events, as_json)
    send(topic, *records[:90])
    assert run_job(kafka_job(tmp_path, broker.servers, topic, finish=False)).events == 90
    send(topic, *records[90:])
    spec = kafka_job(tmp_path, broker.servers, topic)
    summary = run_job(spec)
    assert (summary.events, summary.late) == (110, 0)
    assert matches(spec) == in_core(spec, topic, events)
    send(topic, (0, as_json(events[-1])))
    again = run_job(spec)
    assert (again.records, again.events, again.late, again.batches) == (1, 0, 1, 1)
    late = table(spec, "late").to_pylist()
    assert [(row["source"], row["offset"], row["reason"]) for row in late] == [
        (f"{topic}/0", 100, "the input had ended")
    ]


def test_a_job_may_begin_with_what_comes_after_its_first_start(
    broker: Broker, topic: str, send: Any, tmp_path: Path
) -> None:
    spec = kafka_job(tmp_path, broker.servers, topic, finish=False, starting_offsets="latest")
    send(topic, (0, {"value": b"before"}))
    assert run_job(spec).records == 0
    send(topic, (0, {"value": b"after"}))
    assert run_job(spec).bad_records == 1
    assert table(spec, "quarantine")["raw"].to_pylist() == [b"after"]


def test_new_partitions_are_read_while_the_job_runs(
    broker: Broker, topic: str, send: Any, tmp_path: Path
) -> None:
    send(topic, (1, {"value": b"old"}))
    options = {"kafka.metadata.max.age.ms": "200"}
    spec = kafka_job(tmp_path, broker.servers, topic, finish=False, trigger="200 ms", options=options)
    found: list[int] = []

    def grow(batch: BatchReport) -> None:
        if not found:
            broker.add_partitions(topic, 1)
            send(topic, (2, {"value": b"new"}))
        found.append(batch.bad_records)
        if sum(found) == 2:
            os.kill(os.getpid(), signal.SIGINT)

    assert run_job(spec, on_progress=grow).stopped_by == signal.SIGINT
    rows = table(spec, "quarantine").to_pylist()
    assert {(row["source"], row["offset"]) for row in rows} == {(f"{topic}/1", 0), (f"{topic}/2", 0)}


def test_a_topic_that_lost_records_stops_the_job_in_one_line(
    broker: Broker, topic: str, send: Any, tmp_path: Path
) -> None:
    spec = kafka_job(tmp_path, broker.servers, topic, finish=False)
    send(topic, (1, {"value": b"one"}), (1, {"value": b"two"}))
    run_job(spec)
    broker.delete_topic(topic)
    broker.create_topic(topic, 2)
    with pytest.raises(StateError) as raised:
        run_job(spec)
    assert str(raised.value) == (
        f"source.topics — must hold all records that the checkpoint has not read; got: Partition {topic}-1 offset was changed from 2 to 0. "
        "Restore the topic, or start a new checkpoint with a sink of its own."
    )


def test_by_sources_a_partition_that_is_still_empty_is_waited_for(
    broker: Broker, topic: str, send: Any, tmp_path: Path
) -> None:
    events = random_events(9)
    send(topic, *((0, as_json(event)) for event in events[0::2]))
    order = {"ordering": "sources", "delay": "2 s"}
    first = run_job(kafka_job(tmp_path, broker.servers, topic, finish=False, order=order))
    assert (first.events, sum(first.matches.values())) == (100, 0)
    send(
        topic, *((1, as_json(event)) for event in events[1::2])
    )  # a watermark over both would call nearly all of them late
    spec = kafka_job(tmp_path, broker.servers, topic, order=order)
    second = run_job(spec)
    assert (second.events, second.late) == (100, 0)
    assert matches(spec) == in_core(spec, topic, events)


@pytest.mark.parametrize("fails_in", ["the_first_batch", "the_end"])
def test_rules_change_after_a_batch_that_was_not_finished(
    broker: Broker, topic: str, send: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails_in: str
) -> None:
    events = random_events(12)
    records = dealt(events, as_json)
    first, rest = (records[:90], records[90:]) if fails_in == "the_first_batch" else (records, [])
    repeats = first[-3:]
    send(topic, *first, *repeats)
    order = {"ordering": "sources", "delay": "2 s", "deduplicate_on": ["t", "kind"]}
    spec = kafka_job(tmp_path, broker.servers, topic, order=order)
    stop_at(monkeypatch, "matches", batch_id=0 if rest else 1)
    with pytest.raises(Exception, match="the disk is full"):
        run_job(only(spec, "pairs", "keyed", finish=not rest))
    monkeypatch.undo()
    send(topic, *rest)
    run_job(only(spec, "keyed", "sums"))
    shown = [
        (row["rule"], row["out_seq"], row["first"], row["second"], row["total"]) for row in matches(spec)
    ]
    whole = [
        (row["rule"], row["out_seq"], row["first"], row["second"], row["total"])
        for row in in_core(spec, topic, events)
    ]
    assert [row for row in shown if row[0] == "keyed"] == [row for row in whole if row[0] == "keyed"]
    assert sum(row[-1] for row in shown if row[0] == "sums") == 2 * sum(
        event["x"] for event in events[90:]
    ) * bool(rest)
    metrics = table(spec, "metrics")
    counted = [sum(metrics[name].to_pylist()) for name in ("records", "events", "repeats", "late")]
    assert counted == [203, 200, 3, 0]


def test_the_right_password_opens_a_protected_broker_and_stands_in_no_file(
    broker: Broker,
    topic: str,
    send: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("KAFKA_PASSWORD", PASSWORD)
    send(topic, (0, as_json(random_events(1)[0])))
    assert (
        run_job(kafka_job(tmp_path, broker.secure_servers["SASL_PLAINTEXT"], topic, options=SASL)).events == 1
    )
    output, errors = capfd.readouterr()
    assert PASSWORD not in output + errors
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) > 20
    assert [path for path in files if PASSWORD.encode() in path.read_bytes()] == []


def test_a_wrong_password_is_refused_in_one_line_without_it(
    broker: Broker, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAFKA_PASSWORD", "wrong-horse")
    secure = broker.secure_servers["SASL_PLAINTEXT"]
    with pytest.raises(SetupError) as raised:
        run_job(kafka_job(tmp_path, secure, topic, options=SASL))
    assert str(raised.value).startswith(f"source.options — must be what {secure} accepts; got: ")
    assert "wrong-horse" not in str(raised.value)
    assert "\n" not in str(raised.value)
    assert raised.value.__suppress_context__  # a traceback would show what Spark said


def test_a_missing_variable_is_named_with_its_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KAFKA_PASSWORD", raising=False)
    with pytest.raises(
        SetupError,
        match=r"^source\.options\.kafka\.sasl\.jaas\.config — must name a variable .* \$\{env:KAFKA_PASSWORD\}, which is not set",
    ):
        run_job(kafka_job(tmp_path, "127.0.0.1:1", "any", options=SASL))


def test_a_missing_topic_is_named(broker: Broker, topic: str, tmp_path: Path) -> None:
    with pytest.raises(SetupError) as raised:
        run_job(kafka_job(tmp_path, broker.servers, topic, "nowhere"))
    assert str(raised.value).startswith(
        f"source.topics — must be topics of {broker.servers}; got {topic}, nowhere: "
    )


def test_a_broker_that_does_not_answer_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka_check, "TIMEOUT_SECONDS", 1)
    with pytest.raises(SetupError) as raised:
        run_job(kafka_job(tmp_path, "127.0.0.1:1", "any"))
    assert str(raised.value).startswith(
        "source.servers — must answer within 1 s; got nothing from 127.0.0.1:1. Start the broker, or "
    )


def test_an_unknown_option_of_the_client_is_named(broker: Broker, topic: str, tmp_path: Path) -> None:
    with pytest.raises(SetupError) as raised:
        run_job(kafka_job(tmp_path, broker.servers, topic, options={"kafka.security.protocol": "NONE"}))
    assert str(raised.value).startswith(
        "source.options — must be options of Kafka's client; got: Invalid value NONE for configuration security.protocol"
    )


def test_an_option_that_sparks_source_refuses_is_one_line(broker: Broker, topic: str, tmp_path: Path) -> None:
    with pytest.raises(SparkPaceError) as raised:
        run_job(kafka_job(tmp_path, broker.servers, topic, options={"minPartitions": "0"}))
    assert str(raised.value).startswith("the query — must run; got ")
    assert "minPartitions" in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_checkpoint_keeps_its_kind_of_source_and_its_topics(
    broker: Broker, topic: str, tmp_path: Path
) -> None:
    run_job(kafka_job(tmp_path, broker.servers, topic, finish=False))
    with pytest.raises(
        StateError,
        match=r"checkpoint — must belong to a job that reads files; got the checkpoint of one that reads kafka\.",
    ):
        run_job(read_job(make_job(tmp_path)))
    with pytest.raises(
        StateError,
        match=rf"checkpoint — must go on with its topics; got a job without {topic}\. Name them again",
    ):
        run_job(kafka_job(tmp_path, broker.servers, "another"))
