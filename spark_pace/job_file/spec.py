"""What a checked job file says."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from spark_pace.core.expr import Expr
from spark_pace.core.order.order import OrderSpec
from spark_pace.core.plan.plan import OPERATOR_TIMEOUT_US, OnBad
from spark_pace.core.plan.rule import EventSchema, Rule

Format = Literal["json", "csv", "parquet"]
KafkaFormat = Literal["json", "csv", "columns"]


@dataclass(frozen=True)
class FilesSource:
    """Files in a directory, read in the order of their names."""

    format: Format
    path: str
    max_files_per_trigger: int | None


@dataclass(frozen=True)
class KafkaSource:
    """Topics of Kafka.

    Attributes:
        format: of a record's value: ``json``, ``csv`` (the attributes in the schema's order, but those in `columns`), or
            ``columns``: no attribute comes from inside the value.
        servers: ``host:port``, several with commas; may hold ``${env:NAME}``.
        topics: at least one.
        starting_offsets: where a new checkpoint begins.
        max_offsets_per_trigger: most records of a batch.
        columns: (attribute, column of the Kafka record: ``key``, ``value``, ``topic``, ``partition``, ``offset``, ``timestamp``
            or ``headers.NAME``).
        options: Spark's and, with ``kafka.`` before them, Kafka's own; values may hold ``${env:NAME}``.
    """

    format: KafkaFormat
    servers: str
    topics: tuple[str, ...]
    starting_offsets: Literal["earliest", "latest"]
    max_offsets_per_trigger: int | None
    columns: tuple[tuple[str, str], ...]
    options: dict[str, str]


@dataclass(frozen=True)
class Events:
    """What events look like (as the rules see them too) and how the job treats them.

    Attributes:
        schema: the attributes.
        order: how the stream is put in order.
        source_column: the attribute that names an event's source for `ordering: sources`; None: its Kafka partition.
        heartbeat: what holds for records that tell the time of their source and are no events.
        on_bad_record: what becomes of a record that is no event.
        on_operator_error: what becomes of a selection that a Python operator fails on.
        operator_timeout_us: how long a Python operator may work on one selection.
    """

    schema: EventSchema
    order: OrderSpec = field(default_factory=OrderSpec)
    source_column: str | None = None
    heartbeat: Expr | None = None
    on_bad_record: OnBad = "quarantine"
    on_operator_error: OnBad = "quarantine"
    operator_timeout_us: int = OPERATOR_TIMEOUT_US


@dataclass(frozen=True)
class JobSpec:
    """A checked job file. Its paths are absolute."""

    name: str
    source: FilesSource | KafkaSource
    events: Events
    rules: tuple[Rule, ...]
    sink_path: str
    checkpoint_path: str
    trigger_us: int | Literal["available_now"]
    finish: bool
    operators: tuple[str, ...]  # modules whose functions `operator:` may name
    slots: int | None  # None: as many as Spark has cores
    buckets: int | None
    lanes: int | Literal["auto"]
    spark: dict[str, str]  # values may hold ``${env:NAME}``

    @property
    def files(self) -> FilesSource:
        """The source of a job that reads files."""
        assert isinstance(self.source, FilesSource)
        return self.source
