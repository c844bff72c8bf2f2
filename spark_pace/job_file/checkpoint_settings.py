"""The settings of a job that its checkpoint keeps.

`event_settings` are fixed for the life of a checkpoint: the state of every rule rests on them. To which
source a checkpoint belongs is said in `spark_pace.spark.sources.kinds`.

`planned_settings` are those that a batch is planned with: all that its result rests on besides rules and
checkpoint. They may change between two batches. A batch that was planned and not finished runs again with the
settings of its plan, for its state and some of its tables may be written already.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

from spark_pace.core.expr.stored_form import from_stored, to_stored
from spark_pace.core.plan.lower_rules import over_input
from spark_pace.core.plan.record_form import ORDINARY, RecordForm
from spark_pace.core.plan.rule import EventSchema, Field, SideTable
from spark_pace.job_file.spec import JobSpec


def event_settings(spec: JobSpec) -> dict[str, str]:
    """The job's settings for events that a checkpoint fixes: their names and their values as text."""
    schema, order = spec.events.schema, spec.events.order
    types = {field.name: field.type for field in schema.fields}
    return {
        "event_time": f"{schema.event_time} in {schema.time_unit}" if schema.time_unit else schema.event_time,
        "ordering": "sources" if order.by_source else "watermark",
        "source_column": spec.events.source_column or "none",
        "deduplicate_on": ", ".join(f"{name} {types[name]}" for name in order.deduplicate_on) or "none",
    }


def planned_settings(spec: JobSpec) -> dict[str, Any]:
    """The settings that a batch of the job is planned with, as JSON has them."""
    events = spec.events
    return {
        "schema": [[field.name, field.type] for field in events.schema.fields],
        "tie_break": list(events.schema.tie_break),
        "delay_us": events.order.delay_us,
        "idle_after_us": events.order.idle_after_us,
        "expected_sources": list(events.order.expected_sources),
        "heartbeat": None if events.heartbeat is None else to_stored(events.heartbeat),
        **spec.source.planned(),
        **_sides_of(events.schema),
        **_form_of(events.schema),
    }


def _sides_of(schema: EventSchema) -> dict[str, Any]:
    """The side tables; nothing where there are none, as releases before them have it."""
    return {"side_tables": list(map(asdict, schema.side_tables))} if schema.side_tables else {}


def _form_of(schema: EventSchema) -> dict[str, Any]:
    """How text says what an event is; nothing where the format alone says it, likewise."""
    form = schema.form
    return {} if form == ORDINARY else {"form": asdict(form) | {"time_formats": list(form.time_formats)}}


def _form(stored: dict[str, Any]) -> RecordForm:
    return RecordForm(**{**stored, "time_formats": tuple(stored["time_formats"])}) if stored else ORDINARY


def _side(stored: dict[str, Any]) -> SideTable:
    columns = tuple(Field(**column) for column in stored["columns"])
    on = tuple((attribute, column) for attribute, column in stored["on"])
    return SideTable(**{**stored, "columns": columns, "on": on})


def as_planned(spec: JobSpec, settings: dict[str, Any]) -> JobSpec:
    """The job with these settings in place of its own.

    Raises:
        KeyError, TypeError: `settings` are not of `planned_settings`.
    """
    fields = tuple(Field(name, kind) for name, kind in settings["schema"])
    sides = tuple(map(_side, settings.get("side_tables", ())))
    ties = tuple(settings["tie_break"])
    form = _form(settings.get("form", {}))
    schema: EventSchema = replace(
        spec.events.schema, fields=fields, tie_break=ties, side_tables=sides, form=form
    )
    order = replace(
        spec.events.order,
        delay_us=settings["delay_us"],
        idle_after_us=settings["idle_after_us"],
        expected_sources=tuple(settings["expected_sources"]),
    )
    heartbeat = None if settings["heartbeat"] is None else from_stored(settings["heartbeat"])
    events = replace(spec.events, schema=schema, order=order, heartbeat=heartbeat)
    rules = over_input(spec.rules, schema)
    return replace(spec, events=events, source=spec.source.as_planned(settings), rules=rules)
