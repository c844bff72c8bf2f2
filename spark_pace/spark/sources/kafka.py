"""The input from Kafka topics: Spark's connector reads records, and tasks of the intake parse them.

A job that reads Kafka may have a clock. Its ticks are noted in the checkpoint, where `EndReader` finds them.
No record that was there when a tick was due may be read after the tick. So it is noted only once batches are
planned that read all of them, and goes into a later batch.

The topics are asked for before the query starts, and their ids after each batch is read.

That is done by the client of Spark's connector in the JVM. Without the first check a wrong topic would end in
a stack trace minutes later. The second finds a topic that was deleted and made again: it has a new id. If
Kafka still answers with the old id, all that was read before belongs to the old topic. Spark notes names and
offsets only, and would go on in the middle of the new topic. It counts offsets at which there was no record,
too.
"""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructField

from spark_pace.core.order import Tick
from spark_pace.core.plan.plan import Plan
from spark_pace.core.plan.rule import EventSchema
from spark_pace.core.tables import OFFSET, SOURCE, paired
from spark_pace.errors import SetupError, StateError, UnfitError, one_line
from spark_pace.io.files.files import digest, read_json, write_json
from spark_pace.io.records import VALUE, read_records
from spark_pace.spark.checkpoint.checkpoint import Checkpoint, not_of_spark
from spark_pace.spark.checkpoint.layout import id_of
from spark_pace.spark.internals import KAFKA_SOURCE, GatewayError, JavaError, has_class, is_gone, jvm_of
from spark_pace.spark.java.jars import kafka_coordinate
from spark_pace.spark.sources.input import Input, Look
from spark_pace.spark.sources.own_sources import (
    OWN_SOURCE,
    ROWS,
    TICK,
    EndReader,
    OwnSource,
    Ticks,
    reader_option,
)
from spark_pace.spark.stages.intake import Found, intake_rows

if TYPE_CHECKING:
    from spark_pace.job_file import Clock, KafkaSource


TIMEOUT_SECONDS = 20
Described = list[tuple[str, Any]]  # each topic with its description, a Java object of Kafka's client
Offsets = dict[tuple[str, str], int]  # the offset of each partition, by topic and number as text


@dataclass(frozen=True)
class KafkaClient:
    """A client that is connected.

    Attributes:
        jvm: the JVM.
        admin: the client, an object of Java.
        topics: the topics.
    """

    jvm: Any
    admin: Any
    topics: tuple[str, ...]

    def described(self, seconds: int) -> Described:
        """Describe the topics within a number of seconds."""
        patience = self.jvm.org.apache.kafka.clients.admin.DescribeTopicsOptions()
        asked = self.admin.describeTopics([*self.topics], patience.timeoutMs(seconds * 1000))
        answer = asked.allTopicNames().get()
        return [(topic, answer.get(topic)) for topic in self.topics]

    def ends(self, committed: bool = False) -> Offsets:
        """The offset behind the last record of each partition, or before its first transaction still open."""
        kafka = self.jvm.org.apache.kafka
        level = kafka.common.IsolationLevel
        level = level.READ_COMMITTED if committed else level.READ_UNCOMMITTED
        asked = {
            kafka.common.TopicPartition(topic, number): kafka.clients.admin.OffsetSpec.latest()
            for topic, one in self.described(TIMEOUT_SECONDS)
            for number in range(one.partitions().size())
        }
        found = self.admin.listOffsets(asked, kafka.clients.admin.ListOffsetsOptions(level)).all().get()
        return {(part.topic(), str(part.partition())): found.get(part).offset() for part in asked}

    def compacted(self) -> list[str]:
        """The topics that Kafka compacts, or of which it does not say whether it does."""
        resource = self.jvm.org.apache.kafka.common.config.ConfigResource
        asked = [resource(resource.Type.TOPIC, topic) for topic in self.topics]
        answers = self.admin.describeConfigs(asked).values()
        return [one.name() for one in asked if _may_compact(answers.get(one))]


