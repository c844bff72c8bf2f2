"""Asks Kafka for the topics before the query starts: one line instead of a stack trace minutes later."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.sql import SparkSession

from spark_pace.errors import SetupError
from spark_pace.spark.java.jars import kafka_coordinate

if TYPE_CHECKING:
    from spark_pace.job_file import KafkaSource

TIMEOUT_SECONDS = 20


def partitions_of(spark: SparkSession, source: KafkaSource) -> tuple[str, ...]:
    """Every partition of the topics as ``topic/partition``.

    Raises:
        SetupError: the connector is missing, no broker answers, it refuses the client, or a topic is missing.
    """
    jvm: Any = spark._jvm
    _require_connector(jvm)
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
        do = f"Run `make setup`, or start with spark-submit --packages {kafka_coordinate()}."
        must = "Spark's Kafka connector must be on the class path"
        raise SetupError(f"jars — {must}; got none. {do}") from error


def _explained(failure: Any, source: KafkaSource) -> SetupError:
    """The error for the cause that says most, known by the name of its class."""
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


def _wrong_options(must: str, got: str, do: str) -> SetupError:
    return SetupError(f"source.options — {must}; got: {got}. {do}")


def _causes(failure: Any) -> list[tuple[str, str]]:
    """Class and message of a failure and of each cause behind it, the deepest last."""
    found = []
    while failure is not None:
        found.append((str(failure.getClass().getSimpleName()), str(failure.getMessage()).rstrip(".")))
        failure = failure.getCause()
    return found
