"""Where a job sends its alerts, as dataclasses; `spark_pace.job_file.alerts` reads them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

AlertTable = Literal["matches", "late", "quarantine"]
MOST_ROWS = 100  # of one message
TIMEOUT_US = 10_000_000


@dataclass(frozen=True)
class HttpAddress:
    """An address to which alerts are posted.

    Attributes:
        url: may hold ``${env:NAME}``, as the values of `headers` may.
        headers: of each request.
        most_rows: the most alerts of a request.
    """

    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    most_rows: int = MOST_ROWS


@dataclass(frozen=True)
class KafkaTopic:
    """A topic of Kafka.

    Attributes:
        servers: ``host:port``, several with commas; may hold ``${env:NAME}``, as the values of `options` may.
        topic: its name.
        options: of librdkafka, such as ``security.protocol``.
    """

    servers: str
    topic: str
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Command:
    """A program that reads alerts from its standard input, and its arguments."""

    words: tuple[str, ...]


@dataclass(frozen=True)
class AlertTarget:
    """A place that hears of new rows of a job's tables.

    Attributes:
        name: unique in the job; the target's place in the tables is kept under it.
        to: the place.
        tables: the tables whose rows are sent.
        rules: the rules whose matches are sent; None: all.
        timeout_us: how long the place may take to accept a message.
    """

    name: str
    to: HttpAddress | KafkaTopic | Command
    tables: tuple[AlertTable, ...] = ("matches",)
    rules: tuple[str, ...] | None = None
    timeout_us: int = TIMEOUT_US
