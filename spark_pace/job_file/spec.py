"""The content of a checked job file, as dataclasses."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

from spark_pace.core.expr import Expr
from spark_pace.core.order.order import OrderSpec
from spark_pace.core.plan.plan import MOST_BAD_RECORDS, OPERATOR_TIMEOUT_US, OnBad
from spark_pace.core.plan.rule import EventSchema, Rule
from spark_pace.errors import SetupError
from spark_pace.io.files.store_path import AnyPath
from spark_pace.io.files.store_settings import OF_SPARK
from spark_pace.job_file.alert_targets import AlertTarget
from spark_pace.job_file.checkpoint_place import checkpoint_at
from spark_pace.job_file.pace import Admission
from spark_pace.job_file.paths import in_store, local_path
from spark_pace.job_file.secrets import Secrets

ISOLATION = "kafka.isolation.level"  # the option that says whether records of aborted transactions are read
HEALTHY_WITHIN_US = 300 * 1_000_000  # of a batch; what ends an unhealthy job makes it do that batch again

Format = Literal["json", "csv", "text", "parquet"]
KafkaFormat = Literal["json", "csv", "text", "columns"]


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

    format: Format
    path: str
    max_files_per_trigger: int | None
    max_bad_records_per_file: int = MOST_BAD_RECORDS

    names_sources: ClassVar[bool] = False  # True if an event's position names its source

    @property
    def told(self) -> str:
        """What events are waited for in, for people."""
        return self.path

    def resolved(self, secrets: Secrets) -> FilesSource:
        """Return this source with its absolute path on this machine, or with its address.

        Raises:
            SetupError: it is a path, and nothing is there.
        """
        if in_store(self.path):
            return self
        path = local_path(self.path, "source.path")
        if not path.exists():
            must, got = "must be a file or a directory of events", "nothing there"
            raise SetupError(f"{path} — {must}; got {got}. Put the events there, or correct source.path.")
        return replace(self, path=str(path))

    def planned(self) -> dict[str, Any]:
        """The settings that the result of a batch rests on, as JSON has them."""
        return {"format": self.format, "columns": []}

    def as_planned(self, settings: dict[str, Any]) -> FilesSource:
        """Return this source with the settings that `planned` gave."""
        return replace(self, format=settings["format"])


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

    format: KafkaFormat
    servers: str
    topics: tuple[str, ...]
    starting_offsets: Literal["earliest", "latest"]
    max_offsets_per_trigger: int | None
    columns: tuple[tuple[str, str], ...]
    options: dict[str, str]

    names_sources: ClassVar[bool] = True

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

    def planned(self) -> dict[str, Any]:
        """The settings that the result of a batch rests on, as JSON has them."""
        columns = [list(column) for column in self.columns]
        return {"format": self.format, "columns": columns, "isolation": self.options.get(ISOLATION)}

    def as_planned(self, settings: dict[str, Any]) -> KafkaSource:
        """Return this source with the settings that `planned` gave."""
        columns = tuple((attribute, column) for attribute, column in settings["columns"])
        level = settings.get("isolation") or "read_uncommitted"  # the default before it was a setting
        options = {**self.options, ISOLATION: level}
        return replace(self, format=settings["format"], columns=columns, options=options)


@dataclass(frozen=True)
class DeltaSource:
    """A Delta table to which others append, read file by file in the order of its commits.

    Attributes:
        path: of the table.
        from_version: the first commit that a new checkpoint reads; None: it begins with all rows there are.
        max_files_per_trigger: the most files of a batch; None: all that are there.
        max_bad_records_per_file: as of `FilesSource`.
    """

    path: str
    from_version: int | None
    max_files_per_trigger: int | None
    max_bad_records_per_file: int = MOST_BAD_RECORDS

    names_sources: ClassVar[bool] = False
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
        if in_store(self.path):
            return self
        path = local_path(self.path, "source.path")
        if not (path / "_delta_log").is_dir():
            got = "a folder without _delta_log" if path.is_dir() else "nothing there"
            do = "Start what writes it first, or correct source.path."
            raise SetupError(f"{path} — must be a Delta table; got {got}. {do}")
        return replace(self, path=str(path))

    def planned(self) -> dict[str, Any]:
        """The settings that the result of a batch rests on, as JSON has them."""
        return {"format": self.format, "columns": []}

    def as_planned(self, settings: dict[str, Any]) -> DeltaSource:
        """Return this source: none of its settings that may change decides a result."""
        return self


Source = FilesSource | KafkaSource | DeltaSource


@dataclass(frozen=True)
class Clock:
    """A clock that moves the frontier where nothing comes.

    Attributes:
        every_us: how often it ticks.
        slack_us: how long an event may take to come: a tick says that nothing is waited for which is earlier
            than the clock by more than this.
    """

    every_us: int
    slack_us: int


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
    source_column: str | None = None
    heartbeat: Expr | None = None
    on_bad_record: OnBad = "quarantine"
    on_operator_error: OnBad = "quarantine"
    operator_timeout_us: int = OPERATOR_TIMEOUT_US
    clock: Clock | None = None

    @property
    def stream(self) -> dict[str, Any]:
        """The settings that decide the events of the stream and their order, as arguments of `build_plan`."""
        return {
            "order": self.order,
            "source_column": self.source_column,
            "heartbeat": self.heartbeat,
        }


@dataclass(frozen=True)
class Endpoint:
    """Where a job answers by HTTP: its counters to Prometheus, or its page to people."""

    port: int
    host: str = "127.0.0.1"


@dataclass(frozen=True)
class Page:
    """The page of a running job: where it is, and for how long a batch of a healthy job may be under way."""

    at: Endpoint
    healthy_within_us: int = HEALTHY_WITHIN_US


@dataclass(frozen=True)
class JobSpec:
    """A checked job file. Its paths are absolute."""

    name: str
    source: Source
    events: Events
    rules: tuple[Rule, ...]
    sink_path: str
    checkpoint_path: str
    trigger_us: int | Literal["available_now"]
    finish: bool
    admission: Admission | None  # None: off
    operators: tuple[str, ...]  # modules whose functions `operator:` may name
    slots: int | None  # None: as many as Spark has cores
    buckets: int | None  # None: likewise
    lanes: int | Literal["auto"]
    spark: dict[str, str]  # settings of Spark; values may hold ``${env:NAME}``
    latency_bound_us: int | None = None  # the time operators may take for a lane; None: any
    metrics: Endpoint | None = None  # where Prometheus finds the job's counters; None: nowhere
    page: Page | None = None  # what shows the running job to people; None: nothing
    path: str = ""  # of the job file
    rules_refresh_us: int | None = None  # how often rules are read anew; None: they are not
    alerts: tuple[AlertTarget, ...] = ()  # who hears of new rows of the tables
    paused: tuple[str, ...] = ()  # names of the rules that do not run

    @property
    def checkpoint_folder(self) -> AnyPath:
        """The folder of the checkpoint on this machine, or its prefix in a store.

        Raises:
            SetupError: a variable of the environment that the job's settings name is missing.
        """
        return checkpoint_at(self.checkpoint_path, self.spark)

    def access(self, *addresses: object) -> dict[str, str]:
        """The settings of Spark by which stores are reached; none where no address is one.

        Args:
            addresses: those that are to be reached beside the side tables of events.

        Raises:
            SetupError: a variable of the environment that the settings name is missing.
        """
        sides = (side.path for side in self.events.schema.side_tables)
        if not any("://" in str(one) for one in (*addresses, *sides)):
            return {}
        named = {key: text for key, text in self.spark.items() if key.startswith(OF_SPARK)}
        return Secrets().resolve_all(named, "spark")

    @property
    def reading(self) -> dict[str, Any]:
        """The settings that decide the result of a replay, as arguments of `replay_files`.

        A message of Kafka has no file, so as many bad ones are told as with a rule file.
        """
        source = self.source
        most_bad = MOST_BAD_RECORDS if isinstance(source, KafkaSource) else source.max_bad_records_per_file
        return {**self.events.stream, "most_bad": most_bad}

    @property
    def files(self) -> FilesSource:
        """The source of a job that reads files."""
        assert isinstance(self.source, FilesSource)
        return self.source
