"""The queries of a run: each is started, and ends with its input, by a signal, by other rules, or a failure.

A failure becomes one clear error of ours; in Spark's exception the cause is text between stack traces.

After each batch `Throttle` tells Spark how much the next one may read (see `spark_pace.job_file.pace`).
"""

from __future__ import annotations

import logging
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from tempfile import gettempdir
from typing import TYPE_CHECKING, Literal

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from spark_pace.core.plan.plan import Plan, build_plan
from spark_pace.errors import (
    SEE_TRACE,
    EventError,
    FullStoreError,
    OperatorError,
    SetupError,
    SparkPaceError,
    StateError,
    UnfitError,
    one_line,
)
from spark_pace.io.delta_tables import DeltaTables
from spark_pace.io.files.addresses import AnyPath, StorePath
from spark_pace.io.files.contract import full_store
from spark_pace.io.files.files import RESTORE
from spark_pace.io.metrics import BatchReport
from spark_pace.job_file import JobSpec, KafkaSource, as_planned, planned_settings
from spark_pace.job_file.pace import Batch
from spark_pace.job_file.reader import RulesOnDisk
from spark_pace.spark.checkpoint.batch_begin import kept_begins
from spark_pace.spark.checkpoint.checkpoint import Checkpoint
from spark_pace.spark.checkpoint.layout import Layout, write_layout
from spark_pace.spark.checkpoint.lock import claim
from spark_pace.spark.internals import (
    GatewayError,
    is_ending,
    is_gone,
    java_trace,
    planned_offsets,
    set_limits,
    silent_gateway,
)
from spark_pace.spark.sources.input import Input, Look
from spark_pace.spark.sources.own_sources import TELLS_LIMITS
from spark_pace.spark.stages.earlier_batches import tell_earlier
from spark_pace.spark.stages.merger import MergerHost, RuleHistory
from spark_pace.spark.stages.side_table_copies import SideTables
from spark_pace.spark.stages.splitter import split_rows
from spark_pace.spark.start import Change
from spark_pace.spark.summary import Listener

if TYPE_CHECKING:
    from spark_pace.spark.checkpoint.lock import Lease


_LOG = logging.getLogger(__name__)


def with_limits(spec: JobSpec, spark: SparkSession) -> JobSpec:
    """The job, without `admission` if this Spark tells no source how much it may read."""
    if TELLS_LIMITS or isinstance(spec.source, KafkaSource):  # Kafka's connector is Spark's own
        return spec
    if spec.trigger_us == "available_now":
        _LOG.warning("Spark %s — reads all files that are there in one batch; 4.2 bounds it.", spark.version)
    if spec.admission == "off":
        return spec
    got = f"which Spark {spark.version} does not allow"
    _LOG.warning("admission — must set how much Spark reads, %s. It is off; 4.2 allows it.", got)
    return replace(spec, admission="off")


class Throttle:
    """Sets the cap of a query: the most that its next batch reads.

    It is called with the report of each batch, inside `foreachBatch`, after whoever else listens.
    """

    def __init__(self, spec: JobSpec, job_input: Input, query: StreamingQuery, merger: MergerHost) -> None:
        """Begin with the first cap of the input, which Spark knows from the source's options."""
        assert job_input.first_cap is not None and spec.admission != "off"
        every = 0.0 if spec.trigger_us == "available_now" else spec.trigger_us / 1e6
        self._admission = spec.admission.every(every)
        self._input = job_input
        self._query = query
        self._merger = merger
        self._pace = self._admission.begin(job_input.first_cap)
        self._has_told = False

    def __call__(self, report: BatchReport) -> None:
        """Set the cap of the next batch. If Spark does not allow that, log once that the last one stays."""
        seconds = time.monotonic() - self._merger.began
        amount = self._input.amount(*self._merger.offsets, report.records)
        batch = Batch(amount, seconds, report.records, report.pending)
        before, self._pace = self._pace, self._admission.after(self._pace, batch)
        if before.cap == self._pace.cap:
            return
        try:
            set_limits(self._query, self._input.bounded(self._pace.cap))
        except (AttributeError, GatewayError, TypeError, ValueError) as error:
            self._pace = before
            if self._has_told or is_ending():  # the job ends with a line about that
                return
            self._has_told = True
            got = one_line(str(error))
            _LOG.warning(
                "admission — must set how much Spark reads; got: %s. What it reads stays as it is.", got
            )


