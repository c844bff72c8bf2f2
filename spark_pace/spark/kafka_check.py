"""What can be wrong with a Kafka source, asked before the query starts: one line instead of a stack trace minutes later."""

from __future__ import annotations

from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.sql import SparkSession

from spark_pace.errors import SetupError
from spark_pace.spark.jars import kafka_coordinate
from spark_pace.spark.kafka import Topics

TIMEOUT_SECONDS = 20


def partitions_of(spark: SparkSession, source: Topics) -> tuple[str, ...]:
    """Every partition of the topics as ``topic/partition``.

    Raises:
        SetupError: the connector is missing, no broker answers, it refuses the client, or a topic is missing.
    """
    jvm: Any = spark._jvm
    _require_connector(jvm)
    options = {**source.client_options, "default.api.timeout.ms": str(TIMEOUT_SECONDS * 1000), "request.timeout.ms": str(TIMEOUT_SECONDS * 500)}
    properties = jvm.java.util.HashMap()
    for key, value in options.items():
        properties.put(key, value)
    topics = jvm.java.util.ArrayList()
    for topic in source.topics:
        topics.add(topic)
    try:
        admin = jvm.org.apache.kafka.clients.admin.Admin.create(properties)
        try:
            described = admin.describeTopics(topics).allTopicNames().get()
            return tuple(f"{topic}/{number}" for topic in source.topics for number in range(described.get(topic).partitions().size()))
        finally:
            admin.close(jvm.java.time.Duration.ZERO)
    except Py4JJavaError as error:
        raise _explained(error.java_exception, source) from error


def _require_connector(jvm: Any) -> None:
    try:
        jvm.java.lang.Thread.currentThread().getContextClassLoader().loadClass("org.apache.spark.sql.kafka010.KafkaSourceProvider")
    except Py4JError as error:
        raise SetupError(
            f"jars — Spark's Kafka connector must be on the class path; got none. Run `make setup`, or start with spark-submit --packages {kafka_coordinate()}."
        ) from error


def _explained(failure: Any, source: Topics) -> SetupError:
    """The cause that says most, by the name of its class."""
    causes = [failure]
    while causes[-1].getCause() is not None:
        causes.append(causes[-1].getCause())
    by_class = {str(cause.getClass().getSimpleName()): str(cause.getMessage()) for cause in causes}
    names = ", ".join(source.topics)
    for kind, message in by_class.items():
        if kind == "UnknownTopicOrPartitionException":
            return SetupError(f"source.topics — must be topics of {source.servers}; got {names}: {message} Create the topic, or correct the name.")
        if "Authentication" in kind or "Authorization" in kind:
            return SetupError(f"source.options — must be what {source.servers} accepts; got: {message}. Correct the credentials, or the rights of this user.")
        if kind == "ConfigException":
            return SetupError(f"source.options — must be options of Kafka's client; got: {message}. Correct them.")
    if "TimeoutException" in by_class:
        return SetupError(
            f"source.servers — must answer within {TIMEOUT_SECONDS} s; got nothing from {source.servers}. "
            "Start the broker, or correct the address or the security options."
        )
    kind, message = list(by_class.items())[-1]
    return SetupError(f"source — must be topics that can be read; got {kind}: {message}. Correct the source.")
