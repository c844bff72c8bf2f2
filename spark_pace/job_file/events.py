"""Reads the section `events` of a job file: attributes, order of the stream, handling of bad input."""

from __future__ import annotations

from typing import cast

from spark_pace.core.expr import Expr, is_single
from spark_pace.core.order.order import Before, OrderSpec
from spark_pace.core.plan.plan import OPERATOR_TIMEOUT_US, OnBad
from spark_pace.core.plan.rule import EventSchema
from spark_pace.job_file.spec import Clock, Events
from spark_pace.rules.document.document import Scalar
from spark_pace.rules.document.report import nearest, quote
from spark_pace.rules.document.section import Section
from spark_pace.rules.expressions.compile import compile_condition
from spark_pace.rules.expressions.parsing import as_expression
from spark_pace.rules.expressions.scopes import event_scope
from spark_pace.rules.lengths import read_duration
from spark_pace.rules.schema import OF_JOBS, OF_SOURCES, SCHEMA_KEYS, read_schema

_UNKNOWN = EventSchema((), "")


def open_events(fields: Section) -> Section | None:
    """The section `events`, ready to be read; None if the job file has none."""
    mapping = fields.mapping("events", "{delay: 10 min}")
    return None if mapping is None else Section(mapping, fields.report, (*SCHEMA_KEYS, *OF_JOBS))


def declared_schema(keys: Section | None) -> EventSchema | None:
    """The schema that the section declares; None if it declares none, or one that is reported as wrong."""
    return read_schema(keys) if keys is not None and any(keys.has(key) for key in SCHEMA_KEYS) else None


def read_events(
    keys: Section | None, schema: EventSchema | None, *, sources_known: bool, goes_on: bool
) -> Events:
    """Read how the job treats events.

    Args:
        keys: the section; None if the job file has none.
        schema: of the rules and the job; None if it was wrong, so names cannot be looked up.
        sources_known: True if an event's position names its source, as a Kafka partition does and a path
            does not.
        goes_on: True if the job runs until it is stopped.

    Returns:
        All that is right; without attributes if the schema is None.
    """
    own = schema and schema.own  # without columns of side tables: they do not decide the order
    if keys is None:
        order = OrderSpec(before=_before(sources_known, False))
        return Events(schema or _UNKNOWN, order)
    by_source = _by_source(keys, sources_known)
    order = OrderSpec(
        delay_us=_duration(keys, "delay", 0) or 0,
        by_source=by_source,
        idle_after_us=_duration(keys, "idle_after", None),
        expected_sources=_expected(keys),
        deduplicate_on=tuple(_attributes(keys, "deduplicate_on", own)),
        before=_before(sources_known, by_source),
    )
    column = keys.text("source_column", "source_column: device")
    if column is not None:
        _is_attribute(keys, column, own)
    beat = _heartbeat(keys, own)
    on_bad, on_error = _on_bad(keys, "on_bad_record"), _on_bad(keys, "on_operator_error")
    timeout_us, clock = _timeout(keys), _clock(keys, goes_on)
    name = column.text if column else None
    return Events(schema or _UNKNOWN, order, name, beat, on_bad, on_error, timeout_us, clock)


def _by_source(keys: Section, sources_known: bool) -> bool:
    """Read `ordering`: True if the slowest source decides. Check that its keys are there, and no others."""
    by_source = keys.choice("ordering", ("watermark", "sources"), "watermark") == "sources"
    if not by_source:
        keys.refuse(OF_SOURCES, "It belongs to ordering: sources.")
    elif not sources_known and not keys.has("source_column"):
        do = "Add source_column: and the attribute that names an event's source."
        must = "must come with a source_column where events come from files"
        keys.report.add(keys.key_place("ordering"), must, "none", do)
    return by_source


def _before(sources_known: bool, by_source: bool) -> Before:
    """The input that counts as earlier when lateness is decided (`Before`).

    Files have an order; so have the records of one Kafka partition.
    """
    if not sources_known:
        return "files"
    return "records" if by_source else "batches"


def _on_bad(keys: Section, key: str) -> OnBad:
    return cast(OnBad, keys.choice(key, ("quarantine", "fail"), "quarantine"))


def _heartbeat(keys: Section, schema: EventSchema | None) -> Expr | None:
    node = keys.node("heartbeat")
    text = None if node is None else as_expression(node, keys.report)
    if text is None or schema is None:
        return None
    return compile_condition(text, event_scope(schema), keys.report)


def _duration(keys: Section, key: str, default: int | None, least: int = 0) -> int | None:
    node = keys.node(key)
    return default if node is None else read_duration(node, keys.report, least=least)


def _timeout(keys: Section) -> int:
    timeout_us = _duration(keys, "operator_timeout", OPERATOR_TIMEOUT_US)
    if timeout_us == 0:
        place, do = keys.key_place("operator_timeout"), "Give a duration such as 30 s."
        keys.report.add(place, "must be more than 0", "0", do)
    return timeout_us or OPERATOR_TIMEOUT_US


def _clock(keys: Section, goes_on: bool) -> Clock | None:
    """Read the clock; None if the job has none, or one that is reported as wrong."""
    mapping = keys.mapping("clock", "{every: 5 s, slack: 10 s}")
    if mapping is None:
        return None
    if not goes_on:
        must, do = "must come with a periodic trigger", "Set a trigger such as 1 s, or leave out clock."
        keys.report.add(keys.key_place("clock"), must, "trigger: available_now", do)
    parts = Section(mapping, keys.report, ("every", "slack"))
    for key, example in (("every", "every: 5 s"), ("slack", "slack: 10 s")):
        parts.require(key, example)
    every_us = _duration(parts, "every", None, least=1)
    slack_us = _duration(parts, "slack", None)
    return None if every_us is None or slack_us is None else Clock(every_us, slack_us)


def _expected(keys: Section) -> tuple[str, ...]:
    found: list[str] = []
    for item in keys.texts("expected_sources", "expected_sources: [north, south]"):
        if item.text in found:
            keys.report.add(item.place, "must name a source once", quote(item.text), "Remove one.")
        else:
            found.append(item.text)
    return tuple(found)


def _attributes(keys: Section, key: str, schema: EventSchema | None) -> list[str]:
    found: list[str] = []
    for item in keys.texts(key, f"{key}: [id]"):
        if item.text in found:
            keys.report.add(item.place, "must name an attribute once", quote(item.text), "Remove one.")
        elif _is_attribute(keys, item, schema):
            found.append(item.text)
    return found


def _is_attribute(keys: Section, item: Scalar, schema: EventSchema | None) -> bool:
    if schema is None:
        return True
    names = [field.name for field in schema.fields if is_single(field.type)]
    if item.text not in names:
        must, do = "must name an attribute of the events", nearest(item.text, names)
        keys.report.add(item.place, must, quote(item.text), do)
    return item.text in names
