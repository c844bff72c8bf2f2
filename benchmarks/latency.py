"""From the append to Kafka to the commit in Delta: the driver of `spark-pace bench`, at two rates.

The broker, the driver that makes and sends the events, and the job share this machine. The job starts a batch
every half second, has no delay, and finds each a with the next b of ten types. The latencies are those of all
matches of the steady phase, up to the commit that made the match visible: from when its last event was handed
to the broker's client, and from when that was due, which counts it if the driver was late. The matches must
be the core's, and all records must have been sent and read.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator

from benchmarks.jobs import OUT
from benchmarks.rows import Row, Sizes, require
from examples.kafka.broker import Broker
from spark_pace_bench.drive import drive
from spark_pace_bench.run_file import read_run_file
from spark_pace_bench.summary import summarize

RATES = 50_000, 100_000  # events a second
RAMP_SECONDS, MOST_SECONDS, LEAST_SECONDS = 15, 60, 5
TOPIC = "latency"
RULES = {
    "events": {"schema": "ts TIMESTAMP, id BIGINT, etype STRING, value DOUBLE", "event_time": "ts"},
    "rules": [
        {
            "name": "a_then_b",
            "pattern": {"sequence": [{"a": "etype = 'A'"}, {"b": "etype = 'B'"}]},
            "within": "1 s",
            "context": "each, zero",
        }
    ],
}
JOB = {
    "name": "latency",
    "rules": ["rules.yaml"],
    "events": {"on_bad_record": "fail"},
    "sink": {"kind": "delta", "path": "tables"},
    "checkpoint": "checkpoint",
    "trigger": "500 ms",
}
RUN = {
    "name": "latency",
    "job": "job.yaml",
    "seed": 1,
    "events": {
        "generate": {
            "id": {"uniform": [0, 999]},
            "etype": {"choice": list("ABCDEFGHIJ")},
            "value": {"uniform": [0, 1000]},
        }
    },
}
KINDS = {"end_to_end": "from append to commit", "scheduled": "from the due time to commit"}
TARGETS = {"p50": "<= 1.2", "p99": "<= 2.5"}


def measure(sizes: Sizes) -> Iterator[Row]:
    """The latencies in seconds at each rate."""
    for rate in RATES:
        yield from _measure(rate, max(LEAST_SECONDS, min(MOST_SECONDS, sizes.events // rate)))


def _measure(rate: int, steady: int) -> Iterator[Row]:
    """The latencies at a rate that stays the same for so many seconds."""
    folder = OUT / "latency"
    shutil.rmtree(folder, ignore_errors=True)
    broker = Broker(folder / "broker")
    broker.start()
    try:
        broker.create_topic(TOPIC, 1)
        source = {"kind": "kafka", "format": "json", "servers": broker.servers, "topics": [TOPIC]}
        phases = [
            {"name": "ramp", "seconds": RAMP_SECONDS, "rate": [1_000, rate], "role": "warm_up"},
            {"name": "steady", "seconds": steady, "rate": rate},
        ]
        files = {"rules": RULES, "job": {**JOB, "source": source}, "run": {**RUN, "phases": phases}}
        for name, content in files.items():
            (folder / f"{name}.yaml").write_text(json.dumps(content), encoding="utf-8")  # which is YAML
        (run,) = read_run_file(folder / "run.yaml")
        (folder / "driven").mkdir()
        found = summarize(drive(run, folder / "driven", lambda *_: None))
    finally:
        broker.stop()
    differs = found["differences"] or found["unread"]
    require(not differs, f"latency: {found['differences']} differences, {found['unread']} records not read")
    require(found["measured"]["matches"], "latency: no match was measured")
    require(not any(phase["unsent"] for phase in found["phases"]), "latency: records that were not sent")
    for kind, words in KINDS.items():
        for name, seconds in found["measured"][kind].items():
            target = TARGETS.get(name) if kind == "end_to_end" else None
            case = f"{rate:,} events/s, {words}; {name}"
            yield Row("latency", case, seconds, "s", None, target, "the core's matches")
