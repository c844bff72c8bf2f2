"""Reads the keys of the section ``events`` about the form of text: lines, times, empty values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.compute as pc

from spark_pace.core.expr import is_single
from spark_pace.core.expr.time_formats import DIRECTIVES, wrong_format
from spark_pace.core.plan.record_form import ORDINARY, RecordForm
from spark_pace.core.plan.rule import Field
from spark_pace.rules.document.document import Listing, Node, Scalar, describe
from spark_pace.rules.document.report import nearest, quote
from spark_pace.rules.document.section import Section

FORM_KEYS = ("text", "timestamp_format", "year", "time_zone", "empty")
TEXT_KEYS = ("regex", "preset", "unmatched")
_COMMON = (
    r"(?P<address>\S+) (?:-|(?P<identity>\S+)) (?:-|(?P<user>[^-].*?|-[^ ].*?)) "
    r"\[(?P<time>[^\]]+)\] "
    r'"(?:(?P<method>[A-Z]+) (?P<path>\S+)(?: (?P<protocol>[^" ]+))?|(?P<request>.*?))" '
    r"(?P<status>\d{3}) (?:-|(?P<bytes>\d+))"
)
# servers write a quote in a text as \" or \x22; what else they are told to write stands behind
_IN_QUOTES = r' "(?:-|(?P<referer>(?:[^"\\]|\\.)*))" "(?:-|(?P<agent>(?:[^"\\]|\\.)*))"(?: (?P<rest>.*))?'
PRESETS = {
    "syslog": RecordForm(
        regex=r"(?:<\d{1,3}>)?(?P<time>[A-Z][a-z]{2} [ \d]\d [\d:]{8}|\d{4}-\S+) (?P<host>\S+) "
        r"(?P<program>[^\[:\s]+)(?:\[(?P<pid>\d+)\])?: ?(?P<message>.*)",
        time_formats=("%b %d %H:%M:%S", "%Y-%m-%dT%H:%M:%S.%f%z", "%Y-%m-%dT%H:%M:%S%z"),
        preset="syslog",
    ),
    "combined": RecordForm(
        regex=_COMMON + _IN_QUOTES,
        time_formats=("%d/%b/%Y:%H:%M:%S %z",),
        preset="combined",
        further=(_COMMON + r'(?: "(?:-|(?P<referer>.*?))" "(?:-|(?P<agent>.*?))")?',),
    ),
    "json_in_text": RecordForm(has_json=True, preset="json_in_text"),
}
_EXAMPLE = r"text: {regex: '(?P<time>\S+) (?P<message>.*)'}"
_TIMES_EXAMPLE = "timestamp_format: '%d.%m.%Y %H:%M:%S'"


def read_form(keys: Section, fields: Sequence[Field]) -> RecordForm:
    """Read how records are parsed from text: lines, formats of times, empty values."""
    lines = _read_lines(keys, fields)
    formats = _read_formats(keys) or lines.time_formats
    for key in ("year", "time_zone"):
        if keys.has(key) and not formats and not keys.has("timestamp_format"):
            keys.refuse([key], "It goes with timestamp_format.")
    return replace(
        lines,
        time_formats=formats,
        year=keys.whole("year", 1900, 2199),
        zone=_read_zone(keys),
        empty_is_null=keys.choice("empty", ("null", "text"), "text") == "null",
    )


def groups_of(regex: str) -> list[str]:
    """The names of the groups of a regular expression.

    Raises:
        pa.ArrowInvalid: RE2 refuses the expression, or a group has no name.
    """
    found = pc.extract_regex(pa.array([], pa.string()), regex).type
    return [found.field(number).name for number in range(found.num_fields)]


def _read_lines(keys: Section, fields: Sequence[Field]) -> RecordForm:
    """Read the key ``text``."""
    mapping = keys.mapping("text", _EXAMPLE)
    if mapping is None:
        return ORDINARY
    text = Section(mapping, keys.report, TEXT_KEYS)
    ignores = text.choice("unmatched", ("bad", "ignore"), "bad") == "ignore"
    if text.has("preset"):
        text.refuse(["regex"], "The preset has one.")
        preset = PRESETS[text.choice("preset", tuple(PRESETS), "syslog")]
        if preset.regex is not None:
            _require_attributes(text, "preset", groups_of(preset.regex), fields)
        return replace(preset, ignores_unmatched=ignores)
    regexes = [one for one in _read_regexes(text) if _is_expression(one, text)]
    if not regexes:
        return ORDINARY
    _require_attributes(text, "regex", [name for one in regexes for name in groups_of(one.text)], fields)
    for one in regexes:
        _require_known(one, groups_of(one.text), fields, text)
    first, *further = (one.text for one in regexes)
    return RecordForm(first, ignores_unmatched=ignores, further=tuple(further))


def _read_regexes(text: Section) -> Sequence[Scalar]:
    """Read one regular expression, or a list of them."""
    if not text.require("regex", _EXAMPLE):
        return ()
    if isinstance(text.node("regex"), Listing):
        return text.texts("regex", _EXAMPLE)
    one = text.text("regex", _EXAMPLE)
    return () if one is None else (one,)


def _is_expression(regex: Scalar, text: Section) -> bool:
    """True if RE2 accepts the expression; else that is reported."""
    try:
        groups_of(regex.text)
    except pa.ArrowInvalid as error:
        got = str(error).removeprefix("Invalid regular expression: ")
        do = "Write (?:...) for a group without a name." if "unnamed" in got else "Correct the expression."
        text.report.add(regex.place, "must be a regular expression as RE2 has them", quote(got), do)
        return False
    return True


def _require_attributes(text: Section, key: str, groups: Sequence[str], fields: Sequence[Field]) -> None:
    """Report groups if none of them is an attribute."""
    if fields and not {field.name for field in fields} & set(groups):
        got, do = ", ".join(groups) or "no named group", "Call them by the same names."
        text.report.add(text.key_place(key), "must have a group that is an attribute", got, do)


def _require_known(regex: Scalar, groups: Sequence[str], fields: Sequence[Field], text: Section) -> None:
    """Report groups that are no attributes, are no single values, or have the same name."""
    types = {field.name: field.type for field in fields}
    for name in dict.fromkeys(groups if set(groups) & set(types) else ()):
        if name not in types:
            must = "must have groups that are called as attributes are"
            do = f"{nearest(name, list(types))} What is no attribute stands in (?:...)."
            text.report.add(regex.place, must, quote(name), do)
        elif not is_single(types[name]):
            must, do = "must have groups that are single values", "Declare what it holds."
            text.report.add(regex.place, must, f"{name} {types[name]}", do)
        if groups.count(name) > 1:
            must, do = "must have one group of a name", "Rename one."
            text.report.add(regex.place, must, f"several {quote(name)}", do)


def _read_formats(keys: Section) -> tuple[str, ...]:
    """Read one format of times, or a list of them."""
    node = keys.node("timestamp_format")
    if node is None:
        return ()
    items: Sequence[Node] = (
        [node] if isinstance(node, Scalar) else keys.texts("timestamp_format", _TIMES_EXAMPLE)
    )
    found = []
    for item in items:
        is_text = isinstance(item, Scalar) and isinstance(item.value, str)
        wrong = wrong_format(item.text) if is_text and isinstance(item, Scalar) else describe(item)
        if wrong is None and isinstance(item, Scalar):
            found.append(item.text)
            continue
        must = f"must be a format of times, of {', '.join('%' + letter for letter in DIRECTIVES)}"
        keys.report.add(item.place, must, str(wrong), f"Write for example {_TIMES_EXAMPLE}.")
    return tuple(found)


def _read_zone(keys: Section) -> str | None:
    zone = keys.text("time_zone", "time_zone: Europe/Berlin")
    if zone is None:
        return None
    try:
        ZoneInfo(zone.text)
    except (ValueError, OSError, KeyError):
        must, do = "must be a zone such as Europe/Berlin", "Use a name of the tz database."
        keys.report.add(zone.place, must, quote(zone.text), do)
        return None
    return zone.text