_OURS = re.compile(r"spark_pace\.errors\.(\w+): (.+)")
_OF_JAVA = r"(?:com|io|java|javax|org|software)\."  # how names of its classes begin
_GATEWAY = re.escape(GatewayError.__module__.split(".")[0])
_PYTHON = re.compile(rf"^\s*(?!{_OF_JAVA}|{_GATEWAY}\.)(\w[\w.]*(?:Error|Exception): .+)$", re.MULTILINE)
_CAUSED_BY = re.compile(r"^Caused by: (?:[\w.$]+: (?=.*\S))?(.+)$", re.MULTILINE)
_RAISED = re.compile(r"^: ([\w.$]+(?:: .+)?)$", re.MULTILINE)  # an exception of Java in Py4J's text
_FULL = r"No space left on device|Disk quota exceeded"
_READ_ONLY = r"Read-only file system"
_IN_THE_WAY = rf"(?:{_FULL}|{_READ_ONLY})"
_PLACE = re.compile(
    rf"{_IN_THE_WAY}: '(/[^'\n]+)'|Exception: (/[^:\n]+)(?: \(|: ){_IN_THE_WAY}"
)  # of Python, of Java
# of Hadoop's client of S3, and of the libraries below it; a file that is not there is none of these
_OF_STORE = (
    r"\b(?:org\.apache\.hadoop\.fs\.s3a\.AWS|org\.apache\.http\.|software\.amazon\.awssdk\.core\.)"
    r"[\w.$]*Exception\b"
    r"|\bStatus Code: (?:408|409|429|5\d\d)\b|the return value of \"software\.amazon\."
)
# the words of Spark where a machine has no Python that can run workers, which lacks modules that every worker
# imports; modules that an operator imports may be missing for other reasons
_NO_PYTHON = (
    r"(ModuleNotFoundError: No module named '(?:spark_pace|numba|numpy|obstore|pandas|pyarrow)[^'\n]*')"
    r'|(Cannot run program "[^"]*python[^"]*"[^\n]*)'
)
_NO_WORKER = r"Error from python worker:\n(?:[^\n]*\n)*?([^\n]*)\n\s*PYTHONPATH was:"
_TO_MACHINES = (
    "the executors' Python — must find spark_pace and what it needs on every machine; got: {0}. "
    "Send spark_pace by --py-files, install what it needs there, or name another Python by PYSPARK_PYTHON."
)
_MULTI = re.MULTILINE | re.DOTALL
_GOES_ON = "it goes on where it stopped."
# what is known of failures by their texts, which pattern comes first: the error for each, of what the pattern
# has found, and of what `_known` adds
_KNOWN: tuple[tuple[str, type[SparkPaceError], str], ...] = (
    (_NO_PYTHON, UnfitError, _TO_MACHINES),
    (_NO_WORKER, UnfitError, _TO_MACHINES),
    (  # the words of Kafka's client and connector
        r"Some data may have been lost.*?^Reason: ([^\n]+?)\.?$",
        StateError,
        "source.topics — must hold all records that the checkpoint has not read; got: {0}. "
        "Restore the topic, or start a new checkpoint with a sink of its own.",
    ),
    (
        r"UnknownTopicOrPartitionException: ([^.\n]+)",
        StateError,
        "source.topics — must be there while the job runs; got: {0}. "
        "Start the job again when it is back; one made anew needs a new checkpoint and sink.",
    ),
    (
        r"org\.apache\.kafka\.common\.errors\.TimeoutException: ([^\n]+?)(?:\.? SQLSTATE|\.?$)",
        SetupError,
        "source.servers — must answer while the job runs; got: {0}. "
        f"Start the broker and then the job again: {_GOES_ON}",
    ),
    (
        _OF_STORE,
        SetupError,
        "{checkpoint} — must be a place in a store that answers while the job runs; "
        f"got: {{cause}}. Start the job again: {_GOES_ON}",
    ),
    (
        _FULL,
        SetupError,
        "the disk of {place} — must have room for the tables, the checkpoint and Spark's own files; "
        "got a full one. Make room and start the job again.",
    ),
    (
        r"Too many open files",
        SetupError,
        "open files — must be allowed in the number that the job needs; got: too many open files. "
        "Raise the limit (`ulimit -n`).",
    ),
    (
        _READ_ONLY,
        SetupError,
        "the disk of {place} — must be on a file system that can be written to; got a read-only one. "
        "Mount it anew and start the job again.",
    ),
    (
        r"Checksum error: (?:file:)?(\S+)",
        StateError,
        f"{{0}} — must be as Spark wrote it; got another content. {RESTORE}",
    ),
    (
        r"STREAMING_CHECKPOINT_MISSING_METADATA_FILE",
        StateError,
        f"{{note}} — must be there where batches are; got no file. {RESTORE}",
    ),
    (
        r"CANNOT_LOAD_STATE_STORE|MISSING_STATE_DIRECTORY|CHECKPOINT_LOCATION_NOT_EMPTY",
        StateError,
        f"{{state}} — must be as Spark wrote it; got: {{cause}}. {{once_more}}{RESTORE}",
    ),
    (  # Spark reads from a Python process, or writes to it, after that has ended
        r"Python worker exited unexpectedly"
        r"|\bjava\.(?:io|net)\.\w+Exception\b[^\n]*\n(?:\s+at java\.[^\n]*\n)*"
        r"\s+at org\.apache\.spark\.[\w.]*\bpython\.",
        SparkPaceError,
        "Spark's Python workers — must run as long as the job; got the end of one (killed, or out of "
        f"memory). If it lacked memory, use fewer cores; start the job again: {_GOES_ON} {SEE_TRACE}",
    ),
)
# what errors of ours become that a task has raised; of two kinds, which hold problems, only the text comes
_OF_US: dict[str, type[SparkPaceError]] = {
    **{kind.__name__: kind for kind in (EventError, FullStoreError, OperatorError, SetupError, StateError)},
    **dict.fromkeys(("UnfitError", "ConfigError", "RuleError"), UnfitError),
}


