"""Jobs that read the small events of `tests.spark.jobs` from topics, and what the core finds in them."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from spark_pace.core import local_run
from spark_pace.core.order import OrderSpec
from spark_pace.core.plan.plan import build_plan
from spark_pace.io.event_files import table_events
from spark_pace.job_file import JobSpec, read_job
from tests.integration.conftest import USER
from tests.spark.jobs import RULES, Event, line_of

SASL = {
    "kafka.security.protocol": "SASL_PLAINTEXT",
    "kafka.sasl.mechanism": "PLAIN",
    "kafka.sasl.jaas.config": (
        "org.apache.kafka.common.security.plain.PlainLoginModule required "
        f'username="{USER}" password="${{env:KAFKA_PASSWORD}}";'
    ),
}


def kafka_job(
    folder: Path,
    servers: str,
    *topics: str,
    finish: bool = True,
    trigger: str = "available_now",
    order: Any = None,
    rules: str = RULES,
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
    (folder / "rules.yaml").write_text(rules)
    (folder / "job.yaml").write_text(json.dumps(job))  # JSON is YAML
    return read_job(folder / "job.yaml")


def as_json(event: Event) -> dict[str, Any]:
    return {"value": json.dumps(event).encode()}


def as_csv(event: Event) -> dict[str, Any]:
    return {"value": f"{event['t']},{event['k']},{event['kind']},{event['x']}\r\n".encode()}


def as_line(event: Event) -> dict[str, Any]:
    return {"value": line_of(event).encode()}


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
    return in_core_by_source(spec, {f"{topic}/{partition}": events[partition::2] for partition in (0, 1)})


def in_core_by_source(spec: JobSpec, parts: dict[str, list[Event]], late: int = 0) -> list[dict[str, Any]]:
    """What the core finds in the events of each source, without the first ones of the last source."""
    tables = [
        table_events(columns_of(part), spec.events.schema, source).events for source, part in parts.items()
    ]
    tables[-1] = tables[-1].slice(late)
    events_read = pa.concat_tables(tables).unify_dictionaries()
    return local_run.run(build_plan(spec.rules, order=OrderSpec()), [events_read]).matches.to_pylist()  # type: ignore[no-any-return]


def columns_of(events: list[Event]) -> pa.Table:
    table = pa.Table.from_pylist(events)
    return table.set_column(0, "t", table["t"].cast(pa.timestamp("us")))
