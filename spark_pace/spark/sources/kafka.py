"""The input from Kafka topics: Spark's connector reads records, and tasks of the intake parse them.

A job that reads Kafka may have a clock. Its ticks are noted in the checkpoint, where `EndSource` finds them.
No record that was there when a tick was due may be read after the tick. So it is noted only once batches are
planned that read all of them, and goes into a later batch.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructField

from spark_pace.core.intake.sift import LATE_SCHEMA
from spark_pace.core.order import LateFile, Tick
from spark_pace.core.plan.plan import Plan
from spark_pace.core.plan.rule import EventSchema
from spark_pace.core.tables import paired
from spark_pace.errors import StateError, one_line
from spark_pace.io.files.files import digest, read_json, write_json
from spark_pace.io.records import Records, read_records
from spark_pace.spark.checkpoint.checkpoint import Checkpoint
from spark_pace.spark.checkpoint.layout import id_of
from spark_pace.spark.internals import is_gone
from spark_pace.spark.sources.end_source import END_SOURCE, ROWS, TICK, EndReader, EndSource, Ticks
from spark_pace.spark.sources.input import Input, Look
from spark_pace.spark.sources.kafka_check import (
    Offsets,
    Watch,
    client,
    offsets_noted,
    require_same_ids,
    topics_of,
)
from spark_pace.spark.sources.read_limits import reader_option
from spark_pace.spark.stages.intake import Found, intake_rows

if TYPE_CHECKING:
    from spark_pace.job_file import Clock, KafkaSource


_LOG = logging.getLogger(__name__)
_POLL_SECONDS = 0.2
_PATIENCE_SECONDS = 2  # a question to a broker that is gone takes longer, and ends with the client


@contextmanager
def ticking(spark: SparkSession, source: KafkaSource, clock: Clock, checkpoint: Checkpoint) -> Iterator[None]:
    """Let the clock of a job tick inside the block."""
    with client(spark, source) as kafka:
        one = KafkaClock(Ticks(clock.every_us, clock.slack_us), checkpoint, kafka.ends)
        thread = threading.Thread(target=one.tick, name="clock", daemon=True)
        thread.start()
        try:
            yield
        finally:
            one.stopped.set()
            thread.join(_PATIENCE_SECONDS)


@dataclass
class KafkaClock:
    """Notes one tick after the other.

    Attributes:
        ticks: when they are due.
        checkpoint: the job's checkpoint.
        ends: asks Kafka where the partitions end.
        stopped: set to end it.
    """

    ticks: Ticks
    checkpoint: Checkpoint
    ends: Callable[[], Offsets]
    stopped: threading.Event = field(default_factory=threading.Event)

    def tick(self) -> None:
        """Note ticks until it is stopped. Where that fails, say so, but for the JVM's end, and try again."""
        while not self.stopped.is_set():
            try:
                self.note()
            except Exception as error:  # nobody else notices the end of this thread
                if not (self.stopped.is_set() or is_gone(error)):
                    got = one_line(str(error))[:200]
                    _LOG.warning("clock — must learn from Kafka where topics end; got: %s. It stands.", got)
            self.stopped.wait(self.ticks.seconds_to_next())

    def note(self) -> None:
        """Note the tick that is due now, once all that is there now is planned to be read."""
        due_us, ends = self.ticks.due_us(), self.ends()
        while not self.stopped.is_set():
            planned = offsets_noted(self.checkpoint.last_offsets())
            is_planned = all(planned.get(part, 0) >= end for part, end in ends.items())
            if is_planned and (own_id := id_of(self.checkpoint)):  # a new one gets it with its first query
                write_json(self.checkpoint.clock_file, {TICK: due_us}, own_id)
                return
            self.stopped.wait(_POLL_SECONDS)


_HEADERS = "headers."
_PLACE = ("value", "topic", "partition", "offset")  # columns of every record; those after them are attributes


