"""Reads the section `source` of a job file."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Literal, cast, get_args

from spark_pace.core.expr import is_single
from spark_pace.core.order.order import OrderSpec
from spark_pace.core.plan.plan import MOST_BAD_RECORDS
from spark_pace.core.plan.rule import EventSchema
from spark_pace.job_file.paths import resolve
from spark_pace.job_file.spec import (
    ISOLATION,
    DeltaSource,
    Events,
    FilesSource,
    Format,
    KafkaFormat,
    KafkaSource,
    Source,
)
from spark_pace.rules.document.addresses import check_address
from spark_pace.rules.document.document import Mapping, Scalar, describe
from spark_pace.rules.document.report import Report, meant_by, nearest, quote
from spark_pace.rules.document.section import Section
from spark_pace.rules.schema import groups_of

EXAMPLE = "source: {kind: files, format: json, path: events}"
KAFKA_EXAMPLE = "source: {kind: kafka, servers: localhost:9092, topics: [events], format: json}"
RECORD_COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "headers.NAME")

_FILES_KEYS = ("kind", "format", "path", "max_files_per_trigger", "max_bad_records_per_file")
_DELTA_KEYS = ("kind", "path", "from_version", "max_files_per_trigger", "max_bad_records_per_file")
_KAFKA_KEYS = (
    "kind",
    "format",
    "servers",
    "topics",
    "starting_offsets",
    "max_offsets_per_trigger",
    "columns",
    "options",
)
TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
# options that have a key of their own in the job file, or would break exactly once; and what to do instead
_OWN_OPTIONS = {
    "kafka.bootstrap.servers": "Use servers.",
    "subscribe": "Use topics.",
    "subscribepattern": "Name the topics in topics.",
    "assign": "Name the topics in topics.",
    "startingoffsets": "Use starting_offsets.",
    "maxoffsetspertrigger": "Use max_offsets_per_trigger.",
    "includeheaders": "Name the headers in columns.",
    "kafka.auto.offset.reset": "Use starting_offsets.",
    "kafka.enable.auto.commit": "The checkpoint keeps what was read.",
    "kafka.interceptor.classes": "What it changes could not be read a second time.",
    "kafka.key.deserializer": "Keys are read as bytes.",
    "kafka.value.deserializer": "Values are read as bytes; format says what is in them.",
    "endingoffsets": "Use finish: true to end with what is there.",
    "endingoffsetsbytimestamp": "Use finish: true to end with what is there.",
    "endingtimestamp": "Use finish: true to end with what is there.",
    "failondataloss": "A record that is gone before it was read must stop the job.",
}

# a task that reads the middle of a partition does not know the records before it
_SPLITTING = ("minpartitions", "maxrecordsperpartition")


def read_source(fields: Section, folder: Path) -> Source | None:
    """Read the source; None if it was wrong. Its path is relative to `folder`."""
    mapping = fields.mapping("source", EXAMPLE)
    if mapping is None:
        return None
    if names_iceberg(mapping, fields.report, "files, kafka or delta", "Read the table by detect"):
        return None
    node = mapping.entries["kind"][1] if "kind" in mapping.entries else None
    guess = next((kind for key, kind in _TELLING.items() if key in mapping.entries), "files")
    kind = node.text if isinstance(node, Scalar) else guess
    meant = kind if kind in _KINDS else meant_by(kind, tuple(_KINDS)) or guess
    keys, read = _KINDS[meant]
    source = Section(mapping, fields.report, keys)
    source.require("kind", f"kind: {meant}")
    source.choice("kind", tuple(_KINDS), meant)
    return read(source, folder)


def names_iceberg(mapping: Mapping, report: Report, kinds: str, do: str) -> bool:
    """True if a source or a sink is to be a table of Iceberg, which is reported in place of all else."""
    node = mapping.entries["kind"][1] if "kind" in mapping.entries else None
    if not isinstance(node, Scalar) or node.text.lower() != "iceberg":
        return False
    report.add(node.place, f"must be {kinds}", describe(node), f"{do}; docs/python.md (Iceberg) shows how.")
    return True


def _read_files(source: Section, folder: Path) -> FilesSource | None:
    for key, example in (("format", "format: json"), ("path", "path: events")):
        source.require(key, example)
    form = source.choice("format", get_args(Format), "json")
    path = source.text("path", "path: events")
    if path is not None:
        check_address(path, source.report)
    most = source.whole("max_files_per_trigger", 1, 1_000_000)
    most_bad = source.whole("max_bad_records_per_file", 1, 1_000_000) or MOST_BAD_RECORDS
    return FilesSource(cast(Format, form), resolve(path.text, folder), most, most_bad) if path else None


def _read_delta(source: Section, folder: Path) -> DeltaSource | None:
    source.require("path", "path: out/matches")
    path = source.text("path", "path: out/matches")
    if path is not None:
        check_address(path, source.report)
    version = _read_version(source)
    most = source.whole("max_files_per_trigger", 1, 1_000_000)
    most_bad = source.whole("max_bad_records_per_file", 1, 1_000_000) or MOST_BAD_RECORDS
    return DeltaSource(resolve(path.text, folder), version, most, most_bad) if path else None


def _read_version(source: Section) -> int | None:
    """The number of the first commit to read; None if the job begins with all rows of the table."""
    node = source.node("from_version")
    value = node.value if isinstance(node, Scalar) else None
    if node is None or value == "start":
        return None
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    must, do = "must be start, or the number of a commit", "Write for example from_version: start."
    source.report.add(node.place, must, describe(node), do)
    return None


def _read_kafka(source: Section, folder: Path) -> KafkaSource | None:
    examples = {"servers": "servers: localhost:9092", "topics": "topics: [events]", "format": "format: json"}
    for key, example in examples.items():
        source.require(key, example)
    form = source.choice("format", get_args(KafkaFormat), "json")
    servers = source.text("servers", examples["servers"])
    offsets = source.choice("starting_offsets", ("earliest", "latest"), "earliest")
    most = source.whole("max_offsets_per_trigger", 1, 1_000_000_000)
    topics = _read_topics(source)
    columns = _read_columns(source)
    if form == "columns" and not source.has("columns"):
        must = 'must have the key "columns", for the attributes are columns of the record'
        source.report.add(source.place, must, "none", "Add columns: {name: value}.")
    options = _read_options(source)
    if servers is None or not topics:
        return None
    start = cast(Literal["earliest", "latest"], offsets)
    return KafkaSource(cast(KafkaFormat, form), servers.text, topics, start, most, columns, options)


# if the kind is missing or misspelt, these keys tell which one is meant
_TELLING = {"topics": "kafka", "from_version": "delta"}
# for each kind of source its keys, and the function that reads them
_KINDS: dict[str, tuple[tuple[str, ...], Callable[[Section, Path], Source | None]]] = {
    "files": (_FILES_KEYS, _read_files),
    "kafka": (_KAFKA_KEYS, _read_kafka),
    "delta": (_DELTA_KEYS, _read_delta),
}


def _read_topics(source: Section) -> tuple[str, ...]:
    topics: list[str] = []
    for item in source.texts("topics", "topics: [events]"):
        if not TOPIC.fullmatch(item.text) or item.text in (".", ".."):
            must = "must be the name of a topic (letters, digits, dot, _ and -)"
            source.report.add(item.place, must, quote(item.text), "Correct the name.")
        elif item.text in topics:
            source.report.add(item.place, "must name a topic once", quote(item.text), "Remove one.")
        else:
            topics.append(item.text)
    return tuple(topics)


def _read_columns(source: Section) -> tuple[tuple[str, str], ...]:
    mapping = source.mapping("columns", "columns: {sent_at: timestamp}")
    found: list[tuple[str, str]] = []
    for attribute, (_, node) in (mapping.entries if mapping else {}).items():
        text = node.text if isinstance(node, Scalar) else ""
        if text in RECORD_COLUMNS[:-1] or (text.startswith("headers.") and text != "headers."):
            found.append((attribute, text))
        else:
            do = f"Use one of: {', '.join(RECORD_COLUMNS)}."
            source.report.add(node.place, "must be a column of the Kafka record", describe(node), do)
    return tuple(found)


def _check_partitions_whole(fields: Section, source: Source | None, order: OrderSpec) -> None:
    """Report options that split a partition over tasks, if its earlier records decide what is late."""
    if not isinstance(source, KafkaSource) or order.before != "records":
        return
    mapping = fields.mapping("source", KAFKA_EXAMPLE)
    assert mapping is not None
    options = Section(mapping, Report(), _KAFKA_KEYS).mapping("options", "options: {}")
    for key in source.options:
        if key.lower() in _SPLITTING:
            assert options is not None
            must, do = "must be left out with ordering: sources", "Give the topic more partitions."
            fields.report.add(options.entries[key][0], must, quote(key), do)


def _read_options(source: Section) -> dict[str, str]:
    mapping = source.mapping("options", "options: {kafka.security.protocol: SASL_SSL}")
    options = read_texts(mapping, source)
    for key in options:
        if key.lower() in _OWN_OPTIONS:
            assert mapping is not None
            place, do = mapping.entries[key][0], _OWN_OPTIONS[key.lower()]
            source.report.add(place, "must be left out", quote(key), do)
    options.setdefault(ISOLATION, "read_committed")  # Kafka's own default reads what was aborted, too
    return options


def read_texts(mapping: Mapping | None, fields: Section) -> dict[str, str]:
    """The values of a mapping as texts. Lists and mappings among them are reported."""
    found: dict[str, str] = {}
    for key, (_, node) in (mapping.entries if mapping else {}).items():
        if isinstance(node, Scalar) and node.value is not None:
            found[key] = node.text
        else:
            do = "Write text, a number, true or false."
            fields.report.add(node.place, "must be a single value", describe(node), do)
    return found


def check_source(
    fields: Section, source: Source | None, schema: EventSchema | None, events: Events | None
) -> None:
    """Report conflicts of the source with the schema and the order of events.

    `source`, `schema` or `events` is None if it was wrong; then it is not compared.
    """
    if schema is not None and source is not None:
        _check_form(fields, source, schema)
        _check_columns(fields, source, schema)
    if events is not None:
        _check_partitions_whole(fields, source, events.order)


def _check_form(fields: Section, source: Source, schema: EventSchema) -> None:
    """Report a format that cannot hold events of the schema."""
    place, form = fields.key_place("source"), schema.form
    parted = [field for field in schema.fields if not is_single(field.type)]
    if source.format == "csv" and parted:
        must, got = (
            "must not be csv where an attribute has parts",
            f"csv, and {parted[0].name} {parted[0].type}",
        )
        fields.report.add(place, must, got, "Use another format.")
    from_record = isinstance(source, KafkaSource) and schema.event_time in dict(source.columns)
    timeless = [regex for regex in form.regexes if schema.event_time not in groups_of(regex)]
    if source.format == "text" and not form.reads_text:
        must = "must go with the key text of the section events where the format is text"
        fields.report.add(place, must, "none", "Write for example text: {preset: syslog}.")
    elif source.format == "text" and timeless and not from_record:
        which = "the regex" if len(form.regexes) == 1 else "each regex"
        must = f"must have a group {quote(schema.event_time)}, the event time, in {which} of the text"
        fields.report.add(place, must, "none", f"Write (?P<{schema.event_time}>...).")
    if isinstance(source, KafkaSource) and form.lacks_year and not from_record:
        must = "must go with the key year of the section events where times have none"
        do = f"Add it, or take the time of the record: columns: {{{schema.event_time}: timestamp}}."
        fields.report.add(place, must, "none", do)


def _check_columns(fields: Section, source: Source, schema: EventSchema) -> None:
    """Report wrong attributes under `columns`, and with ``format: columns`` those that are missing there."""
    mapping = fields.mapping("source", KAFKA_EXAMPLE)
    parted = {field.name: field.type for field in schema.fields if not is_single(field.type)}
    if not isinstance(source, KafkaSource) or mapping is None:
        return
    keys = Section(mapping, Report(), _KAFKA_KEYS)  # problems of the keys were reported before
    columns = keys.mapping("columns", "columns: {sent_at: timestamp}")
    if columns is None:
        return
    names = [field.name for field in schema.fields]
    for attribute, _ in source.columns:
        if len(schema.path_of(attribute)) > 1 or attribute in parted:
            must = "must be an attribute without parts, outside every STRUCT"
            do = "Leave it to the value of the record."
            fields.report.add(columns.entries[attribute][0], must, quote(attribute), do)
        elif attribute not in names:
            place, do = columns.entries[attribute][0], nearest(attribute, names)
            fields.report.add(place, "must be an attribute of the events", quote(attribute), do)
    if schema.time_unit not in (None, "ms") and dict(source.columns).get(schema.event_time) == "timestamp":
        must, got = (
            "must count milliseconds, as the timestamp of a record does",
            f"time_unit: {schema.time_unit}",
        )
        do = "Declare it a TIMESTAMP, or set time_unit: ms."
        fields.report.add(columns.entries[schema.event_time][0], must, got, do)
    missing = [name for name in names if name not in dict(source.columns)]
    if source.format == "columns" and missing:
        must, got = "must fill every attribute of the events", f"none for {', '.join(missing)}"
        fields.report.add(keys.key_place("columns"), must, got, "Add them, or use json.")
