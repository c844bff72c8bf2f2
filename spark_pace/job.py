"""A streaming job from its checked file to its end: `run_job`."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from spark_pace.core.operate.python_operator import load_operator
from spark_pace.core.plan.plan import Plan, build_plan
from spark_pace.errors import ConfigError, SparkPaceError
from spark_pace.io.delta import DeltaTables
from spark_pace.io.metrics import BatchReport, Counts
from spark_pace.io.query import TABLES
from spark_pace.job_file import JobSpec, as_planned, planned_settings
from spark_pace.job_file.paths import local_path
from spark_pace.job_file.secrets import Secrets
from spark_pace.spark.checkpoint.layout import Layout, new_layout, read_layout
from spark_pace.spark.checkpoint.lock import checkpoint_lock
from spark_pace.spark.checkpoint.rule_changes import Change, change_of, require_same
from spark_pace.spark.checkpoint.whole import remove_leftovers, require_whole
from spark_pace.spark.failures import as_our_error, is_of_spark
from spark_pace.spark.java.jvm import held_by_jvm, hush_updates, is_ending, is_gone, survived_in_words
from spark_pace.spark.pipeline import match_rows, start
from spark_pace.spark.session import build_session
from spark_pace.spark.sources.input import Input, input_of, require_same_source, tie
from spark_pace.spark.stages.merger import MergerHost, table_schemas

Progress = BatchReport
_POLL_SECONDS = 1


@dataclass
class Summary(Counts):
    """What one run of a job did; an earlier run on the same checkpoint is not counted.

    Attributes:
        matches: of each rule; 0 where it found none.
        batches: how many were written.
        seconds: from the call to the end.
        still_open: selections open at the end.
        finished: the end of the input was reached and everything decided.
        stopped_by: the signal that stopped the job, if one did.
    """

    matches: dict[str, int]
    batches: int = 0
    seconds: float = 0.0
    still_open: int = 0
    finished: bool = False
    stopped_by: signal.Signals | None = None

    def add(self, report: BatchReport) -> None:
        """Count a batch."""
        self.add_counts(report)
        for rule, count in report.matches.items():
            self.matches[rule] += count
        self.batches += 1
        self.still_open = report.open
        self.finished = report.finished


@dataclass
class _Stop:
    event: threading.Event = field(default_factory=threading.Event)
    signal: signal.Signals | None = None

    @property
    def ended_spark(self) -> bool:
        """Whether the signal has gone to all processes of the job, as that of a service manager does: then calls to Spark fail."""
        return self.event.is_set() and is_ending()


def run_job(
    spec: JobSpec, *, on_progress: Callable[[Progress], None] | None = None, reset_rules: Collection[str] = ()
) -> Summary:
    """Run a job until its input ends (`available_now`) or a signal stops it; the same job again goes on from there.

    SIGINT and SIGTERM stop the query; a batch in the middle of which that happens is done again by the next run.

    Args:
        spec: the job.
        on_progress: called after each batch is written, in a thread of Spark's.
        reset_rules: names of rules whose state is dropped: they begin with the events read from now on.

    Raises:
        ConfigError: `reset_rules` names a rule that the job does not have.
        SetupError: Java, jars or the input are missing, or another process runs the job.
        StateError: the checkpoint does not fit the job, or its state is too large.
        EventError: a bad record, where the job says to stop at one.
        OperatorError: an operator failed, where the job says to stop then.
        SparkPaceError: Spark stopped the query for another reason.
    """
    began = time.monotonic()
    summary = Summary({rule.name: 0 for rule in spec.rules})
    secrets = Secrets()

    def report(batch: BatchReport) -> None:
        summary.add(batch)
        if on_progress:
            on_progress(batch)

    _require_rules(summary.matches, reset_rules)
    for rule in spec.rules:
        if rule.operator is not None:
            load_operator(rule.operator)
    with secrets.kept():
        summary.stopped_by = _run(spec, secrets, reset_rules, report)
    summary.seconds = time.monotonic() - began
    return summary


def _require_rules(known: Collection[str], reset_rules: Collection[str]) -> None:
    for name in reset_rules:
        if name not in known:
            choice = f"Choose from {', '.join(known)}."
            raise ConfigError.of("--reset-rule", "must name a rule of the job", name, choice)


def _run(
    spec: JobSpec, secrets: Secrets, reset_rules: Collection[str], report: Callable[[BatchReport], None]
) -> signal.Signals | None:
    """Every query of the run, to its end; the signal that stopped it, if one did."""
    checkpoint = local_path(spec.checkpoint_path, "checkpoint")
    sources = partial(input_of, checkpoint=checkpoint, secrets=secrets)
    source = sources(spec)
    settings = secrets.resolve_all(spec.spark, "spark")
    stop = _Stop()
    with checkpoint_lock(checkpoint):
        require_same_source(source)
        stored = _stored_layout(spec, checkpoint)
        change = (
            None if stored is None else change_of(checkpoint, stored, spec.rules, reset_rules)
        )  # refuse before Spark starts
        with (
            survived_in_words(stop.event.is_set),
            _session(spec, settings) as spark,
            held_by_jvm(spark, checkpoint),
        ):
            change = change or change_of(checkpoint, _first_layout(spec, spark), spec.rules, ())
            for key, value in settings.items():
                if spark.conf.isModifiable(key):
                    spark.conf.set(key, value)
            spark.conf.set("spark.sql.shuffle.partitions", str(change.before.slots))  # one partition per slot
            source.require_readable(spark)
            spec = _waiting_for(spec, source, spark)
            with _noted(stop):
                _in_words(lambda: _run_queries(spec, spark, sources, change, report, stop), stop)
    return stop.signal


def _run_queries(
    spec: JobSpec,
    spark: SparkSession,
    sources: Callable[[JobSpec], Input],
    change: Change,
    report: Callable[[BatchReport], None],
    stop: _Stop,
) -> None:
    cores = spark.sparkContext.defaultParallelism
    tables = DeltaTables(
        spark,
        spec.sink_path if "://" in spec.sink_path else os.path.abspath(spec.sink_path),
        change.before.app_id,
    )
    schemas = table_schemas(_plan(spec, change.after, cores))
    require_whole(change.checkpoint, tables.written(TABLES), TABLES)
    remove_leftovers(change.checkpoint)
    tie(sources(spec))
    tables.prepare(schemas)
    for layout, unfinished in change.layouts(planned_settings(spec)):
        job = as_planned(spec, layout.planned) if unfinished and layout.planned else spec
        plan, source = _plan(job, layout, cores), sources(job)
        for end in (False,) if unfinished else source.ends:
            rows = match_rows(source.rows(spark, plan, end), plan, layout.keys, cores)
            merger = MergerHost(plan, tables, change.checkpoint / "sequence", report)
            _wait(
                start(
                    rows,
                    merger,
                    change.checkpoint,
                    "unfinished" if unfinished else spec.trigger_us,
                    spec.name,
                ),
                merger,
                stop,
            )
            if stop.event.is_set():
                return


def _waiting_for(spec: JobSpec, source: Input, spark: SparkSession) -> JobSpec:
    """The job that waits for all sources that are known, if it orders by them and does not say which."""
    order = spec.events.order
    if not order.by_source or order.expected_sources or spec.events.source_column is not None:
        return spec
    order = replace(order, expected_sources=source.expected_sources(spark))
    return replace(spec, events=replace(spec.events, order=order))


def _stored_layout(spec: JobSpec, checkpoint: Path) -> Layout | None:
    """The layout of the checkpoint. What it fixes besides the rules must be as the job has it: the state of every rule rests on that."""
    stored = read_layout(checkpoint)
    if stored is not None:
        require_same("events", stored.events, event_settings(spec))
        given = {"slots": spec.slots or stored.slots, "buckets": spec.buckets or stored.buckets}
        require_same("parallelism", {"slots": stored.slots, "buckets": stored.buckets}, given)
    return stored


def _first_layout(spec: JobSpec, spark: SparkSession) -> Layout:
    buckets = spec.buckets or spark.sparkContext.defaultParallelism
    units = sum(buckets if rule.partition_by else 1 for rule in spec.rules)
    return new_layout(spark, units, spec.slots, buckets, event_settings(spec))


def event_settings(spec: JobSpec) -> dict[str, str]:
    """What the state of every rule rests on of the job's settings for events, as text, by their names."""
    schema, order = spec.events.schema, spec.events.order
    types = {field.name: field.type for field in schema.fields}
    return {
        "event_time": f"{schema.event_time} in {schema.time_unit}" if schema.time_unit else schema.event_time,
        "ordering": "sources" if order.by_source else "watermark",
        "source_column": spec.events.source_column or "none",
        "deduplicate_on": ", ".join(f"{name} {types[name]}" for name in order.deduplicate_on) or "none",
    }


