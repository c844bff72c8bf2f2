"""A streaming job from its checked file to its end: `run_job`."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timezone
from functools import partial
from typing import TYPE_CHECKING, Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from spark_pace.core.plan.plan import Plan, build_plan
from spark_pace.core.plan.rule import Rule
from spark_pace.errors import EventError, counted
from spark_pace.io.delta_tables import DeltaTables, table_schemas
from spark_pace.io.files.files import join_appended
from spark_pace.io.metrics import BatchReport
from spark_pace.io.query import TABLES
from spark_pace.job_file import JobSpec, as_planned, planned_settings
from spark_pace.job_file.rules_on_disk import RulesOnDisk
from spark_pace.job_file.secrets import Secrets
from spark_pace.spark.checkpoint.batch_begin import read_begin
from spark_pace.spark.checkpoint.checkpoint import Checkpoint
from spark_pace.spark.checkpoint.claims import claim, mend_notes
from spark_pace.spark.checkpoint.files_note import FilesNote, remove_note, write_note
from spark_pace.spark.checkpoint.integrity import remove_leftovers, require_whole
from spark_pace.spark.checkpoint.layout import (
    Layout,
    read_layout,
    write_layout,
)
from spark_pace.spark.checkpoint.lock import checkpoint_lock
from spark_pace.spark.checkpoint.rule_changes import Change
from spark_pace.spark.internals import planned_offsets
from spark_pace.spark.java.jvm import held_by_jvm, survived_in_words
from spark_pace.spark.java.store_settings import require_store_jars, store_settings
from spark_pace.spark.pipeline import Trigger, split_rows, start
from spark_pace.spark.query_end import Stop, in_our_words, wait
from spark_pace.spark.session import job_session
from spark_pace.spark.sources.input import Input, Look, tie, waiting_for_all
from spark_pace.spark.sources.kinds import input_of
from spark_pace.spark.sources.throttle import Throttle, with_limits
from spark_pace.spark.stages.merger import MergerHost
from spark_pace.spark.stages.rule_history import RuleHistory
from spark_pace.spark.stages.side_table_copies import SideTables
from spark_pace.spark.start import known_change, new_change, require_accepted, require_known, sink_of
from spark_pace.spark.summary import Summary
from spark_pace.watching.answering import Heard, answering

if TYPE_CHECKING:  # only jobs that ask for alerts load what sends them
    from spark_pace.alerts.targets import Alerts
    from spark_pace.spark.checkpoint.lease import Lease

RunningQuery = tuple[StreamingQuery, MergerHost, bool]  # True: it only finishes the batch that was planned


def run_job(
    spec: JobSpec,
    *,
    on_progress: Callable[[BatchReport], None] = lambda _: None,
    reset_rules: Collection[str] = (),
    on_ready: Callable[[JobSpec], None] = lambda _: None,
    on_empty: Callable[[], None] = lambda: None,
) -> Summary:
    """Run a job until its input ends (`available_now`) or a signal stops it; the next run goes on from there.

    SIGINT and SIGTERM stop the query. A batch that one has interrupted is done again by the next run.

    Args:
        spec: the job.
        on_progress: called after each batch is written, in a thread of Spark's.
        reset_rules: names of rules whose state is dropped: they begin with the events read from now on.
        on_ready: called with the job, which may have other rules by then, when it begins to wait for events.
        on_empty: called at the start if no batch has read a file yet, and there is none.

    Raises:
        ConfigError: `reset_rules` names a rule that the job does not have.
        SetupError: Java, jars, the input or a port are not there for the job, or it runs already.
        StateError: the checkpoint does not fit the job, or its state is too large.
        EventError: a bad record, where the job says to stop at one; or all records of an ended input.
        OperatorError: an operator failed, where the job says to stop then.
        SparkPaceError: Spark stopped the query for another reason.
    """
    began = time.monotonic()
    summary = Summary({rule.name: 0 for rule in spec.rules})
    require_known(spec, reset_rules)
    secrets = Secrets()
    with secrets.kept(), _alerts(spec, secrets, summary) as alerts, answering(spec, alerts) as heard:
        told = replace(_told(heard, summary, on_progress, on_ready), empty=on_empty)
        summary.stopped_by = _run(spec, secrets, reset_rules, told, alerts)
    summary.seconds = time.monotonic() - began
    _require_events(spec, summary)
    return summary


def _told(
    heard: Heard,
    summary: Summary,
    on_progress: Callable[[BatchReport], None],
    on_ready: Callable[[JobSpec], None],
) -> Heard:
    """What hears of a run: the summary first, then who asks by HTTP, then who has called `run_job`."""

    def batch(report: BatchReport) -> None:
        summary.add(report)
        heard.batch(report)
        on_progress(report)

    def ready(spec: JobSpec) -> None:
        heard.ready(spec)
        on_ready(spec)

    return replace(heard, batch=batch, ready=ready)


@contextmanager
def _alerts(spec: JobSpec, secrets: Secrets, summary: Summary) -> Iterator[Alerts | None]:
    """The alerts of the job, None if it has no targets; the summary has their counts behind the block."""
    if not spec.alerts:
        yield None
        return
    from spark_pace.alerts.targets import Alerts

    alerts = Alerts(spec, secrets)
    yield alerts
    summary.alerts = alerts.counts


@contextmanager
def _sending(
    alerts: Alerts | None, checkpoint: Checkpoint, stop: Stop
) -> Iterator[Callable[[DeltaTables, str, Sequence[Rule]], None]]:
    """Let alerts be sent while the block runs, and at its end those that wait, if targets take them.

    Gives the function that begins, once the tables are there; called again, it tells of other rules.
    """
    if alerts is None:
        yield lambda *_: None
        return
    from spark_pace.alerts.targets import Queue

    def send_from(tables: DeltaTables, app_id: str, rules: Sequence[Rule]) -> None:
        begin = read_begin(checkpoint, checkpoint.next_batch())
        numbers = {} if begin is None else begin.out_seq
        is_new = read_layout(checkpoint) is None
        alerts.begin(Queue(tables.place, checkpoint.alert_cursor, app_id, numbers, is_new), rules)

    try:
        yield send_from
        alerts.wait(stop.event)
    finally:
        alerts.end()


def _require_events(spec: JobSpec, summary: Summary) -> None:
    """Raise `EventError` if the input has ended and every record of it was bad."""
    all_bad = 0 < summary.bad_records == summary.records
    if summary.finished and summary.has_all_batches and all_bad:
        got = f"{counted(summary.bad_records, 'bad record')} and no event"
        query = '"SELECT source, offset, reason FROM quarantine"'
        do = f"Ask for the reasons: spark-pace sql {spec.sink_path} {query}."
        raise EventError(f"{spec.name} — must find events in its source; got {got}. {do}")


def _run(
    spec: JobSpec,
    secrets: Secrets,
    reset_rules: Collection[str],
    heard: Heard,
    alerts: Alerts | None,
) -> signal.Signals | None:
    """Run every query of the job to its end, and return the signal that stopped it, if one did."""
    checkpoint = Checkpoint(spec.checkpoint_folder)
    inputs = partial(input_of, checkpoint=checkpoint, secrets=secrets)
    job_input, settings, stop = inputs(spec), secrets.resolve_all(spec.spark, "spark"), Stop()
    with checkpoint_lock(checkpoint) as lease:
        _hold(checkpoint, lease, stop)
        side_tables = SideTables(spec.events.schema, checkpoint, settings)
        side_tables.read()
        change = known_change(spec, job_input, reset_rules)
        with _session(spec, settings, job_input, stop, lease) as spark:
            change = change or new_change(spec, spark, checkpoint)
            spark.conf.set("spark.sql.shuffle.partitions", str(change.after.slots))  # one partition per slot
            marks = job_input.require_readable(spark)
            if job_input.lacks_files(spark):
                heard.empty()
            running = with_limits(waiting_for_all(spec, job_input, spark), spark)
            with stop.noted(), in_our_words(stop, checkpoint), job_input.watched(spark, marks) as look:
                host = _host(checkpoint, heard, spark, stop, look)
                accepted = partial(require_accepted, spark, job_input)
                on_disk = RulesOnDisk(running, spec, accepted, partial(_note, checkpoint, heard))
                with _sending(alerts, checkpoint, stop) as send_from:
                    while change is not None:
                        stop.require_held()
                        tables = _tables(on_disk.spec, spark, change.before, job_input, marks)
                        send_from(tables, change.before.app_id, on_disk.spec.rules)
                        merger_of = partial(host, tables=tables)
                        queries = _queries(on_disk.spec, spark, inputs, change, merger_of, side_tables)
                        _run_queries(queries, stop, on_disk, heard)
                        goes_on = on_disk.take() and not stop.event.is_set()
                        change = known_change(on_disk.spec, job_input, ()) if goes_on else None
    return stop.signal


def _host(
    checkpoint: Checkpoint, heard: Heard, spark: SparkSession, stop: Stop, look: Look
) -> Callable[..., MergerHost]:
    """What makes the writer of a query's batches, which goes on only while this job holds the checkpoint."""

    def claimed(batch_id: int) -> bytes:
        stop.require_held()
        return claim(checkpoint, batch_id, partial(planned_offsets, spark))

    return partial(
        MergerHost,
        checkpoint=checkpoint,
        on_report=heard.batch,
        look=look,
        require_held=stop.require_held,
        claim_batch=claimed,
    )


