"""Reads the section `alerts` of a job file: who hears of new matches, late events and quarantined records."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import cast, get_args

from spark_pace.core.plan.rule import Rule
from spark_pace.job_file.alert_targets import (
    MOST_ROWS,
    TIMEOUT_US,
    AlertTable,
    AlertTarget,
    Command,
    HttpAddress,
    KafkaTopic,
)
from spark_pace.job_file.paths import in_store
from spark_pace.job_file.source import TOPIC, read_texts
from spark_pace.rules.document.document import Listing, Mapping, Scalar, describe
from spark_pace.rules.document.report import nearest, quote
from spark_pace.rules.document.section import Section, as_mapping
from spark_pace.rules.lengths import read_bounded

_HTTP = "http: https://example.com/alerts"
_KAFKA = "kafka: {servers: localhost:9092, topic: alerts}"
_COMMAND = "command: [./notify]"
_EXAMPLE = f"alerts: [{{name: pager, {_HTTP}}}]"
_PLACES = ("http", "kafka", "command")
_KEYS = ("name", *_PLACES, "headers", "batch", "tables", "rules", "timeout")
_OF_HTTP = ("headers", "batch")
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_ADDRESS = re.compile(r"https?://\S+|\$\{env:[^}]+\}\S*")
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_MOST_ROWS, _LONGEST_US, _SHORTEST_US = 10_000, 600_000_000, 100_000
# options of Kafka's client that decide what is promised, and what to do instead
_OWN_OPTIONS = {
    "bootstrap.servers": "Use servers.",
    "metadata.broker.list": "Use servers.",
    **dict.fromkeys(("acks", "request.required.acks"), "Every alert is acknowledged by all replicas."),
    **dict.fromkeys(("delivery.timeout.ms", "message.timeout.ms"), "Use timeout."),
    "enable.idempotence": "It keeps the order, and is on.",
    "transactional.id": "The checkpoint keeps what was sent.",
}


def read_alerts(
    fields: Section, folder: Path, rules: Sequence[Rule], sink: str | None
) -> tuple[AlertTarget, ...]:
    """The targets that are right; wrong ones are reported. A command's path is relative to `folder`."""
    node = fields.node("alerts")
    if node is None:
        return ()
    if not isinstance(node, Listing) or not node.items:
        got = "an empty list" if isinstance(node, Listing) else describe(node)
        fields.report.add(node.place, "must be a list of targets", got, f"Write for example {_EXAMPLE}.")
        return ()
    if sink is not None and "://" in sink.removeprefix("file://") and not in_store(sink):
        must = "must go with tables on a file system that is mounted, in an object store or at hdfs://"
        do = "Mount it, or leave alerts out."
        fields.report.add(fields.key_place("alerts"), must, quote(sink), do)
    found: dict[str, AlertTarget] = {}
    for item in node.items:
        mapping = as_mapping(item, fields.report, f"- {{name: pager, {_HTTP}}}")
        target = None if mapping is None else _read_target(mapping, fields, folder, rules)
        if mapping is not None and target is not None and target.name in found:
            place = mapping.entries["name"][1].place
            fields.report.add(place, "must be the name of one target", quote(target.name), "Choose another.")
        elif target is not None:
            found[target.name] = target
    return tuple(found.values())


def _read_target(
    mapping: Mapping, fields: Section, folder: Path, rules: Sequence[Rule]
) -> AlertTarget | None:
    keys = Section(mapping, fields.report, _KEYS)
    keys.require("name", "name: pager")
    name = keys.text("name", "name: pager")
    if name is not None and not _NAME.fullmatch(name.text):
        must = "must be letters, digits, _ and - (64 at most)"
        keys.report.add(name.place, must, quote(name.text), "Correct the name.")
    to = _read_place(keys, folder)
    tables = _read_tables(keys)
    chosen = _read_rules(keys, tables, rules)
    timeout = _read_timeout(keys)
    return None if name is None or to is None else AlertTarget(name.text, to, tables, chosen, timeout)


def _read_place(keys: Section, folder: Path) -> HttpAddress | KafkaTopic | Command | None:
    named = [key for key in _PLACES if keys.has(key)]
    if len(named) != 1:
        must, got = "must have one of http, kafka and command", " and ".join(named) or "none"
        do = f"Keep one, with a target for each place, or write for example {_HTTP}."
        keys.report.add(keys.place, must, got, do)
        return None
    if named != ["http"]:
        keys.refuse(_OF_HTTP, "It belongs to http.")
    return _READ[named[0]](keys, folder)


