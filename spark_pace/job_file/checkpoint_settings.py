"""The settings of a job that its checkpoint keeps.

`event_settings` never change while a checkpoint lives, because the state of every rule depends on them. The
source that a checkpoint belongs to is checked in `spark_pace.spark.sources.kinds`.

`planned_settings` are the settings with which a batch is planned: all that its result depends on, besides
rules and checkpoint. They may change between two batches. A batch that was planned and not finished runs
again with the settings of its plan, because its state and some of its tables may be written already.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

from spark_pace.core.expr.canonical_text import from_stored, to_stored
from spark_pace.core.plan.lower_rules import over_input
from spark_pace.core.plan.rule import ORDINARY, EventSchema, Field, RecordForm, SideTable
from spark_pace.job_file.source import ISOLATION, FilesSource, KafkaSource, Source
from spark_pace.job_file.spec import JobSpec


def event_settings(spec: JobSpec) -> dict[str, str]:
    """The settings of events that a checkpoint fixes, by name, each as text."""
    schema, order = spec.events.schema, spec.events.order
    types = {field.name: field.type for field in schema.fields}
    return {
        "event_time": f"{schema.event_time} in {schema.time_unit}" if schema.time_unit else schema.event_time,
        "ordering": "sources" if order.by_source else "watermark",
        "source_column": spec.events.source_column or "none",
        "deduplicate_on": ", ".join(f"{name} {types[name]}" for name in order.deduplicate_on) or "none",
    }


def planned_settings(spec: JobSpec) -> dict[str, Any]:
    """The settings that a batch of the job is planned with, as values that JSON has."""
    events = spec.events
    return {
        "schema": [[field.name, field.type] for field in events.schema.fields],
        "tie_break": list(events.schema.tie_break),
        "delay_us": events.order.delay_us,
        "idle_after_us": events.order.idle_after_us,
        "expected_sources": list(events.order.expected_sources),
        "heartbeat": None if events.heartbeat is None else to_stored(events.heartbeat),
        **_of_source(spec.source),
        **_sides_of(events.schema),
        **_form_of(events.schema),
    }


def _of_source(source: Source) -> dict[str, Any]:
    """The settings of a source that the result of a batch rests on."""
    if not isinstance(source, KafkaSource):
        return {"format": source.format, "columns": []}
    columns = [list(column) for column in source.columns]
    return {"format": source.format, "columns": columns, "isolation": source.options.get(ISOLATION)}


def _source(source: Source, stored: dict[str, Any]) -> Source:
    if isinstance(source, FilesSource):
        return replace(source, format=stored["format"])
    if not isinstance(source, KafkaSource):
        return source
    columns = tuple((attribute, column) for attribute, column in stored["columns"])
    level = stored.get("isolation") or "read_uncommitted"  # the default before it was a setting
    options = {**source.options, ISOLATION: level}
    return replace(source, format=stored["format"], columns=columns, options=options)


def _sides_of(schema: EventSchema) -> dict[str, Any]:
    """The setting for side tables; empty if there are none, because older checkpoints lack the key."""
    return {"side_tables": list(map(asdict, schema.side_tables))} if schema.side_tables else {}


def _form_of(schema: EventSchema) -> dict[str, Any]:
    """The setting for the form of records; empty for the ordinary form, for the same reason."""
    if schema.form == ORDINARY:
        return {}
    told = {
        key: list(value) if isinstance(value, tuple) else value for key, value in asdict(schema.form).items()
    }
    further = {"further": told.pop("further")}
    return {"form": told | (further if schema.form.further else {})}


def _form(stored: dict[str, Any]) -> RecordForm:
    lists = {key: tuple(stored.get(key, ())) for key in ("time_formats", "further")}
    return RecordForm(**{**stored, **lists}) if stored else ORDINARY


def _side(stored: dict[str, Any]) -> SideTable:
    columns = tuple(Field(**column) for column in stored["columns"])
    on = tuple((attribute, column) for attribute, column in stored["on"])
    return SideTable(**{**stored, "columns": columns, "on": on})


def as_planned(spec: JobSpec, settings: dict[str, Any]) -> JobSpec:
    """The job with the settings of a planned batch in place of its own.

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
    return replace(spec, events=events, source=_source(spec.source, settings), rules=rules)
