"""Topics of a real broker through the streaming job: three formats, places, both orderings and refusals."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from examples.kafka.broker import Broker
from spark_pace.errors import SetupError, SparkPaceError, StateError
from spark_pace.io.metrics import BatchReport
from spark_pace.job import run_job
from spark_pace.job_file import read_job
from spark_pace.job_file.pace import Admission
from spark_pace.spark import start as inputs
from spark_pace.spark.sources import kafka
from tests.integration.conftest import PASSWORD
from tests.spark.jobs import make_job, matches, only, random_events, stop_at, table
from tests.support.kafka_jobs import (
    COLUMNS,
    SASL,
    as_columns,
    as_csv,
    as_json,
    dealt,
    in_core,
    kafka_job,
)

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("spark")]


@pytest.mark.parametrize(
    ("record", "source"),
    [
        pytest.param(as_json, {"max_offsets_per_trigger": 80}, id="json", marks=pytest.mark.long),
        pytest.param(as_csv, {"format": "csv"}, id="csv", marks=pytest.mark.long),
        pytest.param(as_columns, {"format": "columns", "columns": COLUMNS}, id="columns"),
    ],
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


@pytest.mark.long
def test_the_first_batches_of_a_full_topic_are_small_and_double_up_to_the_limit(
    broker: Broker, topic: str, send: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(inputs._FIRST_CAPS, "kafka", 20)
    events = random_events(8)
    send(topic, *dealt(events, as_json))
    options = {"minOffsetsPerTrigger": 15}  # stands beside the limit that is changed
    spec = kafka_job(tmp_path, broker.servers, topic, max_offsets_per_trigger=70, options=options)
    # a busy machine does not end the warm-up
    run_job(replace(spec, admission=Admission(batch_seconds=3600.0)))
    batches = table(spec, "metrics").sort_by("batch_id")
    assert batches["records"].to_pylist() == [20, 40, 70, 70, 0]
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
    assert (
        rows[1]["reason"]
        == "the record — must be a JSON object that begins with { and ends with } in its line"
    )
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


def test_a_topic_that_lost_records_stops_the_job_in_one_line(
    broker: Broker, topic: str, send: Any, tmp_path: Path
) -> None:
    spec = kafka_job(tmp_path, broker.servers, topic, finish=False)
    send(topic, (1, {"value": b"one"}), (1, {"value": b"two"}))
    run_job(spec)
    send(topic, (1, {"value": b"three"}), (1, {"value": b"four"}))
    broker.delete_records(topic, 1, before=3)
    with pytest.raises(StateError) as raised:
        run_job(spec)
    assert str(raised.value) == (
        "source.topics — must hold all records that the checkpoint has not read; "
        f"got: Could not read records in offset [2, 4) for topic partition {topic}-1. "
        "Restore the topic, or start a new checkpoint with a sink of its own."
    )


@pytest.mark.long
def test_by_sources_a_partition_that_is_still_empty_is_waited_for(
    broker: Broker, topic: str, send: Any, tmp_path: Path
) -> None:
    events = random_events(9)
    send(topic, *((0, as_json(event)) for event in events[0::2]))
    order = {"ordering": "sources", "delay": "2 s"}
    first = run_job(kafka_job(tmp_path, broker.servers, topic, finish=False, order=order))
    assert (first.events, sum(first.matches.values())) == (100, 0)
    # a watermark over both would call nearly all of these late
    send(topic, *((1, as_json(event)) for event in events[1::2]))
    spec = kafka_job(tmp_path, broker.servers, topic, order=order)
    second = run_job(spec)
    assert (second.events, second.late) == (100, 0)
    assert matches(spec) == in_core(spec, topic, events)


@pytest.mark.long
def test_rules_change_after_an_end_that_was_not_finished(
    broker: Broker, topic: str, send: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = random_events(12)
    records = dealt(events, as_json)
    send(topic, *records, *records[-1:] * 3)  # a repeat of an earlier one would come late
    order = {"ordering": "sources", "delay": "2 s", "deduplicate_on": ["t", "kind"]}
    spec = kafka_job(tmp_path, broker.servers, topic, order=order)
    stop_at(monkeypatch, "matches", batch_id=1)
    with pytest.raises(Exception, match="the disk is full"):
        run_job(only(spec, "pairs", "keyed"))
    monkeypatch.undo()
    run_job(only(spec, "keyed", "sums"))
    names = ("rule", "out_seq", "first", "second", "total")
    shown = [tuple(row[name] for name in names) for row in matches(spec)]
    whole = [tuple(row[name] for name in names) for row in in_core(spec, topic, events)]
    assert [row for row in shown if row[0] == "keyed"] == [row for row in whole if row[0] == "keyed"]
    assert not any(row[-1] for row in shown if row[0] == "sums")
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
    spec = kafka_job(tmp_path, broker.secure_servers["SASL_PLAINTEXT"], topic, options=SASL)
    assert run_job(spec).events == 1
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
    assert str(raised.value).startswith(
        f"source.options — must be what {secure} and Kafka's client accept; got: "
    )
    assert "wrong-horse" not in str(raised.value)
    assert "\n" not in str(raised.value)
    assert raised.value.__suppress_context__  # a traceback would show what Spark said


def test_a_missing_variable_is_named_with_its_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KAFKA_PASSWORD", raising=False)
    key = r"source\.options\.kafka\.sasl\.jaas\.config"
    got = r"\$\{env:KAFKA_PASSWORD\}, which is not set"
    with pytest.raises(SetupError, match=f"^{key} — must name a variable .* {got}"):
        run_job(kafka_job(tmp_path, "127.0.0.1:1", "any", options=SASL))


def test_a_missing_topic_is_named(broker: Broker, topic: str, tmp_path: Path) -> None:
    with pytest.raises(SetupError) as raised:
        run_job(kafka_job(tmp_path, broker.servers, topic, "nowhere"))
    message = f"source.topics — must be topics of {broker.servers}; got {topic}, nowhere: "
    assert str(raised.value).startswith(message)


def test_a_broker_that_does_not_answer_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka, "TIMEOUT_SECONDS", 1)
    with pytest.raises(SetupError) as raised:
        run_job(kafka_job(tmp_path, "127.0.0.1:1", "any"))
    assert str(raised.value).startswith(
        "source.servers — must answer within 1 s; got nothing from 127.0.0.1:1. Start the broker, or "
    )


def test_an_unknown_option_of_the_client_is_named(broker: Broker, topic: str, tmp_path: Path) -> None:
    with pytest.raises(SetupError) as raised:
        run_job(kafka_job(tmp_path, broker.servers, topic, options={"kafka.security.protocol": "NONE"}))
    assert str(raised.value).startswith(
        f"source.options — must be what {broker.servers} and Kafka's client accept; "
        "got: Invalid value NONE for configuration security.protocol"
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
    got = r"got the checkpoint of one that reads kafka\."
    with pytest.raises(StateError, match=f"checkpoint — must belong to a job that reads files; {got}"):
        run_job(read_job(make_job(tmp_path)))
    got = rf"got a job without {topic}\. Name them again"
    with pytest.raises(StateError, match=f"checkpoint — must go on with its topics; {got}"):
        run_job(kafka_job(tmp_path, broker.servers, "another"))
