"""The section `events` of a job file: attributes, order of the stream, handling of bad input."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, get_args

from spark_pace.core.expr import Expr, is_single
from spark_pace.core.order import Before, OrderSpec
from spark_pace.core.plan.plan import OPERATOR_TIMEOUT_US, OnBad
from spark_pace.core.plan.rule import EventSchema
from spark_pace.job_file.keys import (
    Key,
    duration,
    key,
    known,
    one_of,
    out_of,
    read_keys,
    section_of,
    text,
    texts,
)
from spark_pace.rules.document import Mapping, Section
from spark_pace.rules.expressions.compile import compile_condition
from spark_pace.rules.expressions.parsing import as_expression
from spark_pace.rules.expressions.scopes import event_scope
from spark_pace.rules.schema import OF_JOBS, OF_SOURCES, SCHEMA_KEYS, read_schema

_UNKNOWN = EventSchema((), "")
_BAD = one_of(get_args(OnBad))
# the fields of `OrderSpec` that keys fill
_ORDER = {
    "delay_us": Key("delay", duration("10 min")),
    "by_source": Key("ordering", one_of(("watermark", "sources")).to(lambda word: word == "sources")),
    "idle_after_us": Key("idle_after", duration("10 min")),
    "expected_sources": Key("expected_sources", texts("[north, south]", "a source")),
    "deduplicate_on": Key("deduplicate_on", texts("[id]", "an attribute")),
}


@dataclass(frozen=True)
class Clock:
    """A clock that moves the frontier where nothing comes.

    Attributes:
        every_us: how often it ticks.
        slack_us: how long an event may take to come: a tick says that nothing is waited for which is earlier
            than the clock by more than this.
    """

    every_us: int = key(duration("5 s", least=1))
    slack_us: int = key(duration("10 s"))


@dataclass(frozen=True)
class Events:
    """The section `events` of a job file: the form of events, and how the job treats them.

    Attributes:
        schema: the attributes.
        order: how the stream is put in order.
        source_column: the attribute that names an event's source for ``ordering: sources``; None: its Kafka
            partition.
        heartbeat: the condition for records that only tell the time of their source and are no events.
        on_bad_record: what is done with a record that is no event.
        on_operator_error: what is done with a selection on which a Python operator fails.
        operator_timeout_us: how long a Python operator may work on one selection.
        clock: the clock that is part of the input; None: event times alone move the frontier.
    """

    schema: EventSchema
    order: OrderSpec = field(default_factory=OrderSpec)
    source_column: str | None = key(text("device"), None)
    heartbeat: Expr | None = None
    on_bad_record: OnBad = key(_BAD, "quarantine")
    on_operator_error: OnBad = key(_BAD, "quarantine")
    operator_timeout_us: int = key(duration("30 s", least=1), OPERATOR_TIMEOUT_US)
    clock: Clock | None = key(section_of(Clock, "{every: 5 s, slack: 10 s}"), None)

    @property
    def stream(self) -> dict[str, Any]:
        """The settings that decide the events of the stream and their order, as arguments of `build_plan`."""
        return {"order": self.order, "source_column": self.source_column, "heartbeat": self.heartbeat}


def open_events(fields: Section) -> Section:
    """The section `events`, ready to be read; without keys if the job file has none."""
    mapping = fields.mapping("events", "events: {delay: 10 min}") or Mapping(fields.place, {})
    return Section(mapping, fields.report, (*SCHEMA_KEYS, *OF_JOBS))


def declared_schema(keys: Section) -> EventSchema | None:
    """The schema that the section declares; None if it declares none, or one that is reported as wrong."""
    return read_schema(keys) if any(keys.has(key) for key in SCHEMA_KEYS) else None


def read_events(keys: Section, schema: EventSchema | None, *, sources_known: bool, goes_on: bool) -> Events:
    """Read how the job treats events.

    Args:
        keys: the section.
        schema: of the rules and the job; None if it was wrong, so names cannot be looked up.
        sources_known: True if an event's position names its source, as a Kafka partition does and a path
            does not.
        goes_on: True if the job runs until it is stopped.

    Returns:
        All that is right; without attributes if the schema is None.
    """
    of_order, of_events = dict(_ORDER), known(Events)
    if schema is not None:  # columns of side tables do not decide the order
        attributes = [field.name for field in schema.own.fields if is_single(field.type)]
        is_one = out_of(attributes, "must name an attribute of the events")
        of_order["deduplicate_on"] = Key("deduplicate_on", texts("[id]", "an attribute", is_one))
        of_events["source_column"] = Key("source_column", text("device", is_one))
    order = read_keys(keys, of_order)
    _check_ordering(keys, order["by_source"], sources_known)
    if keys.has("clock") and not goes_on:
        must, do = "must come with a periodic trigger", "Set a trigger such as 1 s, or leave out clock."
        keys.report.add(keys.key_place("clock"), must, "trigger: available_now", do)
    ordered = OrderSpec(**order, before=_before(sources_known, order["by_source"]))
    beat = _heartbeat(keys, schema and schema.own)
    return Events(schema or _UNKNOWN, order=ordered, heartbeat=beat, **read_keys(keys, of_events))


def _before(sources_known: bool, by_source: bool) -> Before:
    """The input that counts as earlier when lateness is decided (`Before`).

    Files have an order; so have the records of one Kafka partition.
    """
    if not sources_known:
        return "files"
    return "records" if by_source else "batches"


def _check_ordering(keys: Section, by_source: bool, sources_known: bool) -> None:
    """Check that the keys of ``ordering: sources`` are there with it, and without it are not."""
    if not by_source:
        keys.refuse(OF_SOURCES, "It belongs to ordering: sources.")
    elif not sources_known and not keys.has("source_column"):
        do = "Add source_column: and the attribute that names an event's source."
        must = "must come with a source_column where events come from files"
        keys.report.add(keys.key_place("ordering"), must, "none", do)


def _heartbeat(keys: Section, schema: EventSchema | None) -> Expr | None:
    node = keys.node("heartbeat")
    condition = None if node is None else as_expression(node, keys.report)
    if condition is None or schema is None:
        return None
    return compile_condition(condition, event_scope(schema), keys.report)
