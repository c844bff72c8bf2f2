"""The queries of a run: each is started, and ends with its input, by a signal, by other rules, or a failure.

A failure becomes one of our errors.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from spark_pace.core.plan.plan import Plan, build_plan
from spark_pace.errors import SparkPaceError
from spark_pace.io.delta_tables import DeltaTables
from spark_pace.job_file import JobSpec, as_planned, planned_settings
from spark_pace.job_file.rules_on_disk import RulesOnDisk
from spark_pace.spark.checkpoint.checkpoint import Checkpoint
from spark_pace.spark.checkpoint.claims import claim
from spark_pace.spark.checkpoint.layout import Layout, write_layout
from spark_pace.spark.failures import as_our_error, is_of_spark
from spark_pace.spark.internals import is_ending, is_gone, planned_offsets
from spark_pace.spark.pipeline import split_rows, start
from spark_pace.spark.sources.input import Input, Look
from spark_pace.spark.sources.throttle import Throttle
from spark_pace.spark.stages.merger import MergerHost
from spark_pace.spark.stages.rule_history import RuleHistory
from spark_pace.spark.stages.side_table_copies import SideTables
from spark_pace.spark.start import Change
from spark_pace.spark.summary import Listener

if TYPE_CHECKING:  # only jobs whose checkpoint is in a store load what asks one
    from spark_pace.spark.checkpoint.lease import Lease

_POLL_SECONDS = 1


@dataclass
class Stop:
    """The request to stop the job, once a signal has made it, or another job.

    Attributes:
        event: set with the request of a signal.
        signal: which one it was.
        lease: of the checkpoint, if it is in a store.
    """

    event: threading.Event = field(default_factory=threading.Event)
    signal: signal.Signals | None = None
    lease: Lease | None = None

    def require_held(self, *, ask: bool = True) -> None:
        """Refuse to go on if another job has taken the checkpoint over; with `ask` the store may be asked.

        Raises:
            SetupError: it has.
        """
        if self.lease is not None:
            self.lease.require() if ask else self.lease.require_not_lost()

    @property
    def ended_spark(self) -> bool:
        """True if the signal has ended the JVM too, so that calls to Spark fail.

        Service managers send their signal to all processes of a job.
        """
        return self.event.is_set() and is_ending()

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Record SIGINT and SIGTERM inside the block.

        The handler may interrupt a call to the JVM, so it must not make one itself.
        """
        if threading.current_thread() is not threading.main_thread():
            yield  # only the main thread may set handlers
            return

        def note(number: int, _frame: object) -> None:
            self.signal = signal.Signals(number)
            self.event.set()

        before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


@contextmanager
def in_our_words(stop: Stop, checkpoint: Checkpoint) -> Iterator[None]:
    """Turn errors inside the block into errors of ours.

    If the signal to stop has ended Spark too, an error of a call to Spark is ignored.

    Raises:
        SparkPaceError: something failed.
        GatewayError, ConnectionError: the JVM is gone; `survived_in_words` turns that into one of ours.
    """
    try:
        yield
    except Exception as error:
        if isinstance(error, SparkPaceError) or is_gone(error):
            raise
        if not (is_of_spark(error) and stop.ended_spark):
            raise as_our_error(error, checkpoint.path) from error