def _may_compact(answer: Any) -> bool:
    try:
        return "compact" in str(answer.get().get("cleanup.policy").value())
    except JavaError:  # the user may not ask for the settings of the topic
        return True


@contextmanager
def client(spark: SparkSession, source: KafkaSource) -> Iterator[KafkaClient]:
    """Connect a client with the options of a source."""
    jvm = jvm_of(spark)
    own = {key[6:]: value for key, value in source.options.items() if key.startswith("kafka.")}
    options = {
        **own,
        "bootstrap.servers": source.servers,
        "default.api.timeout.ms": str(TIMEOUT_SECONDS * 1000),
        "request.timeout.ms": str(TIMEOUT_SECONDS * 500),
    }
    admin = jvm.org.apache.kafka.clients.admin.Admin.create(options)
    try:
        yield KafkaClient(jvm, admin, source.topics)
    finally:
        with suppress(GatewayError, OSError):  # the JVM may be gone
            admin.close(jvm.java.time.Duration.ZERO)


def offsets_noted(offsets: list[Any]) -> Offsets:
    """The offset of each partition in the offsets of all sources; that of ends and ticks has no topics."""
    topics = [topic for offset in offsets for topic in offset.items() if isinstance(topic[1], dict)]
    return {(topic, part): number for topic, parts in topics for part, number in parts.items()}


WAIT_SECONDS = 60  # while a job runs: as long as Kafka's client waits by itself
_NO_ID = "AAAAAAAAAAAAAAAAAAAAAA"  # sixteen zero bytes, the answer of brokers whose topics have no ids


def topics_of(
    spark: SparkSession, source: KafkaSource, read: Offsets
) -> tuple[tuple[str, ...], dict[str, str]]:
    """Ask Kafka for (all partitions as ``topic/partition``, the id of each topic that has one) of a source.

    Args:
        spark: the session.
        source: the source.
        read: the offsets up to which the checkpoint has read.

    Raises:
        SetupError: the connector is missing, no broker answers, it refuses the client, or a topic is missing.
        StateError: a transaction is open of which an earlier run has read records.
    """
    if not has_class(spark, KAFKA_SOURCE):
        do = f"Run `make setup`, or start with spark-submit --packages {kafka_coordinate()}."
        must = "Spark's Kafka connector must be on the class path"
        raise UnfitError(f"jars — {must}; got none. {do}")
    try:
        with client(spark, source) as kafka:
            found = kafka.described(TIMEOUT_SECONDS)
            if read and source.reads_committed:
                _require_committed(kafka, read)
            parts = [(topic, at) for topic, one in found for at in range(one.partitions().size())]
            return tuple(f"{topic}/{at}" for topic, at in parts), _ids(found)
    except JavaError as error:
        raise _explained(error.java_exception, source) from error


def _require_committed(kafka: KafkaClient, read: Offsets) -> None:
    """Refuse to read what is committed from behind records of a transaction that is still open.

    Spark would plan a batch that ends before it begins, and the checkpoint could never go on. An end that has
    come to lie before what was read means that records are lost, which Spark tells.
    """
    ends = kafka.ends(committed=True)
    behind = [part for part, number in read.items() if ends.get(part, number) < number]
    lasting = kafka.ends() if behind else {}
    for part in behind:
        if read[part] <= lasting[part]:
            must = "must be committed as far as they were read"
            got = f"{'/'.join(part)}, committed up to {ends[part]} and read up to {read[part]}"
            do = "Start the job once the transaction has ended, or with the kafka.isolation.level of before."
            raise StateError(f"source.topics — {must}; got {got}. {do}")