def _hold(checkpoint: Checkpoint, lease: Lease | None, stop: Stop) -> None:
    """Begin to use a checkpoint, whose lease, if it is in a store, is asked for again and again."""
    if lease is not None:
        stop.require_held, stop.require_not_lost = lease.require, lease.require_not_lost
    mend_notes(checkpoint)
    join_appended(checkpoint.manifest_file)
    remove_note(checkpoint)


@contextmanager
def _session(
    spec: JobSpec, settings: dict[str, str], job_input: Input, stop: Stop, lease: Lease | None
) -> Iterator[SparkSession]:
    """Give a session of Spark whose JVM holds the checkpoint; `settings` are those of the job, resolved."""
    place = job_input.checkpoint.path
    plain, secret = store_settings(place, settings)
    every, written = {**plain, **secret, **settings}, {**plain, **dict.fromkeys(secret, ""), **spec.spark}
    with (
        survived_in_words(stop.event.is_set),
        job_session(spec.name, every, written, quick=not job_input.reads_in_jvm) as spark,
        held_by_jvm(spark, job_input.checkpoint, lease),
    ):
        require_store_jars(spark, place)
        yield spark


def _note(checkpoint: Checkpoint, heard: Heard, rules: str, keys: tuple[str, ...]) -> None:
    """Keep and count in what the files differ from what runs, so that others than the log can tell it."""
    heard.differ(bool(rules))
    if rules or keys:
        write_note(checkpoint, FilesNote(rules, keys, f"{datetime.now(timezone.utc):%Y-%m-%d %H:%M:%SZ}"))
    else:
        remove_note(checkpoint)