def as_our_error(
    error: Exception, checkpoint: AnyPath, failure: Exception | None = None, at: str | None = None
) -> SparkPaceError:
    """Turn the error that stopped a query into one of ours.

    Args:
        error: the error that the query raised.
        checkpoint: the folder of the job's checkpoint.
        failure: the error that the merger raised, if it did; Spark hands on only its text.
        at: the path of the table that was being written when it was raised; None if none was.
    """
    for candidate in (failure, error):
        if isinstance(candidate, SparkPaceError):
            return candidate
    # some errors give their reason in their Java trace alone
    texts = [f"{one}\n{java_trace(one)}" for one in (failure, error) if one is not None]
    for text in texts:
        if ours := _OURS.search(text):
            return _OF_US.get(ours[1], SparkPaceError)(ours[2].strip())
    return _known(texts, checkpoint, at) or _other(texts, checkpoint, at)


def _known(texts: list[str], checkpoint: AnyPath, at: str | None) -> SparkPaceError | None:
    """The error that `_KNOWN` has for a failure; else None."""
    whole, is_in_store = "\n".join(texts), isinstance(checkpoint, StorePath)
    if is_in_store and (full := full_store(str(checkpoint), whole)):
        return full
    told = {
        "checkpoint": checkpoint,
        "cause": _cause(texts).rstrip(". "),
        "place": _place(whole, checkpoint, at),
        "note": Checkpoint(checkpoint).metadata_file,
        "state": checkpoint / "state",
        # what a store has answered may have been cut where nobody could notice it
        "once_more": "Start the job again; if it says the same: " if is_in_store else "",
    }
    for pattern, kind, text in _KNOWN:
        found = re.search(pattern, whole, _MULTI) if is_in_store or pattern != _OF_STORE else None
        if found:
            return kind(
                text.format(*(part.strip(". \n") for part in found.groups() if part is not None), **told)
            )
    return None


def _other(texts: list[str], checkpoint: AnyPath, at: str | None) -> SparkPaceError:
    """The error for a failure of which nothing is known but its cause."""
    got = _cause(texts).rstrip(". ")
    where, do = "the query — must run", f"Mend that and start the job again: {_GOES_ON}"
    if at is not None:
        where = f"{at} — must be a table that can be written to"
    elif isinstance(checkpoint, StorePath) and any(str(checkpoint) in text for text in texts):
        where = f"{checkpoint} — must be read and written while the job runs"
        # one answer may have been lost or cut, which Spark's client does not always tell as such
        do = "Start the job again: it goes on where it stopped; if it says the same, mend that."
    return SparkPaceError(f"{where}; got {got}. {do} {SEE_TRACE}")


def _place(text: str, checkpoint: AnyPath, at: str | None) -> str:
    """Which disk it may be that cannot be written to: Java does not always name the file."""
    if at is None and (found := _PLACE.search(text)):
        return str(Path(found[1] or found[2]).parent)
    return at or f"the checkpoint {checkpoint}, or of Spark's own files in {gettempdir()}"


