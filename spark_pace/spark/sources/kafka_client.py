"""Asks Kafka about topics, by the client of Spark's connector in the JVM."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import SparkSession

from spark_pace.spark.internals import GatewayError, JavaError, jvm_of

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
