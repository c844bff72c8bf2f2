"""A streaming job from its checked file to its end: `run_job`."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import datetime, timezone
from functools import partial
from typing import TYPE_CHECKING

from spark_pace.errors import EventError, counted, shown_time
from spark_pace.io.delta_tables import DeltaTables
from spark_pace.io.files.files import join_appended
from spark_pace.io.metrics import BatchReport
from spark_pace.job_file import JobSpec
from spark_pace.job_file.reader import RulesOnDisk
from spark_pace.job_file.secrets import Secrets
from spark_pace.spark.checkpoint.checkpoint import Checkpoint, FilesNote, remove_note, write_note
from spark_pace.spark.checkpoint.layout import Layout
from spark_pace.spark.checkpoint.lock import checkpoint_lock, mend_notes
from spark_pace.spark.queries import Run, Stop, in_our_words, with_limits
from spark_pace.spark.session import held_session
from spark_pace.spark.sources.input import waiting_for_all
from spark_pace.spark.stages.side_table_copies import SideTables
from spark_pace.spark.start import (
    input_of,
    known_change,
    new_change,
    require_accepted,
    require_known,
    whole_tables,
)
from spark_pace.spark.summary import Listener, Summary
from spark_pace.watching.answering import answering

if TYPE_CHECKING:  # what looks at jobs alone does not load what sends alerts
    from spark_pace.alerts.targets import Alerts


def run_job(
    spec: JobSpec,
    *,
    on_progress: Callable[[BatchReport], None] = lambda _: None,
    reset_rules: Collection[str] = (),
    heard: Sequence[Listener] = (),
) -> Summary:
    """Run a job until its input ends (`available_now`) or a signal stops it; the next run goes on from there.

    SIGINT and SIGTERM stop the query. A batch that one has interrupted is done again by the next run.

    Args:
        spec: the job.
        on_progress: called after each batch is written, in a thread of Spark's.
        reset_rules: names of rules whose state is dropped: they begin with the events read from now on.
        heard: who else hears of the run.

    Raises:
        ConfigError: `reset_rules` names a rule that the job does not have.
        SetupError: Java, jars, the input or a port are not there for the job, or it runs already.
        StateError: the checkpoint does not fit the job, or its state is too large.
        EventError: a bad record, where the job says to stop at one; or all records of an ended input.
        OperatorError: an operator failed, where the job says to stop then.
        SparkPaceError: Spark stopped the query for another reason.
    """
    from spark_pace.alerts.targets import Alerts

    began = time.monotonic()
    summary = Summary({rule.name: 0 for rule in spec.rules})
    require_known(spec, reset_rules)
    secrets = Secrets()
    with secrets.kept():
        alerts = Alerts(spec, secrets)
        with answering(spec, lambda: alerts.counts) as answers:
            all_heard = [Listener(summary.add), answers, Listener(alerts.look), Listener(on_progress), *heard]
            summary.stopped_by = _run(spec, secrets, reset_rules, Listener.of(all_heard), alerts)
    summary.alerts = alerts.counts
    summary.seconds = time.monotonic() - began
    _require_events(spec, summary)
    return summary


def _run(
    spec: JobSpec, secrets: Secrets, reset_rules: Collection[str], heard: Listener, alerts: Alerts
) -> signal.Signals | None:
    """Run every query of the job to its end, and return the signal that stopped it, if one did."""
    checkpoint, stop = Checkpoint(spec.checkpoint_folder), Stop()
    inputs = partial(input_of, checkpoint=checkpoint, secrets=secrets)
    job_input, settings = inputs(spec), secrets.resolve_all(spec.spark, "spark")
    with checkpoint_lock(checkpoint) as stop.lease:
        mend_notes(checkpoint)
        join_appended(checkpoint.manifest_file)
        remove_note(checkpoint)
        side_tables = SideTables(spec.events.schema, checkpoint, settings)
        side_tables.read()
        change = known_change(spec, job_input, reset_rules)
        session = held_session(spec, settings, job_input, stop.lease)
        with in_our_words(stop, checkpoint), session as spark, ExitStack() as stack:
            change = change or new_change(spec, spark, checkpoint)
            spark.conf.set("spark.sql.shuffle.partitions", str(change.after.slots))  # one partition per slot
            marks, sources = job_input.require_readable(spark)
            if job_input.lacks_files(spark):
                heard.empty()
            running = with_limits(waiting_for_all(spec, sources), spark)
            stack.enter_context(stop.noted())
            look = stack.enter_context(job_input.watched(spark, marks))
            stack.enter_context(_sending(alerts, stop))
            accepted = partial(require_accepted, spark, checkpoint)
            on_disk = RulesOnDisk(running, spec, accepted, partial(_note, checkpoint, heard))
            run = Run(spark, on_disk, inputs, checkpoint, stop, heard, look, side_tables)
            while change is not None:
                stop.require_held()
                tables = whole_tables(on_disk.spec, spark, change.before, job_input, marks)
                _begin_sending(alerts, checkpoint, tables, change.before, on_disk.spec)
                run.take_over(change, tables)
                goes_on = on_disk.take() and not stop.event.is_set()
                change = known_change(on_disk.spec, job_input, ()) if goes_on else None
    return stop.signal


@contextmanager
def _sending(alerts: Alerts, stop: Stop) -> Iterator[None]:
    """Send no more alerts behind the block; at its end those that wait are sent, if targets take them."""
    try:
        yield
        alerts.wait(stop.event)
    finally:
        alerts.end()


def _begin_sending(
    alerts: Alerts, checkpoint: Checkpoint, tables: DeltaTables, layout: Layout, spec: JobSpec
) -> None:
    """Send alerts from now on; called again, it tells of other rules. The tables must be there."""
    from spark_pace.alerts.queue import Queue

    alerts.know(spec.rules)
    if spec.alerts and not alerts.counts:
        is_new = layout.number == 0  # it was never written
        done = tables.last_batch("metrics")  # its row is the last that a batch writes
        alerts.begin(Queue(tables.root, checkpoint.alert_cursor, layout.app_id, done, is_new))


def _note(checkpoint: Checkpoint, heard: Listener, rules: str, keys: tuple[str, ...]) -> None:
    """Keep and count in what the files differ from what runs, so that others than the log can tell it."""
    heard.differ(bool(rules))
    if rules or keys:
        write_note(checkpoint, FilesNote(rules, keys, shown_time(datetime.now(timezone.utc))))
    else:
        remove_note(checkpoint)


def _require_events(spec: JobSpec, summary: Summary) -> None:
    """Raise `EventError` if the input has ended and every record of it was bad."""
    all_bad = 0 < summary.bad_records == summary.records
    if summary.finished and summary.has_all_batches and all_bad:
        got = f"{counted(summary.bad_records, 'bad record')} and no event"
        query = '"SELECT source, offset, reason FROM quarantine"'
        do = f"Ask for the reasons: spark-pace sql {spec.sink_path} {query}."
        raise EventError(f"{spec.name} — must find events in its source; got {got}. {do}")
