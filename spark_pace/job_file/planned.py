"""The settings that a batch is planned with: what its result rests on besides the rules and what a checkpoint fixes.

They may change between two batches. A batch that was planned and not finished is done again with those of its plan, for
its state and some of its tables may be written already.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from spark_pace.core.expr.stored import from_stored, to_stored
from spark_pace.core.plan.rule import EventSchema, Field
from spark_pace.job_file.spec import JobSpec, KafkaSource


def planned_settings(spec: JobSpec) -> dict[str, Any]:
    """Those of a job, as JSON has them."""
    events, source = spec.events, spec.source
    return {
        "schema": [[field.name, field.type] for field in events.schema.fields],
        "tie_break": list(events.schema.tie_break),
        "delay_us": events.order.delay_us,
        "idle_after_us": events.order.idle_after_us,
        "expected_sources": list(events.order.expected_sources),
        "heartbeat": None if events.heartbeat is None else to_stored(events.heartbeat),
        "format": source.format,
        "columns": [list(column) for column in source.columns] if isinstance(source, KafkaSource) else [],
    }


def as_planned(spec: JobSpec, settings: dict[str, Any]) -> JobSpec:
    """The job with these settings in place of its own.

    Raises:
        KeyError, TypeError: they are no such settings.
    """
    fields = tuple(Field(name, kind) for name, kind in settings["schema"])
    schema: EventSchema = replace(spec.events.schema, fields=fields, tie_break=tuple(settings["tie_break"]))
    order = replace(
        spec.events.order,
        delay_us=settings["delay_us"],
        idle_after_us=settings["idle_after_us"],
        expected_sources=tuple(settings["expected_sources"]),
    )
    heartbeat = None if settings["heartbeat"] is None else from_stored(settings["heartbeat"])
    source = replace(spec.source, format=settings["format"])
    if isinstance(source, KafkaSource):
        source = replace(
            source, columns=tuple((attribute, column) for attribute, column in settings["columns"])
        )
    events = replace(spec.events, schema=schema, order=order, heartbeat=heartbeat)
    return replace(
        spec, events=events, source=source, rules=tuple(replace(rule, schema=schema) for rule in spec.rules)
    )