def is_of_spark(error: Exception) -> bool:
    """True if the error comes from a call to Spark, not from this program."""
    return isinstance(error, (GatewayError, PySparkException))


def _cause(texts: list[str]) -> str:
    """The last Python error in the texts; else the last Java cause; else the first line."""
    for pattern in (_PYTHON, _CAUSED_BY, _RAISED):
        for text in texts:
            if found := pattern.findall(text):
                return str(found[-1]).strip()
    return texts[0].strip().splitlines()[0] if texts[0].strip() else "no message"


_POLL_SECONDS = 1
# the microseconds from batch to batch; or all that is there now; or only the batch that was planned and
# not finished
Trigger = int | Literal["available_now", "unfinished"]


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
    """Turn errors inside the block into errors of ours, the end of the JVM too, which Py4J logs as traces.

    Py4J stays silent afterwards, because Python frees objects of the JVM later and each would log a message.

    If the signal to stop has ended Spark too, an error of a call to Spark is ignored.

    Raises:
        SparkPaceError: something failed.
    """
    ended = False
    with silent_gateway(stays=lambda: ended or stop.ended_spark):
        try:
            yield
        except Exception as error:
            ended = is_gone(error)
            if ended and stop.event.is_set():
                return
            if ended:
                got = "its end (killed, or out of memory). If it lacked memory, raise spark.driver.memory"
                do = f"start the job again: {_GOES_ON}"
                must = "must run as long as the job"
                raise SparkPaceError(f"Spark's JVM — {must}; got {got}; {do}") from error
            if isinstance(error, SparkPaceError):
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
                chunks = self.checkpoint.chunks
                rows = split_rows(events, plan, layout.keys, cores, chunks, layout.app_id)
                merger = self._merger(job_input, plan, layout, tables)
                query = start(rows, merger, "unfinished" if unfinished else spec.trigger_us, spec.name)
                if not unfinished:
                    if job.admission != "off":
                        merger.listeners.append(Throttle(job, job_input, query, merger))
                    self.heard.ready(spec)
                changed = (lambda: False) if unfinished else self.on_disk.changed
                wait(query, merger, self.stop, self.heard.works, changed)
                if self.stop.event.is_set() or self.on_disk.changed():
                    return

    def _merger(self, job_input: Input, plan: Plan, layout: Layout, tables: DeltaTables) -> MergerHost:
        """The writer of a query's batches, which goes on only while this job holds the checkpoint."""
        sides = self.side_tables
        if plan.schema != sides.schema:  # an unfinished batch may have joined others
            sides = SideTables(plan.schema, self.checkpoint)
        return MergerHost(
            plan,
            tables,
            self.checkpoint,
            [self.heard.batch],
            job_input.late_in,
            look=self.look,
            require_held=self.stop.require_held,
            claim_batch=partial(claim, self.checkpoint, planned=partial(planned_offsets, self.spark)),
            side_tables=sides,
            history=RuleHistory(layout.rules, self.on_disk.spec.paused),
            layout=layout.number,
        )


def _plan(spec: JobSpec, layout: Layout, cores: int) -> Plan:
    events = spec.events
    return build_plan(
        spec.rules,
        **events.stream,
        slots=layout.slots,
        buckets=layout.buckets,
        lanes=cores if spec.parallelism.lanes == "auto" else spec.parallelism.lanes,
        latency_bound_us=spec.parallelism.latency_bound_us,
        on_operator_error=events.on_operator_error,
        operator_timeout_us=events.operator_timeout_us,
        places=layout.places,
    )


def start(rows: DataFrame, merger: MergerHost, trigger: Trigger, name: str) -> StreamingQuery:
    """Start the query on the merger's checkpoint, after telling its tasks about earlier batches."""
    tell_earlier(rows.sparkSession, kept_begins(merger.checkpoint))
    writer = rows.writeStream.queryName(name).foreachBatch(merger)
    writer = writer.option("checkpointLocation", str(merger.checkpoint))
    if trigger == "unfinished":
        return writer.trigger(once=True).start()
    if trigger == "available_now":
        return writer.trigger(availableNow=True).start()
    return writer.trigger(processingTime=f"{max(trigger // 1000, 1)} milliseconds").start()


def wait(
    query: StreamingQuery,
    merger: MergerHost,
    stop: Stop,
    works: Callable[[bool], None],
    enough: Callable[[], bool],
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
