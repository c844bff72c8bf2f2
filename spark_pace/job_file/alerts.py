"""The section `alerts` of a job file: who hears of new matches, late events and quarantined records.

Each place is a dataclass of its keys, with a line in `_PLACES`. It names its sender, which is loaded where a
job has such a target, and `resolved` gives it with what the machine and its environment say.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping as AnyMapping
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal, get_args

from spark_pace.core.plan.rule import Rule
from spark_pace.errors import ConfigError, UnfitError
from spark_pace.job_file.keys import (
    Kind,
    duration,
    filled,
    in_store,
    key,
    known,
    left_out,
    matching,
    out_of,
    read_keys,
    section_of,
    settings,
    text,
    texts,
    whole,
)
from spark_pace.job_file.secrets import Secrets
from spark_pace.job_file.source import is_topic
from spark_pace.rules.document import Listing, Scalar, Section, as_mapping, describe, nearest, quote

AlertTable = Literal["matches", "late", "quarantine"]
MOST_ROWS = 100  # of one message
TIMEOUT_US = 10_000_000
_HTTP = "https://example.com/alerts"
_TARGET = f"{{name: pager, http: {_HTTP}}}"
# options of Kafka's client that decide what is promised, and what to do instead
_OWN_OPTIONS = {
    **dict.fromkeys(("bootstrap.servers", "metadata.broker.list"), "Use servers."),
    **dict.fromkeys(("acks", "request.required.acks"), "Every alert is acknowledged by all replicas."),
    **dict.fromkeys(("delivery.timeout.ms", "message.timeout.ms"), "Use timeout."),
    "enable.idempotence": "It keeps the order, and is on.",
    "transactional.id": "The checkpoint keeps what was sent.",
}
# the text is not shown, for an address may be a secret
_is_address = matching(
    r"https?://\S+|\$\{env:[^}]+\}\S*",
    "must be an address that begins with http:// or https://",
    f"Write for example http: {_HTTP}.",
    "another text",
)
_is_header = matching(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+", "must be the name of a header", "Correct the name.")
_is_name = matching(
    r"[A-Za-z0-9_-]{1,64}", "must be letters, digits, _ and - (64 at most)", "Correct the name."
)


def _is_line(value: str) -> tuple[str, str, str] | None:
    return None if value.isprintable() else ("must be one line of text", "a control character", "Remove it.")


_ADDRESS = re.compile(r"https?://[!-~]+")


@dataclass(frozen=True)
class HttpAddress:
    """An address to which alerts are posted.

    Attributes:
        url: may hold ``${env:NAME}``, as the values of `headers` may.
        headers: of each request.
        most_rows: the most alerts of a request.
    """

    url: str = key(text(_HTTP, _is_address), name="http")
    headers: AnyMapping[str, str] = key(
        settings('{Authorization: "Bearer ${env:TOKEN}"}', _is_header, _is_line), dict
    )
    most_rows: int = key(whole(100, 1, 10_000), MOST_ROWS, "batch")

    sender: ClassVar[str] = "spark_pace.alerts.http_post:HttpPost"

    def resolved(self, secrets: Secrets, where: str) -> HttpAddress:
        """Return it with the values of the environment, which no message shows, whatever is wrong with them.

        Raises:
            SetupError: a variable of the environment is missing.
            ConfigError: a value does not fit.
        """
        url = secrets.resolve(self.url, f"{where}.http")
        headers = secrets.resolve_all(self.headers, f"{where}.headers")
        if not _ADDRESS.fullmatch(url):
            must, do = "must be an address that begins with http:// or https://", "Correct the variable."
            raise ConfigError.of(f"{where}.http", must, "another text in the environment", do)
        for name, value in headers.items():
            if not (value.isascii() and value.isprintable()):
                must, got = "must be one line of ASCII", "other characters, or an end of line"
                raise ConfigError.of(f"{where}.headers.{name}", must, got, "Correct the variable.")
        return replace(self, url=url, headers=headers)


@dataclass(frozen=True)
class KafkaTopic:
    """A topic of Kafka.

    Attributes:
        servers: ``host:port``, several with commas; may hold ``${env:NAME}``, as the values of `options` may.
        topic: its name.
        options: of librdkafka, such as ``security.protocol``.
    """

    servers: str = key(text("localhost:9092"))
    topic: str = key(text("alerts", is_topic))
    options: AnyMapping[str, str] = key(settings("{security.protocol: SSL}", left_out(_OWN_OPTIONS)), dict)

    sender: ClassVar[str] = "spark_pace.alerts.kafka_topic:KafkaRecords"

    def resolved(self, secrets: Secrets, where: str) -> KafkaTopic:
        """Return it with the values of the environment; raises as `HttpAddress`."""
        servers = secrets.resolve(self.servers, f"{where}.kafka.servers")
        options = secrets.resolve_all(self.options, f"{where}.kafka.options")
        return replace(self, servers=servers, options=options)


def _read_command(section: Section, name: str) -> tuple[str, ...] | None:
    """The words of a command; the path of its program is relative to the folder of the job file."""
    words = [item.text for item in section.texts(name, f"{name}: [./notify]")]
    if words and "/" in words[0]:
        words[0] = str((Path(section.place.file).parent / words[0]).resolve())
    return tuple(words) or None


@dataclass(frozen=True)
class Command:
    """A program that reads alerts from its standard input, and its arguments."""

    words: tuple[str, ...] = key(Kind("[./notify]", _read_command), name="command")

    sender: ClassVar[str] = "spark_pace.alerts.command_input:CommandInput"

    def resolved(self, secrets: Secrets, where: str) -> Command:
        """Return it if the program can be started.

        Raises:
            SetupError: it cannot.
        """
        if shutil.which(self.words[0]) is None:
            must = f"must name a program that can be started; got {self.words[0]}"
            raise UnfitError(f"{where}.command — {must}. Correct the path, or the rights of the file.")
        return self


@dataclass(frozen=True)
class AlertTarget:
    """A place that hears of new rows of a job's tables.

    Attributes:
        to: the place.
        name: unique in the job; the target's place in the tables is kept under it.
        tables: the tables whose rows are sent.
        rules: the rules whose matches are sent; None: all.
        timeout_us: how long the place may take to accept a message.
    """

    to: HttpAddress | KafkaTopic | Command  # which one of `_PLACES` says
    name: str = key(text("pager", _is_name))
    tables: tuple[AlertTable, ...] = key(
        texts("[matches]", "", out_of(get_args(AlertTable), "must be a table whose rows are sent")),
        ("matches",),
    )
    rules: tuple[str, ...] | None = key(texts("[my_rule]"), None)
    timeout_us: int = key(
        duration("10 s", bounds=(100_000, 600_000_000), told="100 ms to 10 min"), TIMEOUT_US
    )


_PLACES = {
    "http": Kind(_HTTP, lambda keys, _: filled(HttpAddress, keys)),
    "kafka": section_of(KafkaTopic, "{servers: localhost:9092, topic: alerts}"),
    "command": Kind("[./notify]", lambda keys, _: filled(Command, keys)),
}
_OF_HTTP = ("headers", "batch")
TARGET_KEYS = ("name", *_PLACES, *_OF_HTTP, "tables", "rules", "timeout")


def read_alerts(fields: Section, rules: Sequence[Rule], sink: str | None) -> tuple[AlertTarget, ...]:
    """The targets that are right; wrong ones are reported."""
    node, report = fields.node("alerts"), fields.report
    if node is None:
        return ()
    if not isinstance(node, Listing) or not node.items:
        got = "an empty list" if isinstance(node, Listing) else describe(node)
        report.add(node.place, "must be a list of targets", got, f"Write for example alerts: [{_TARGET}].")
        return ()
    if sink is not None and "://" in sink.removeprefix("file://") and not in_store(sink):
        must = "must go with tables on a file system that is mounted, in an object store or at hdfs://"
        report.add(fields.key_place("alerts"), must, quote(sink), "Mount it, or leave alerts out.")
    found: dict[str, AlertTarget] = {}
    for item in node.items:
        mapping = as_mapping(item, report, f"- {_TARGET}")
        keys = mapping and Section(mapping, report, TARGET_KEYS)
        target = keys and _read_target(keys, rules)
        if keys and target and target.name in found:
            place = keys.node("name") or keys
            report.add(place.place, "must be the name of one target", quote(target.name), "Choose another.")
        elif target:
            found[target.name] = target
    return tuple(found.values())


def _read_target(keys: Section, rules: Sequence[Rule]) -> AlertTarget | None:
    to, said = _read_place(keys), read_keys(keys, known(AlertTarget))
    if "matches" not in said.get("tables", ("matches",)):
        keys.refuse(("rules",), "Only matches belong to a rule.")
    node, written = keys.node("rules"), [rule.name for rule in rules if not rule.hands_on]
    for item in node.items if isinstance(node, Listing) and rules else ():
        if isinstance(item, Scalar) and isinstance(item.value, str) and item.text not in written:
            must, do = "must be a rule whose matches the job writes", nearest(item.text, written)
            keys.report.add(item.place, must, quote(item.text), do)
    return AlertTarget(to, **said) if to is not None and "name" in said else None


def _read_place(keys: Section) -> Any:
    named = [key for key in _PLACES if keys.has(key)]
    if len(named) != 1:
        must, got = "must have one place where it sends to", " and ".join(named) or "none"
        do = f"Keep one, with a target for each place, or write for example http: {_HTTP}."
        keys.report.add(keys.place, must, got, do)
        return None
    if named != ["http"]:
        keys.refuse(_OF_HTTP, "It belongs to http.")
    return _PLACES[named[0]].read(keys, named[0])