def _run_queries(queries: Iterator[RunningQuery], stop: Stop, on_disk: RulesOnDisk, heard: Heard) -> None:
    """Run the queries to their end, or until a signal or other rules stop one; `heard.ready` hears of each.

    Other rules wait for the end of an unfinished batch, so that many changes do not keep it from being done.
    """
    for query, merger, unfinished in queries:
        if not unfinished:
            heard.ready(on_disk.spec)
        wait(query, merger, stop, heard.works, (lambda: False) if unfinished else on_disk.changed)
        if stop.event.is_set() or on_disk.changed():
            break


def _tables(
    spec: JobSpec, spark: SparkSession, layout: Layout, job_input: Input, marks: Mapping[str, Any]
) -> DeltaTables:
    """Check that checkpoint and tables are whole, tie the checkpoint to the source, and return the tables."""
    tables = DeltaTables(sink_of(spec, spark), layout.app_id)
    written = tables.written(TABLES)
    checkpoint = job_input.checkpoint
    require_whole(checkpoint, written, TABLES, layout.number)
    remove_leftovers(checkpoint)
    tie(job_input, marks)
    tables.prepare(table_schemas(spec.rules))
    return tables


def _queries(
    spec: JobSpec,
    spark: SparkSession,
    inputs: Callable[[JobSpec], Input],
    change: Change,
    merger_of: Callable[..., MergerHost],
    side_tables: SideTables,
) -> Iterator[RunningQuery]:
    """Start the queries of a run one after the other, and yield each with its merger.

    If rules or settings have changed, the first query finishes the batch that was planned before the change.
    """
    cores = spark.sparkContext.defaultParallelism
    for layout, unfinished in change.layouts(planned_settings(spec)):
        job = as_planned(spec, layout.planned) if unfinished else spec
        trigger: Trigger = "unfinished" if unfinished else spec.trigger_us
        plan, job_input = _plan(job, layout, cores), inputs(job)
        checkpoint = job_input.checkpoint
        layout = write_layout(checkpoint, layout)
        for end in (False,) if unfinished else job_input.ends:
            events = job_input.rows(spark, plan, end)
            rows = split_rows(events, plan, layout.keys, cores, checkpoint.chunks(), layout.app_id)
            sides = side_tables if plan.schema == side_tables.schema else None
            history = RuleHistory(layout.rules, spec.paused)
            more = {"side_tables": sides, "history": history, "layout": layout.number}
            merger = merger_of(plan, late_in=job_input.late_in, **more)
            query = start(rows, merger, trigger, spec.name)
            if job.admission is not None and not unfinished:
                every = 0.0 if job.trigger_us == "available_now" else job.trigger_us / 1e6
                merger.on_report = Throttle(job.admission.every(every), job_input, query, merger)
            yield query, merger, unfinished


def _plan(spec: JobSpec, layout: Layout, cores: int) -> Plan:
    events = spec.events
    return build_plan(
        spec.rules,
        order=events.order,
        source_column=events.source_column,
        heartbeat=events.heartbeat,
        slots=layout.slots,
        buckets=layout.buckets,
        lanes=cores if spec.lanes == "auto" else spec.lanes,
        latency_bound_us=spec.latency_bound_us,
        on_operator_error=events.on_operator_error,
        operator_timeout_us=events.operator_timeout_us,
        places=layout.places,
    )
