"""What can be wrong with a Kafka source, asked before the query starts: one line instead of a stack trace minutes later."""

from __future__ import annotations

from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.sql import SparkSession

from spark_pace.errors import SetupError
from spark_pace.spark.java.jars import kafka_coordinate
from spark_pace.spark.sources.kafka import Topics

TIMEOUT_SECONDS = 20


def partitions_of(spark: SparkSession, source: Topics) -> tuple[str, ...]:
    """Every partition of the topics as ``topic/partition``.

    Raises:
        SetupError: the connector is missing, no broker answers, it refuses the client, or a topic is missing.
    """
    jvm: Any = spark._jvm
    _require_connector(jvm)
    options = {
        **source.client_options,
        "default.api.timeout.ms": str(TIMEOUT_SECONDS * 1000),
        "request.timeout.ms": str(TIMEOUT_SECONDS * 500),
    }
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
            return tuple(
                f"{topic}/{number}"
                for topic in source.topics
                for number in range(described.get(topic).partitions().size())
            )
        finally:
            admin.close(jvm.java.time.Duration.ZERO)
    except Py4JJavaError as error:
        raise _explained(error.java_exception, source) from error


def _require_connector(jvm: Any) -> None:
    try:
        jvm.java.lang.Thread.currentThread().getContextClassLoader().loadClass(
            "org.apache.spark.sql.kafka010.KafkaSourceProvider"
        )
    except Py4JError as error:
        raise SetupError(
            f"jars — Spark's Kafka connector must be on the class path; got none. Run `make setup`, or start with spark-submit --packages {kafka_coordinate()}."
        ) from error


def _explained(failure: Any, source: Topics) -> SetupError:
    """The cause that says most, by the name of its class."""
    causes = _causes(failure)
    names = ", ".join(source.topics)
    for place, (kind, message) in enumerate(causes):
        if kind == "UnknownTopicOrPartitionException":
            return SetupError(
                f"source.topics — must be topics of {source.servers}; got {names}: {message}. Create the topic, or correct the name."
            )
        if kind == "SslAuthenticationException":
            got = ": ".join(dict.fromkeys([message, causes[-1][1]]))
            return SetupError(
                f"source.options — must hold certificates that {source.servers} and this job trust in each other; got: {got}. "
                "Correct kafka.ssl.keystore, what the job shows, or kafka.ssl.truststore, what it trusts."
            )
        if "Authentication" in kind or "Authorization" in kind:
            return SetupError(
                f"source.options — must be what {source.servers} accepts; got: {message}. Correct the credentials, or the rights of this user."
            )
        if kind in ("ConfigException", "InvalidConfigurationException"):
            return SetupError(
                f"source.options — must be options of Kafka's client; got: {message}. Correct them."
            )
        if message.startswith("Failed to load SSL keystore"):
            why = "".join(f": {kind}: {message}" for kind, message in causes[place + 1 : place + 2])
            return SetupError(
                f"source.options — must name key stores that can be read; got: {message}{why}. Correct the file, its type or its password."
            )
    if "TimeoutException" in dict(causes):
        return SetupError(
            f"source.servers — must answer within {TIMEOUT_SECONDS} s; got nothing from {source.servers}. "
            "Start the broker, or correct the address or the security options."
        )
    kind, message = causes[-1]
    return SetupError(f"source — must be topics that can be read; got {kind}: {message}. Correct the source.")


def _causes(failure: Any) -> list[tuple[str, str]]:
    """Class and message of a failure and of what led to it, the deepest last."""
    found = []
    while failure is not None:
        found.append((str(failure.getClass().getSimpleName()), str(failure.getMessage()).rstrip(".")))
        failure = failure.getCause()
    return found
