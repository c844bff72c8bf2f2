"""Checks the topics with Kafka before the query starts, and their ids after each batch is read.

It asks by the client of Spark's connector in the JVM. Without the first check a wrong topic would end in a
stack trace minutes later. The second finds a topic that was deleted and made again: it has a new id. If Kafka
still answers with the old id, all that was read before belongs to the old topic. Spark notes names and
offsets only, and would go on in the middle of the new topic. It counts offsets at which there was no record,
too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import SparkSession

from spark_pace.core.tables import OFFSET
from spark_pace.errors import SetupError, StateError, UnfitError
from spark_pace.spark.checkpoint.checkpoint import Checkpoint
from spark_pace.spark.internals import KAFKA_SOURCE, GatewayError, JavaError, has_class, jvm_of
from spark_pace.spark.java.jars import kafka_coordinate

if TYPE_CHECKING:
    from spark_pace.job_file import KafkaSource


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
        names = self.jvm.java.util.ArrayList()
        for topic in self.topics:
            names.add(topic)
        patience = self.jvm.org.apache.kafka.clients.admin.DescribeTopicsOptions()
        answer = self.admin.describeTopics(names, patience.timeoutMs(seconds * 1000)).allTopicNames().get()
        return [(topic, answer.get(topic)) for topic in self.topics]

    def ends(self, committed: bool = False) -> Offsets:
        """The offset behind the last record of each partition, or before its first transaction still open."""
        kafka = self.jvm.org.apache.kafka
        level = kafka.common.IsolationLevel
        level = level.READ_COMMITTED if committed else level.READ_UNCOMMITTED
        asked = self.jvm.java.util.HashMap()
        for topic, one in self.described(TIMEOUT_SECONDS):
            for number in range(one.partitions().size()):
                asked.put(kafka.common.TopicPartition(topic, number), kafka.clients.admin.OffsetSpec.latest())
        found = self.admin.listOffsets(asked, kafka.clients.admin.ListOffsetsOptions(level)).all().get()
        return {(part.topic(), str(part.partition())): found.get(part).offset() for part in asked.keySet()}

    def compacted(self) -> list[str]:
        """The topics that Kafka compacts, or of which it does not say whether it does."""
        config = self.jvm.org.apache.kafka.common.config
        asked = {
            topic: config.ConfigResource(config.ConfigResource.Type.TOPIC, topic) for topic in self.topics
        }
        resources = self.jvm.java.util.ArrayList()
        for resource in asked.values():
            resources.add(resource)
        answers = self.admin.describeConfigs(resources).values()
        return [topic for topic, resource in asked.items() if _may_compact(answers.get(resource))]


def _may_compact(answer: Any) -> bool:
    try:
        return "compact" in str(answer.get().get("cleanup.policy").value())
    except JavaError:  # the user may not ask for the settings of topics
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
    properties = jvm.java.util.HashMap()
    for key, value in options.items():
        properties.put(key, value)
    admin = jvm.org.apache.kafka.clients.admin.Admin.create(properties)
    try:
        yield KafkaClient(jvm, admin, source.topics)
    finally:
        with suppress(GatewayError, OSError):  # the JVM may be gone
            admin.close(jvm.java.time.Duration.ZERO)


def offsets_noted(offsets: list[Any]) -> Offsets:
    """The offset of each partition in the offsets of all sources; `EndSource` has no topics."""
    topics = [topic for offset in offsets for topic in offset.items() if isinstance(topic[1], dict)]
    return {(topic, part): number for topic, parts in topics for part, number in parts.items()}


WAIT_SECONDS = 60  # while a job runs: as long as Kafka's client waits by itself
_NO_ID = "AAAAAAAAAAAAAAAAAAAAAA"  # sixteen zero bytes, the answer of brokers whose topics have no ids


@dataclass(frozen=True)
class Topics:
    """The broker's answer about topics.

    Attributes:
        partitions: all partitions as ``topic/partition``.
        ids: the id of each topic that has one.
    """

    partitions: tuple[str, ...]
    ids: dict[str, str]


def topics_of(spark: SparkSession, source: KafkaSource, read: Offsets | None = None) -> Topics:
    """Ask Kafka for the topics of a source.

    Args:
        spark: the session.
        source: the source.
        read: the offsets up to which the checkpoint has read; None: it is not looked at.

    Raises:
        SetupError: the connector is missing, no broker answers, it refuses the client, or a topic is missing.
        StateError: a transaction is open of which an earlier run has read records.
    """
    _require_connector(spark)
    try:
        with client(spark, source) as kafka:
            found = kafka.described(TIMEOUT_SECONDS)
            if read and source.reads_committed:
                _require_committed(kafka, read)
            sizes = [(topic, one.partitions().size()) for topic, one in found]
            partitions = tuple(f"{topic}/{number}" for topic, size in sizes for number in range(size))
            return Topics(partitions, _ids(found))
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
    _last: tuple[int, Offsets] | None = None  # the last batch, and the offsets behind it
    _has_told: bool = False

    def __call__(self, batch_id: int, note: bytes, rows: int) -> tuple[int, dict[str, str]]:
        """Check that the topics have their ids, and count the offsets of the batch that had no record.

        Raises:
            StateError: a topic has another id.
            JavaError: a topic is gone, or no broker answers.
        """
        require_same_ids(self.ids, _ids(self.kafka.described(WAIT_SECONDS)))
        if self._last is not None and self._last[0] == batch_id - 1:
            before = self._last[1]
        else:
            before = offsets_noted(self.checkpoint.offsets_before(batch_id))
        after = offsets_noted(self.checkpoint.offsets_after(batch_id, note))
        self._last = batch_id, after
        # a partition that is new to the job begins at 0: Spark refuses one that begins elsewhere
        passed = sum(end - before.get(part, 0) for part, end in after.items())
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


def _require_connector(spark: SparkSession) -> None:
    if not has_class(spark, KAFKA_SOURCE):
        do = f"Run `make setup`, or start with spark-submit --packages {kafka_coordinate()}."
        must = "Spark's Kafka connector must be on the class path"
        raise UnfitError(f"jars — {must}; got none. {do}")


def _explained(failure: Any, source: KafkaSource) -> SetupError:
    """The error for a failure of Kafka's client, from its first cause with a known class or message."""
    causes = _causes(failure)
    names, servers = ", ".join(source.topics), source.servers
    for place, (kind, message) in enumerate(causes):
        if kind == "UnknownTopicOrPartitionException":
            must, got = f"must be topics of {servers}", f"got {names}: {message}"
            return SetupError(f"source.topics — {must}; {got}. Create the topic, or correct the name.")
        if kind == "SslAuthenticationException":
            got = ": ".join(dict.fromkeys([message, causes[-1][1]]))
            must = f"must hold certificates that {servers} and this job trust in each other"
            shows, trusts = "kafka.ssl.keystore, what the job shows", "kafka.ssl.truststore, what it trusts"
            return _wrong_options(must, got, f"Correct {shows}, or {trusts}.")
        if "Authentication" in kind or "Authorization" in kind:
            do = "Correct the credentials, or the rights of this user."
            return _wrong_options(f"must be what {servers} accepts", message, do)
        if kind in ("ConfigException", "InvalidConfigurationException"):
            return _wrong_options("must be options of Kafka's client", message, "Correct them.")
        if message.startswith("Failed to load SSL keystore"):
            got = message + "".join(f": {kind}: {why}" for kind, why in causes[place + 1 : place + 2])
            do = "Correct the file, its type or its password."
            return _wrong_options("must name key stores that can be read", got, do)
    if "TimeoutException" in dict(causes):
        must, got = f"must answer within {TIMEOUT_SECONDS} s", f"got nothing from {servers}"
        do = "Start the broker, or correct the address or the security options."
        return SetupError(f"source.servers — {must}; {got}. {do}")
    kind, message = causes[-1]
    return SetupError(f"source — must be topics that can be read; got {kind}: {message}. Correct the source.")


def _wrong_options(must: str, got: str, do: str) -> UnfitError:
    return UnfitError(f"source.options — {must}; got: {got}. {do}")


def _causes(failure: Any) -> list[tuple[str, str]]:
    """(class, message) of a failure and of its causes, the deepest last."""
    found = []
    while failure is not None:
        found.append((str(failure.getClass().getSimpleName()), str(failure.getMessage()).rstrip(".")))
        failure = failure.getCause()
    return found