@dataclass
class Watch:
    """Looks at the topics of a job after each batch is read (`Look` of `spark_pace.spark.sources.input`).

    Attributes:
        kafka: asks the broker.
        ids: the ids of the topics.
        checkpoint: the job's.
    """

    kafka: KafkaClient
    ids: Mapping[str, str]
    checkpoint: Checkpoint
    _has_told: bool = False

    def __call__(
        self, batch_id: int, before: list[Any], after: list[Any], rows: int
    ) -> tuple[int, dict[str, str]]:
        """Check that the topics have their ids, and count the offsets of the batch that had no record.

        Raises:
            StateError: a topic has another id, or Spark's note of where the first batch begins is missing.
            JavaError: a topic is gone, or no broker answers.
        """
        require_same_ids(self.ids, _ids(self.kafka.described(WAIT_SECONDS)))
        if not before:
            raise not_of_spark(self.checkpoint.first_offset, "no file")
        begin = offsets_noted(before)
        # a partition that is new to the job begins at 0: Spark refuses one that begins elsewhere
        passed = sum(end - begin.get(part, 0) for part, end in offsets_noted(after).items())
        return passed - rows, self._told(passed - rows, passed, batch_id)

    def _told(self, skipped: int, passed: int, batch_id: int) -> dict[str, str]:
        """Once in a run, what offsets without a record may mean where a topic is compacted."""
        topics = self.kafka.compacted() if skipped and not self._has_told else []
        if not topics:
            return {}
        self._has_told = True
        got = f"none at {skipped:,} of {passed:,} in batch {batch_id}"
        why = (
            f"Kafka may compact {', '.join(topics)} (cleanup.policy), and remove records before they are read"
        )
        beside = "offsets of transactions count too (skipped_offsets in metrics)"
        do = "A min.compaction.lag.ms that is longer than the job may stand still keeps records until then."
        must = "should have a record at each offset"
        return {OFFSET: f"source.topics — {must}; got {got}. {why}; {beside}. {do}"}


def _ids(found: Described) -> dict[str, str]:
    ids = {topic: str(one.topicId().toString()) for topic, one in found}
    return {topic: known for topic, known in ids.items() if known != _NO_ID}


def require_same_ids(before: Mapping[str, str], now: Mapping[str, str]) -> None:
    """Refuse a topic with another id than before. Topics without an id, then or now, are accepted.

    Raises:
        StateError: a topic was deleted and made again.
    """
    for topic, known in before.items():
        if now.get(topic, known) != known:
            must = "must be the topics that the checkpoint has read from"
            how = "deleted and made again, or of another cluster"
            got = f"{topic}, which is a new one, {how} (its id was {known}, and is {now[topic]})"
            do = "Start a new checkpoint with a sink of its own."
            raise StateError(f"source.topics — {must}; got {got}. {do}")


_OF_OPTIONS = re.compile(
    r"\w*(?:Authenti|Authoriz)|ConfigException|InvalidConfiguration|\w+: Failed to load SSL keystore"
)


def _explained(failure: Any, source: KafkaSource) -> SetupError:
    """The error for a failure of Kafka's client, from its first cause with a known class or message."""
    causes = _causes(failure)
    names, servers = ", ".join(source.topics), source.servers
    for place, (kind, message) in enumerate(causes):
        if kind == "UnknownTopicOrPartitionException":
            must, got = f"must be topics of {servers}", f"got {names}: {message}"
            return SetupError(f"source.topics — {must}; {got}. Create the topic, or correct the name.")
        if _OF_OPTIONS.match(f"{kind}: {message}"):
            got = message + "".join(f": {kind}: {why}" for kind, why in causes[place + 1 : place + 2])
            must = f"must be what {servers} and Kafka's client accept"
            shows, trusts = "kafka.ssl.keystore, what the job shows", "kafka.ssl.truststore, what it trusts"
            do = f"Correct the options, the credentials and rights of this user, {shows}, or {trusts}."
            return UnfitError(f"source.options — {must}; got: {one_line(got)}. {do}")
    if "TimeoutException" in dict(causes):
        must, got = f"must answer within {TIMEOUT_SECONDS} s", f"got nothing from {servers}"
        do = "Start the broker, or correct the address or the security options."
        return SetupError(f"source.servers — {must}; {got}. {do}")
    kind, message = causes[-1]
    return SetupError(f"source — must be topics that can be read; got {kind}: {message}. Correct the source.")