@dataclass(frozen=True)
class KafkaInput(Input):
    """The topics that a job reads.

    If the input ends, a second query reads what is left and the end.
    """

    source: KafkaSource

    kind: ClassVar[str] = "kafka"
    lasting: ClassVar[tuple[str, ...]] = ("topics",)
    reads_in_jvm: ClassVar[bool] = True

    @property
    def ends(self) -> tuple[bool, ...]:
        """One entry for each query of a run: an input that ends has a second query, up to the end."""
        return (False, True) if self.finish else (False,)

    def bounded(self, cap: int) -> int:
        """The cap, but at least the option `minOffsetsPerTrigger` and at most `max_offsets_per_trigger`."""
        options = {key.lower(): value for key, value in self.source.options.items()}
        least, most = options.get("minoffsetspertrigger", ""), self.source.max_offsets_per_trigger
        cap = max(cap, int(least)) if least.isdecimal() else cap
        return cap if most is None else min(cap, most)

    def amount(self, before: list[Any], after: list[Any], records: int) -> int:
        """The number of offsets that a batch has passed; it may be more than its records."""
        start, end = (offsets_noted(offsets) for offsets in (before, after))
        # Spark's note does not say at which offset a partition begins that is new to the job
        return max(records, sum(number - start.get(part, number) for part, number in end.items()))

    def require_readable(self, spark: SparkSession) -> dict[str, Any]:
        """Refuse brokers that do not answer, and topics that are missing or were deleted and made again.

        The checkpoint keeps the topics' ids and a checksum of the servers. If the job names other servers
        than before, they are trusted to have the same records at the same offsets, though topics have other
        ids.
        """
        ids = topics_of(spark, self.source, offsets_noted(self.checkpoint.last_offsets())).ids
        servers = digest(self.source.servers.encode())
        known = read_json(self.checkpoint.source_file) or {}
        try:
            require_same_ids(known.get("ids", {}), ids)
        except StateError as error:
            if known.get("servers") == servers:
                raise
            _LOG.warning("source.servers — are others than before, so this is taken over: %s", error)
        return {"servers": servers, "ids": ids}

    @contextmanager
    def watched(self, spark: SparkSession, marks: Mapping[str, Any]) -> Iterator[Look]:
        """Watch the topics during a run, and refuse one that was deleted and made again. The clock ticks.

        Offsets without a record are counted.
        """
        ticks: AbstractContextManager[None] = nullcontext()
        if self.clock is not None:
            ticks = ticking(spark, self.source, self.clock, self.checkpoint)
        with client(spark, self.source) as kafka, ticks:
            yield Watch(kafka, marks["ids"], self.checkpoint)

    def expected_sources(self, spark: SparkSession) -> tuple[str, ...]:
        """The partitions of the topics, as ``topic/partition``."""
        return topics_of(spark, self.source).partitions

    def rows(self, spark: SparkSession, plan: Plan, end: bool) -> DataFrame:
        """The rows of the intake; the query with the end reads all that is there in one batch."""
        spark.dataSource.register(EndSource)
        records = spark.readStream.format("kafka").options(**self._options(end)).load()
        columns = self.source.columns
        own = [_own_column(column).alias(f"@{attribute}") for attribute, column in columns]
        records = records.select(*_PLACE, *own)
        clock = None if self.clock is None else self.checkpoint.clock_file
        make = partial(EndReader, end, clock, id_of(self.checkpoint))
        option = reader_option(make, partial(self.noted, ROWS), self.available_now)
        ends = spark.readStream.format(END_SOURCE).options(**option)
        ticks = ends.load().select(*(_of_tick(field) for field in records.schema))
        read = partial(_read, self.source.format, plan.schema.own)
        return intake_rows(records.union(ticks), plan, self.on_bad_record, read, self.checkpoint.side_tables)

    def late_in(self, spark: SparkSession, plan: Plan, files: Sequence[LateFile]) -> pa.Table:
        """An empty table, because there are no files."""
        return LATE_SCHEMA.empty_table()

    def _options(self, end: bool) -> dict[str, str]:
        """The options for Spark's connector."""
        source = self.source
        options = {
            **source.options,
            "kafka.bootstrap.servers": source.servers,
            "subscribe": ",".join(source.topics),
            "startingOffsets": source.starting_offsets,
            "failOnDataLoss": "true",
            "includeHeaders": str(any(column.startswith(_HEADERS) for _, column in source.columns)).lower(),
        }
        most = source.max_offsets_per_trigger if self.first_cap is None else self.bounded(self.first_cap)
        if most is not None and not end:
            options["maxOffsetsPerTrigger"] = str(most)
        return options


def _of_tick(field: StructField) -> Column:
    """The column of records, in a row of `EndSource`: the time of a tick stands in place of an offset."""
    value = F.col(TICK) if field.name == "offset" else F.lit(None)
    return value.cast(field.dataType).alias(field.name)


def _own_column(name: str) -> Column:
    """The record's column `name`. If several headers have the name, the last counts, as in Kafka's API."""
    if not name.startswith(_HEADERS):
        return F.col(name)
    key = name.removeprefix(_HEADERS)
    named = F.filter("headers", lambda header: header["key"] == F.lit(key))
    return F.try_element_at(F.transform(named, lambda header: header["value"]), F.lit(-1))


def _read(format: str, schema: EventSchema, batch: pa.RecordBatch) -> Iterator[Found | Tick | None]:
    """In a task: yield the events of records; or, of rows without a topic, ticks and None at the end."""
    if batch.column("topic").null_count:
        yield from (tick_us if tick_us is None else Tick(tick_us) for tick_us in batch["offset"].to_pylist())
    else:
        yield read_records(_records(batch), format, schema), 0, ""


def _records(batch: pa.RecordBatch) -> Records:
    own = {name[1:]: batch.column(name) for name in batch.schema.names[len(_PLACE) :]}
    return Records(
        batch.column("value"),
        paired(batch.column("topic").dictionary_encode(), batch.column("partition").dictionary_encode(), "/"),
        batch.column("offset"),
        own,
    )
