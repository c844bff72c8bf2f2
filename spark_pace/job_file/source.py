"""The section `source` of a job file: where events come from, and how it is read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Literal, get_args

from spark_pace.core.expr import is_single
from spark_pace.core.order import OrderSpec
from spark_pace.core.plan.plan import MOST_BAD_RECORDS
from spark_pace.core.plan.rule import EventSchema
from spark_pace.errors import SetupError
from spark_pace.job_file.keys import (
    filled,
    in_store,
    key,
    known,
    left_out,
    local_path,
    matching,
    names,
    one_of,
    place,
    settings,
    single,
    text,
    texts,
    whole,
)
from spark_pace.job_file.secrets import Secrets
from spark_pace.rules.document import Mapping, Place, Report, Section, nearest, quote
from spark_pace.rules.schema import groups_of

EXAMPLE = "{kind: files, format: json, path: events}"
ISOLATION = "kafka.isolation.level"  # the option that says whether records of aborted transactions are read
Format = Literal["json", "csv", "text", "parquet"]
KafkaFormat = Literal["json", "csv", "text", "columns"]

is_topic = matching(
    r"(?!\.{1,2}$)[A-Za-z0-9._-]{1,249}",
    "must be the name of a topic (letters, digits, dot, _ and -)",
    "Correct the name.",
)
_is_column = matching(
    r"key|value|topic|partition|offset|timestamp|headers\.(?s:.+)",
    "must be a column of the Kafka record",
    "Use one of: key, value, topic, partition, offset, timestamp, headers.NAME.",
)
_FILES_PER_BATCH, _BAD_PER_FILE = whole(1000, 1, 1_000_000), whole(100, 1, 1_000_000)
_END = "Use finish: true to end with what is there."
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
    **dict.fromkeys(("endingoffsets", "endingoffsetsbytimestamp", "endingtimestamp"), _END),
    "failondataloss": "A record that is gone before it was read must stop the job.",
}
_COMMITTED = {ISOLATION: "read_committed"}  # Kafka's own default reads what was aborted, too
# a task that reads the middle of a partition does not know the records before it
_SPLITTING = ("minpartitions", "maxrecordsperpartition")


def _version(value: object) -> object:
    """What is kept of `from_version`."""
    is_number = isinstance(value, int) and not isinstance(value, bool) and value >= 0
    return value if value == "start" or is_number else None


def _found(path: str, what: str, is_there: Callable[[Path], bool], do: str) -> str:
    """The absolute path on this machine of what is there, or the address, in which nothing is looked for.

    Raises:
        SetupError: it is not there.
    """
    if in_store(path):
        return path
    found = local_path(path, "source.path")
    if not is_there(found):
        got = "a folder without _delta_log" if is_there is _has_log and found.is_dir() else "nothing there"
        raise SetupError(f"{found} — must be {what}; got {got}. {do}, or correct source.path.")
    return str(found)


def _has_log(table: Path) -> bool:
    return (table / "_delta_log").is_dir()


@dataclass(frozen=True)
class FilesSource:
    """Files in a folder or below a prefix in a store, read in the order of their names; or one file.

    Attributes:
        format: of the files.
        path: of the folder or the file; or the address of the prefix.
        max_files_per_trigger: the most files of a batch; None: all that are there.
        max_bad_records_per_file: how many bad records of a file get a row each in the table `quarantine`;
            all others of the file share one row.
    """

    format: Format = key(one_of(get_args(Format)))
    path: str = key(place("events"))
    max_files_per_trigger: int | None = key(_FILES_PER_BATCH, None)
    max_bad_records_per_file: int = key(_BAD_PER_FILE, MOST_BAD_RECORDS)

    @property
    def told(self) -> str:
        """What events are waited for in, for people."""
        return self.path

    def resolved(self, secrets: Secrets) -> FilesSource:
        """Return this source with its absolute path on this machine, or with its address.

        Raises:
            SetupError: it is a path, and nothing is there.
        """
        path = _found(self.path, "a file or a directory of events", Path.exists, "Put the events there")
        return replace(self, path=path)


@dataclass(frozen=True)
class KafkaSource:
    """Topics of Kafka.

    Attributes:
        format: of a record's value: ``json``, ``csv`` (the attributes in the schema's order, without those in
            `columns`), ``text``, or ``columns`` (no attribute comes from inside the value).
        servers: ``host:port``, several with commas; may hold ``${env:NAME}``.
        topics: at least one.
        starting_offsets: where a new checkpoint begins.
        max_offsets_per_trigger: the most records of a batch; None: all that are there.
        columns: (attribute, column of the Kafka record: ``key``, ``value``, ``topic``, ``partition``,
            ``offset``, ``timestamp`` or ``headers.NAME``).
        options: of Spark's connector and, with ``kafka.`` in front, of Kafka's client, `ISOLATION` among
            them; values may hold ``${env:NAME}``.
    """

    format: KafkaFormat = key(one_of(get_args(KafkaFormat)))
    servers: str = key(text("localhost:9092"))
    topics: tuple[str, ...] = key(texts("[events]", "a topic", is_topic))
    starting_offsets: Literal["earliest", "latest"] = key(one_of(("earliest", "latest")), "earliest")
    max_offsets_per_trigger: int | None = key(whole(100_000, 1, 1_000_000_000), None)
    columns: tuple[tuple[str, str], ...] = key(
        settings("{sent_at: timestamp}", of_value=_is_column).to(lambda said: tuple(said.items())), ()
    )
    options: dict[str, str] = key(
        settings("{kafka.security.protocol: SASL_SSL}", left_out(_OWN_OPTIONS)).to(
            lambda said: _COMMITTED | said
        ),
        dict,
    )

    @property
    def told(self) -> str:
        """What events are waited for in, for people."""
        return f"the {'topic' if len(self.topics) == 1 else 'topics'} {', '.join(self.topics)}"

    @property
    def reads_committed(self) -> bool:
        """True if records of transactions are read only once these are committed."""
        return self.options.get(ISOLATION) == "read_committed"

    def resolved(self, secrets: Secrets) -> KafkaSource:
        """Return this source with the environment's values in place of ``${env:NAME}``.

        Raises:
            SetupError: a variable of the environment is missing.
        """
        servers = secrets.resolve(self.servers, "source.servers")
        return replace(self, servers=servers, options=secrets.resolve_all(self.options, "source.options"))


@dataclass(frozen=True)
class DeltaSource:
    """A Delta table to which others append, read file by file in the order of its commits.

    Attributes:
        path: of the table.
        from_version: the first commit that a new checkpoint reads; None: it begins with all rows there are.
        max_files_per_trigger: the most files of a batch; None: all that are there.
        max_bad_records_per_file: as of `FilesSource`.
    """

    path: str = key(place("out/matches"))
    from_version: int | None = key(
        single(
            "start", "start, or the number of a commit", _version, "Write for example from_version: start."
        ),
        None,
    )
    max_files_per_trigger: int | None = key(_FILES_PER_BATCH, None)
    max_bad_records_per_file: int = key(_BAD_PER_FILE, MOST_BAD_RECORDS)

    format: ClassVar[str] = "parquet"

    @property
    def told(self) -> str:
        """What events are waited for in, for people."""
        return f"the table {self.path}"

    def resolved(self, secrets: Secrets) -> DeltaSource:
        """Return this source with its absolute path on this machine.

        Raises:
            SetupError: there is no table.
        """
        path = _found(self.path, "a Delta table", _has_log, "Start what writes it first")
        return replace(self, path=path)


Source = FilesSource | KafkaSource | DeltaSource
KINDS: dict[str, type[Source]] = {"files": FilesSource, "kafka": KafkaSource, "delta": DeltaSource}
_TELLING = {"topics": "kafka", "from_version": "delta"}  # which one is meant where the kind is missing


def read_source(fields: Section) -> tuple[Source | None, Section | None]:
    """Read the source of a job file and return it, with its keys; None if it was wrong."""
    mapping = fields.mapping("source", f"source: {EXAMPLE}")
    if mapping is None:
        return None, None
    unheard = Section(mapping, Report(len(mapping.entries) + 1), ("kind",))
    guess = next((kind for name, kind in _TELLING.items() if name in mapping.entries), "files")
    kind = unheard.choice("kind", tuple(KINDS), guess)
    keys = Section(mapping, fields.report, ("kind", *names(known(KINDS[kind]))))
    keys.require("kind", f"kind: {kind}")
    keys.choice("kind", tuple(KINDS), kind)
    return filled(KINDS[kind], keys), keys


def check_source(
    fields: Section, keys: Section, source: Source, schema: EventSchema, order: OrderSpec
) -> None:
    """Report conflicts of a source with the schema and the order of events.

    Args:
        fields: the keys of the job file.
        keys: those of its source.
        source: what they say.
        schema: of the events.
        order: of the events.
    """
    _check_form(fields, source, schema)
    if not isinstance(source, KafkaSource):
        return
    _check_columns(keys, source, schema)
    if order.before == "records":
        for option, there in _places(keys, "options").items():
            if option.lower() in _SPLITTING:
                must, do = "must be left out with ordering: sources", "Give the topic more partitions."
                fields.report.add(there, must, quote(option), do)


def _places(keys: Section, name: str) -> dict[str, Place]:
    """Where each of the keys stands that a mapping under a key has; none without the mapping."""
    node = keys.node(name)
    return {one: there for one, (there, _) in node.entries.items()} if isinstance(node, Mapping) else {}


def _check_form(fields: Section, source: Source, schema: EventSchema) -> None:
    """Report a format that cannot hold events of the schema."""
    there, form = fields.key_place("source"), schema.form
    parted = [field for field in schema.fields if not is_single(field.type)]
    if source.format == "csv" and parted:
        got = f"csv, and {parted[0].name} {parted[0].type}"
        must = "must not be csv where an attribute has parts"
        fields.report.add(there, must, got, "Use another format.")
    from_record = isinstance(source, KafkaSource) and schema.event_time in dict(source.columns)
    timeless = [regex for regex in form.regexes if schema.event_time not in groups_of(regex)]
    if source.format == "text" and not form.reads_text:
        must = "must go with the key text of the section events where the format is text"
        fields.report.add(there, must, "none", "Write for example text: {preset: syslog}.")
    elif source.format == "text" and timeless and not from_record:
        which = "the regex" if len(form.regexes) == 1 else "each regex"
        must = f"must have a group {quote(schema.event_time)}, the event time, in {which} of the text"
        fields.report.add(there, must, "none", f"Write (?P<{schema.event_time}>...).")
    if isinstance(source, KafkaSource) and form.lacks_year and not from_record:
        must = "must go with the key year of the section events where times have none"
        do = f"Add it, or take the time of the record: columns: {{{schema.event_time}: timestamp}}."
        fields.report.add(there, must, "none", do)


def _check_columns(keys: Section, source: KafkaSource, schema: EventSchema) -> None:
    """Report wrong attributes under `columns`, and with ``format: columns`` those that are missing there."""
    report, there, columns = keys.report, _places(keys, "columns"), dict(source.columns)
    types = {field.name: field.type for field in schema.fields}
    for attribute in columns:
        if len(schema.path_of(attribute)) > 1 or not is_single(types.get(attribute, "STRING")):
            must = "must be an attribute without parts, outside every STRUCT"
            report.add(there[attribute], must, quote(attribute), "Leave it to the value of the record.")
        elif attribute not in types:
            must = "must be an attribute of the events"
            report.add(there[attribute], must, quote(attribute), nearest(attribute, types))
    if schema.time_unit not in (None, "ms") and columns.get(schema.event_time) == "timestamp":
        must = "must count milliseconds, as the timestamp of a record does"
        do = "Declare it a TIMESTAMP, or set time_unit: ms."
        report.add(there[schema.event_time], must, f"time_unit: {schema.time_unit}", do)
    missing = [name for name in types if name not in columns]
    if source.format == "columns" and missing:
        place = keys.key_place("columns" if keys.has("columns") else "format")
        must, got = "must have a column for every attribute of the events", f"none for {', '.join(missing)}"
        report.add(place, must, got, "Add them under columns, or use json.")