@contextmanager
def _session(spec: JobSpec, settings: dict[str, str]) -> Iterator[SparkSession]:
    """A session whose settings are this job's alone; Spark itself is stopped only if it was started here."""
    running = SparkSession.getActiveSession() is not None
    secret = {key: value for key, value in settings.items() if value != spec.spark[key]}
    spark = build_session(
        spec.name, {key: value for key, value in settings.items() if key not in secret}, secret=secret
    )
    hush_updates(spark)
    try:
        yield spark.newSession()
    finally:
        if not running:
            spark.stop()


def _plan(spec: JobSpec, layout: Layout, cores: int) -> Plan:
    return build_plan(
        spec.rules,
        order=spec.events.order,
        source_column=spec.events.source_column,
        heartbeat=spec.events.heartbeat,
        slots=layout.slots,
        buckets=layout.buckets,
        lanes=cores if spec.lanes == "auto" else spec.lanes,
        on_operator_error=spec.events.on_operator_error,
        operator_timeout_us=spec.events.operator_timeout_us,
        places=layout.places,
    )


def _in_words(run: Callable[[], None], stop: _Stop) -> None:
    try:
        run()
    except Exception as error:
        if isinstance(error, SparkPaceError) or is_gone(error):
            raise
        if not (is_of_spark(error) and stop.ended_spark):
            raise as_our_error(error) from error


def _wait(query: StreamingQuery, merger: MergerHost, stop: _Stop) -> None:
    """Wait for the end of the query, or end it when a signal says so; what fails before that, or meanwhile, is raised."""
    try:
        while not stop.event.is_set() and not query.awaitTermination(_POLL_SECONDS):
            pass
        if failure := query.exception():
            raise failure
    except Exception as error:
        if not stop.ended_spark:
            raise error if is_gone(error) else as_our_error(error, merger.failure) from error
    finally:
        try:
            query.stop()
        except Exception:
            if not stop.ended_spark:
                raise
        finally:
            merger.close()
    if merger.failure is not None and not is_of_spark(merger.failure):
        raise as_our_error(merger.failure)  # what the stop itself lets fail are calls to Spark


@contextmanager
def _noted(stop: _Stop) -> Iterator[None]:
    """Note SIGINT and SIGTERM while inside. A handler may interrupt a call to the JVM, so it must not make one."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may set handlers
        return

    def note(number: int, _frame: object) -> None:
        stop.signal = signal.Signals(number)
        stop.event.set()

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