def _read_http(keys: Section, _: Path) -> HttpAddress | None:
    url = keys.text("http", _HTTP)
    headers = _read_headers(keys)
    most = keys.whole("batch", 1, _MOST_ROWS) or MOST_ROWS
    if url is None:
        return None
    if not _ADDRESS.fullmatch(url.text):  # the text is not shown: an address may be a secret
        must = "must be an address that begins with http:// or https://"
        keys.report.add(url.place, must, "another text", f"Write for example {_HTTP}.")
    return HttpAddress(url.text, headers, most)


def _read_headers(keys: Section) -> dict[str, str]:
    mapping = keys.mapping("headers", 'headers: {Authorization: "Bearer ${env:TOKEN}"}')
    headers = read_texts(mapping, keys)
    for name, value in headers.items():
        assert mapping is not None
        place, node = mapping.entries[name]
        if not _HEADER.fullmatch(name):
            keys.report.add(place, "must be the name of a header", quote(name), "Correct the name.")
        if not value.isprintable():
            keys.report.add(node.place, "must be one line of text", "a control character", "Remove it.")
    return headers


def _read_kafka(keys: Section, _: Path) -> KafkaTopic | None:
    mapping = keys.mapping("kafka", _KAFKA)
    if mapping is None:
        return None
    own = Section(mapping, keys.report, ("servers", "topic", "options"))
    examples = {"servers": "servers: localhost:9092", "topic": "topic: alerts"}
    for key, example in examples.items():
        own.require(key, example)
    servers, topic = (own.text(key, example) for key, example in examples.items())
    if topic is not None and not TOPIC.fullmatch(topic.text):
        must, do = "must be the name of a topic", "Use letters, digits, ., _ and -."
        own.report.add(topic.place, must, quote(topic.text), do)
    options = _read_options(own)
    return None if servers is None or topic is None else KafkaTopic(servers.text, topic.text, options)


def _read_options(kafka: Section) -> dict[str, str]:
    mapping = kafka.mapping("options", "options: {security.protocol: SSL}")
    options = read_texts(mapping, kafka)
    for key in options:
        if (do := _OWN_OPTIONS.get(key)) is not None:
            assert mapping is not None
            kafka.report.add(mapping.entries[key][0], "must be left out", quote(key), do)
    return options


def _read_command(keys: Section, folder: Path) -> Command | None:
    words = tuple(item.text for item in keys.texts("command", _COMMAND))
    if not words:
        return None
    program = str((folder / words[0]).resolve()) if "/" in words[0] else words[0]
    return Command((program, *words[1:]))


_READ: dict[str, Callable[[Section, Path], HttpAddress | KafkaTopic | Command | None]] = {
    "http": _read_http,
    "kafka": _read_kafka,
    "command": _read_command,
}


def _read_tables(keys: Section) -> tuple[AlertTable, ...]:
    known = get_args(AlertTable)
    found: dict[AlertTable, None] = {}
    for item in keys.texts("tables", "tables: [matches]"):
        if item.text in known:
            found[cast(AlertTable, item.text)] = None
        else:
            must = "must be a table whose rows are sent"
            keys.report.add(item.place, must, quote(item.text), nearest(item.text, known))
    return tuple(found) or ("matches",)


def _read_rules(keys: Section, tables: Sequence[AlertTable], rules: Sequence[Rule]) -> tuple[str, ...] | None:
    """The rules that are named; None if the key is missing."""
    if not keys.has("rules"):
        return None
    if "matches" not in tables:
        keys.refuse(("rules",), "Only matches belong to a rule.")
    names = [rule.name for rule in rules if not rule.hands_on]
    items: list[Scalar] = keys.texts("rules", "rules: [my_rule]")
    for item in items:
        if rules and item.text not in names:
            must = "must be a rule whose matches the job writes"
            keys.report.add(item.place, must, quote(item.text), nearest(item.text, names))
    return tuple(item.text for item in items)


def _read_timeout(keys: Section) -> int:
    bounds = _SHORTEST_US, _LONGEST_US
    timeout_us = read_bounded(keys, "timeout", "10 s", bounds, "100 ms to 10 min")
    return TIMEOUT_US if timeout_us is None else timeout_us