def _causes(failure: Any) -> list[tuple[str, str]]:
    """(class, message) of a failure and of its causes, the deepest last."""
    found = []
    while failure is not None:
        found.append((str(failure.getClass().getSimpleName()), str(failure.getMessage()).rstrip(".")))
        failure = failure.getCause()
    return found


_LOG = logging.getLogger(__name__)
_POLL_SECONDS = 0.2
_PATIENCE_SECONDS = 2  # a question to a broker that is gone takes longer, and ends with the client


@contextmanager
def ticking(kafka: KafkaClient, clock: Clock | None, checkpoint: Checkpoint) -> Iterator[None]:
    """Let the clock of a job tick inside the block, if it has one."""
    if clock is None:
        yield
        return
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

    def require_readable(self, spark: SparkSession) -> tuple[dict[str, Any], tuple[str, ...]]:
        """Refuse brokers that do not answer, and topics that are missing or were deleted and made again.

        The checkpoint keeps the topics' ids and a checksum of the servers. If the job names other servers
        than before, they are trusted to have the same records at the same offsets, though topics have other
        ids.
        """
        partitions, ids = topics_of(spark, self.source, offsets_noted(self.checkpoint.last_offsets()))
        servers = digest(self.source.servers.encode())
        known = read_json(self.checkpoint.source_file) or {}
        try:
            require_same_ids(known.get("ids", {}), ids)
        except StateError as error:
            if known.get("servers") == servers:
                raise
            _LOG.warning("source.servers — are others than before, so this is taken over: %s", error)
        return {"topics": self.source.topics, "servers": servers, "ids": ids}, partitions

    @contextmanager
    def watched(self, spark: SparkSession, marks: Mapping[str, Any]) -> Iterator[Look]:
        """Watch the topics during a run, and refuse one that was deleted and made again. The clock ticks.

        Offsets without a record are counted.
        """
        with client(spark, self.source) as kafka, ticking(kafka, self.clock, self.checkpoint):
            yield Watch(kafka, marks["ids"], self.checkpoint)

    def rows(self, spark: SparkSession, plan: Plan, end: bool) -> DataFrame:
        """The rows of the intake; the query with the end reads all that is there in one batch."""
        spark.dataSource.register(OwnSource)
        records = spark.readStream.format("kafka").options(**self._options(end)).load()
        columns = self.source.columns
        own = [_own_column(column).alias(f"@{attribute}") for attribute, column in columns]
        records = records.select(*_PLACE, *own)
        clock = None if self.clock is None else self.checkpoint.clock_file
        make = partial(EndReader, end, clock, id_of(self.checkpoint))
        option = reader_option(make, partial(self.noted, ROWS), self.available_now)
        ends = spark.readStream.format(OWN_SOURCE).options(**option)
        ticks = ends.load().select(*(_of_tick(field) for field in records.schema))
        read = partial(_read, self.source.format, plan.schema.own)
        return intake_rows(records.union(ticks), plan, self.on_bad_record, read, self.checkpoint.side_tables)

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
    """The column of records, in a row of `EndReader`: the time of a tick stands in place of an offset."""
    value = F.col("number") if field.name == "offset" else F.lit(None)
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


def _records(batch: pa.RecordBatch) -> pa.Table:
    own = {name[1:]: batch.column(name) for name in batch.schema.names[len(_PLACE) :]}
    topics, partitions = (batch.column(name).dictionary_encode() for name in ("topic", "partition"))
    places = {SOURCE: paired(topics, partitions, "/"), OFFSET: batch.column("offset")}
    return pa.table({VALUE: batch.column("value"), **places, **own})
