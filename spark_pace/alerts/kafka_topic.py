"""Sends alerts to a topic of Kafka, the alerts of a rule to one partition, in order.

librdkafka does it: it connects again by itself, and keeps the order of records over its own retries.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence

from spark_pace.alerts.sender import Alert, Refusal, SendError
from spark_pace.errors import ConfigError, UnfitError, one_line
from spark_pace.job_file.alerts import AlertTarget, KafkaTopic

try:
    from confluent_kafka import KafkaError, KafkaException, Message, Producer
except ImportError as error:
    do = "Install it: pip install 'spark-pace[kafka]'."
    raise UnfitError(f"alerts — must have confluent-kafka for kafka; got no such package. {do}") from error

_REFUSED = {KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.INVALID_RECORD}
_MOST_ROWS = 500
_GRACE_SECONDS = 1.0
_SILENT = logging.Logger(__name__)  # it would tell each try of a long outage
_SILENT.addHandler(logging.NullHandler())


class KafkaRecords:
    """Sends to one topic with one producer."""

    most_rows = _MOST_ROWS
    refuses_all = False

    def __init__(self, to: KafkaTopic, target: AlertTarget) -> None:
        """Make the producer, which connects by itself.

        Raises:
            ConfigError: an option is none of Kafka's client, or does not fit.
        """
        self._topic, self._seconds = to.topic, target.timeout_us / 1e6
        self._settings = {
            "partitioner": "murmur2_random",  # as clients in Java choose the partition of a key
            **to.options,
            "bootstrap.servers": to.servers,
            "acks": "all",
            "enable.idempotence": True,
            "delivery.timeout.ms": target.timeout_us // 1000,
            "error_cb": self._note,
            "logger": _SILENT,
        }
        self._trouble = ""  # what the client has said of its connections since the last message
        try:
            self._producer: Producer | None = Producer(self._settings)
        except KafkaException as error:
            got = one_line(error.args[0].str())
            do = "Write them as librdkafka has them, such as security.protocol and ssl.ca.location."
            where = f"alerts.{target.name}.kafka.options"
            raise ConfigError.of(where, "must be options of Kafka's client", got, do) from error

    def send(self, alerts: Sequence[Alert]) -> list[Refusal]:
        """Send alerts, and wait until all replicas in sync have them."""
        producer = self._producer = self._producer or Producer(self._settings)
        self._trouble = ""
        found: dict[str, KafkaError | None] = {}
        until = time.monotonic() + self._seconds
        for alert in alerts:
            self._produce(producer, alert, found, until)
        if producer.flush(self._seconds + _GRACE_SECONDS):
            producer.purge()
            producer.flush(_GRACE_SECONDS)
        refused = list[Refusal]()
        for alert in alerts:
            error = found.get(alert.id, KafkaError(KafkaError._TIMED_OUT))
            if error is not None and error.code() not in _REFUSED:
                self._producer = None if error.fatal() else producer
                raise SendError(self._trouble or error.str(), may_have_arrived=True)
            if error is not None:
                refused.append(Refusal(alert, error.name(), error.str()))
        return refused

    def close(self) -> None:
        """Let go of the producer and of what it has not sent."""
        producer, self._producer = self._producer, None
        if producer is not None:
            producer.purge()
            producer.flush(_GRACE_SECONDS)

    def _produce(
        self, producer: Producer, alert: Alert, found: dict[str, KafkaError | None], until: float
    ) -> None:
        """Hand an alert to the client, which notes in `found` what became of it."""

        def note(error: KafkaError | None, _: Message) -> None:
            found[alert.id] = error

        for _ in range(2):
            try:
                producer.produce(self._topic, alert.text.encode(), alert.key.encode(), on_delivery=note)
            except BufferError:  # the client holds as many as its options allow
                producer.flush(max(0.0, until - time.monotonic()))
            except KafkaException as error:
                found[alert.id] = error.args[0]
            else:
                return
        found.setdefault(alert.id, KafkaError(KafkaError._QUEUE_FULL))

    def _note(self, error: KafkaError) -> None:
        if error.code() != KafkaError._ALL_BROKERS_DOWN:  # it says less than what came before
            self._trouble = error.str()