@dataclass(frozen=True)
class Run:
    """What the queries of a run share.

    Attributes:
        spark: the session.
        on_disk: the job, whose files are looked at meanwhile.
        input_of: makes the input of a job.
        checkpoint: the job's checkpoint.
        stop: the request to stop.
        heard: what hears of the run.
        look: looks at the source of a batch.
        side_tables: those of the job.
    """

    spark: SparkSession
    on_disk: RulesOnDisk
    input_of: Callable[[JobSpec], Input]
    checkpoint: Checkpoint
    stop: Stop
    heard: Listener
    look: Look
    side_tables: SideTables

    def take_over(self, change: Change, tables: DeltaTables) -> None:
        """Run the queries of a change, one after the other, until a signal or other rules stop one.

        If rules or settings have changed, the first one finishes the batch that was planned before. Other
        rules wait for its end, so that many changes do not keep it from being done.
        """
        spec, cores = self.on_disk.spec, self.spark.sparkContext.defaultParallelism
        for layout, unfinished in change.layouts(planned_settings(spec)):
            job = as_planned(spec, layout.planned) if unfinished else spec
            plan, job_input = _plan(job, layout, cores), self.input_of(job)
            layout = write_layout(self.checkpoint, layout)
            for end in (False,) if unfinished else job_input.ends:
                events = job_input.rows(self.spark, plan, end)
                chunks = self.checkpoint.chunks()
                rows = split_rows(events, plan, layout.keys, cores, chunks, layout.app_id)
                merger = self._merger(job_input, plan, layout, tables)
                query = start(rows, merger, "unfinished" if unfinished else spec.trigger_us, spec.name)
                if not unfinished:
                    if job.admission is not None:
                        merger.listeners.append(Throttle(job, job_input, query, merger))
                    self.heard.ready(spec)
                changed = (lambda: False) if unfinished else self.on_disk.changed
                wait(query, merger, self.stop, self.heard.works, changed)
                if self.stop.event.is_set() or self.on_disk.changed():
                    return

    def _merger(self, job_input: Input, plan: Plan, layout: Layout, tables: DeltaTables) -> MergerHost:
        """The writer of a query's batches, which goes on only while this job holds the checkpoint."""
        return MergerHost(
            plan,
            tables,
            self.checkpoint,
            [self.heard.batch],
            job_input.late_in,
            look=self.look,
            require_held=self.stop.require_held,
            side_tables=self.side_tables if plan.schema == self.side_tables.schema else None,
            claim_batch=self._claimed,
            history=RuleHistory(layout.rules, self.on_disk.spec.paused),
            layout=layout.number,
        )

    def _claimed(self, batch_id: int) -> bytes:
        self.stop.require_held()
        return claim(self.checkpoint, batch_id, partial(planned_offsets, self.spark))


def _plan(spec: JobSpec, layout: Layout, cores: int) -> Plan:
    events = spec.events
    return build_plan(
        spec.rules,
        **events.stream,
        slots=layout.slots,
        buckets=layout.buckets,
        lanes=cores if spec.lanes == "auto" else spec.lanes,
        latency_bound_us=spec.latency_bound_us,
        on_operator_error=events.on_operator_error,
        operator_timeout_us=events.operator_timeout_us,
        places=layout.places,
    )


def wait(
    query: StreamingQuery,
    merger: MergerHost,
    stop: Stop,
    works: Callable[[bool], None],
    enough: Callable[[], bool] = lambda: False,
) -> None:
    """Wait until the query ends, or end it: when a signal asks for that, or once there is `enough`.

    `works` hears each second whether a batch is under way. Raises what fails meanwhile.
    """
    try:
        while not (stop.event.is_set() or enough() or query.awaitTermination(_POLL_SECONDS)):
            stop.require_held(ask=False)
            status = query.status
            works(status["isTriggerActive"] and status["isDataAvailable"])
        if failure := query.exception():
            raise failure
    except Exception as error:
        if not stop.ended_spark:
            if isinstance(error, SparkPaceError) or is_gone(error):
                raise
            stop.require_held()  # if another job has taken the checkpoint over, it was in the way
            raise as_our_error(error, merger.checkpoint.path, merger.failure, merger.failed_at) from error
    finally:
        try:
            query.stop()
        except Exception:
            if not stop.ended_spark:
                raise
        finally:
            merger.close()
            works(False)
    # at the end of a query only calls to Spark may fail
    if merger.failure is not None and not is_of_spark(merger.failure):
        raise as_our_error(merger.failure, merger.checkpoint.path, at=merger.failed_at)
