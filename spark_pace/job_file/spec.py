"""The content of a job file, as dataclasses, each field beside the key that fills it.

`event_settings` never change while a checkpoint lives, because the state of every rule depends on them. The
source that a checkpoint belongs to is checked in `spark_pace.spark.start`.

`planned_settings` are the settings with which a batch is planned: all that its result depends on, besides
rules and checkpoint. They may change between two batches. A batch that was planned and not finished runs
again with the settings of its plan, because its state and some of its tables may be written already.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from spark_pace.core.expr.canonical_text import from_stored, to_stored
from spark_pace.core.plan.lower_rules import over_input
from spark_pace.core.plan.plan import MOST_BAD_RECORDS
from spark_pace.core.plan.rule import EventSchema, Field, RecordForm, Rule, SideTable
from spark_pace.io.files.addresses import OF_SPARK, AnyPath
from spark_pace.job_file.alerts import AlertTarget
from spark_pace.job_file.events import Events
from spark_pace.job_file.keys import (
    SINKS,
    Kind,
    checkpoint_at,
    duration,
    either,
    flag,
    key,
    matching,
    mistaken,
    one_of,
    place,
    section_of,
    settings,
    text,
    texts,
    whole,
)
from spark_pace.job_file.pace import Admission
from spark_pace.job_file.rule_sources import EXAMPLE as EXAMPLE_OF_RULES
from spark_pace.job_file.secrets import Secrets
from spark_pace.job_file.source import EXAMPLE, ISOLATION, FilesSource, KafkaSource, Source

HEALTHY_WITHIN_US = 300 * 1_000_000  # of a batch; what ends an unhealthy job makes it do that batch again
_NUMBER = whole(8, 1, 10_000)
_is_of_spark = matching(r"spark\.(?s:.*)", 'must be a setting that begins with "spark."', "Correct the name.")
_OF_ORDER = ("delay_us", "idle_after_us", "expected_sources")  # of these a batch's result depends


@dataclass(frozen=True)
class _Sink:
    kind: str = key(one_of(("delta",)))
    path: str = key(place("out", SINKS, mistaken))


@dataclass(frozen=True)
class Endpoint:
    """Where a job answers by HTTP: its counters to Prometheus, or its page to people."""

    port: int = key(whole(9464, 1, 65_535))
    host: str = key(text("127.0.0.1"), "127.0.0.1")


@dataclass(frozen=True)
class Page(Endpoint):
    """The page of a running job: where it is, and for how long a batch of a healthy job may be under way."""

    port: int = key(whole(4050, 1, 65_535))
    healthy_within_us: int = key(duration("5 min", least=1), HEALTHY_WITHIN_US)


@dataclass(frozen=True)
class Parallelism:
    """How much of a job runs at once.

    Attributes:
        slots: how many splitters; None: as many as Spark has cores.
        buckets: of the keys of a rule; None: as many as slots.
        lanes: of a splitter's work.
        latency_bound_us: the time that operators may take for a lane; None: any.
    """

    slots: int | None = key(_NUMBER, None)
    buckets: int | None = key(_NUMBER, None)
    lanes: int | Literal["auto"] = key(either("auto", _NUMBER), "auto")
    latency_bound_us: int | None = key(duration("2 s", least=1), None)


@dataclass(frozen=True)
class JobSpec:
    """A checked job file. Its paths are absolute."""

    name: str = key(text("my_job"))
    source: Source = key(Kind(EXAMPLE))
    rules: tuple[Rule, ...] = key(Kind(EXAMPLE_OF_RULES))
    sink_path: str = key(
        section_of(_Sink, "{kind: delta, path: out}").to(lambda sink: sink.path), name="sink"
    )
    checkpoint_path: str = key(place("out/_checkpoint"), name="checkpoint")
    events: Events = key(Kind())
    trigger_us: int | Literal["available_now"] = key(
        either("available_now", duration("2 s", before="available_now, or ")), "available_now", "trigger"
    )
    finish: bool = key(flag(), False)
    admission: Admission | Literal["off"] = key(
        either("off", section_of(Admission, "{batch_seconds: 5 s, warm_up: 5, max_deviation: 0.25}, or off")),
        Admission(),
    )
    # modules whose functions `operator:` may name
    operators: tuple[str, ...] = key(texts("[my_rules]"), ())
    parallelism: Parallelism = key(
        section_of(Parallelism, "{slots: 4, buckets: 8, lanes: auto}"), Parallelism()
    )
    # settings of Spark; values may hold ``${env:NAME}``
    spark: dict[str, str] = key(settings("{spark.driver.memory: 4g}", _is_of_spark), dict)
    # where Prometheus finds the job's counters; None: nowhere
    metrics: Endpoint | None = key(section_of(Endpoint, "{port: 9464}"), None)
    # what shows the running job to people; None: nothing
    page: Page | None = key(section_of(Page, "{port: 4050}"), None)
    rules_refresh_us: int | None = key(duration("10 s", least=1), None)  # None: rules are not read anew
    alerts: tuple[AlertTarget, ...] = key(Kind(), ())  # who hears of new rows of the tables
    path: str = ""  # of the job file
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
    events, schema, source = spec.events, spec.events.schema, spec.source
    told: dict[str, Any] = {
        "schema": [(field.name, field.type) for field in schema.fields],
        "tie_break": schema.tie_break,
        **{name: getattr(events.order, name) for name in _OF_ORDER},
        "heartbeat": None if events.heartbeat is None else to_stored(events.heartbeat),
        "format": source.format,
        "side_tables": list(map(asdict, schema.side_tables)),
        "form": asdict(schema.form),
    }
    if isinstance(source, KafkaSource):
        told |= {"columns": source.columns, "isolation": source.options.get(ISOLATION)}
    return json.loads(json.dumps(told))  # type: ignore[no-any-return]


def as_planned(spec: JobSpec, settings: dict[str, Any]) -> JobSpec:
    """The job with the settings of a planned batch in place of its own; those of an older one may lack some.

    Raises:
        KeyError, TypeError: `settings` are not of `planned_settings`.
    """
    told = _tuples(settings)
    sides = (
        SideTable(**{**one, "columns": tuple(Field(**column) for column in one["columns"])})
        for one in told.get("side_tables", ())
    )
    schema: EventSchema = replace(
        spec.events.schema,
        fields=tuple(Field(*field) for field in told["schema"]),
        tie_break=told["tie_break"],
        side_tables=tuple(sides),
        form=RecordForm(**told.get("form", {})),
    )
    order = replace(spec.events.order, **{name: told[name] for name in _OF_ORDER})
    heartbeat = None if told["heartbeat"] is None else from_stored(settings["heartbeat"])
    events = replace(spec.events, schema=schema, order=order, heartbeat=heartbeat)
    source = spec.source
    if isinstance(source, FilesSource):
        source = replace(source, format=told["format"])
    elif isinstance(source, KafkaSource):
        level = told.get("isolation") or "read_uncommitted"  # the default before it was a setting
        options = {**source.options, ISOLATION: level}
        source = replace(source, format=told["format"], columns=told["columns"], options=options)
    return replace(spec, events=events, source=source, rules=over_input(spec.rules, schema))


def _tuples(value: Any) -> Any:
    """A value that JSON has, with tuples in place of lists."""
    if isinstance(value, dict):
        return {key: _tuples(one) for key, one in value.items()}
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
