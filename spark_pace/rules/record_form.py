"""The keys of the section ``events`` that say how text tells of an event: lines, times, empty values."""

from __future__ import annotations

from collections.abc import Sequence
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.compute as pc

from spark_pace.core.expr.time_formats import DIRECTIVES, has_year, wrong_format
from spark_pace.core.plan.rule import Field, RecordForm
from spark_pace.rules.document.document import Node, Scalar, describe
from spark_pace.rules.document.report import nearest, quote
from spark_pace.rules.document.section import Section

FORM_KEYS = ("text", "timestamp_format", "year", "time_zone", "empty")
TEXT_KEYS = ("regex", "preset", "unmatched")
PRESETS = {
    "syslog": RecordForm(
        regex=r"(?:<\d{1,3}>)?(?P<time>[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d) (?P<host>\S+) "
        r"(?P<program>[^\[:]+)(?:\[(?P<pid>\d+)\])?: ?(?P<message>.*)",
        time_formats=("%b %d %H:%M:%S",),
    ),
    "combined": RecordForm(
        regex=r"(?P<address>\S+) (?:-|(?P<identity>\S+)) (?:-|(?P<user>.+?)) \[(?P<time>[^\]]+)\] "
        r'"(?:(?P<method>[A-Z]+) (?P<path>\S+)(?: (?P<protocol>[^" ]+))?|(?P<request>.*?))" '
        r'(?P<status>\d{3}) (?:-|(?P<bytes>\d+))(?: "(?:-|(?P<referer>.*?))" "(?:-|(?P<agent>.*?))")?',
        time_formats=("%d/%b/%Y:%H:%M:%S %z",),
    ),
}
_EXAMPLE = r"text: {regex: '(?P<time>\S+) (?P<message>.*)'}"
_TIMES_EXAMPLE = "timestamp_format: '%d.%m.%Y %H:%M:%S'"
_ORDINARY = RecordForm()


def read_form(keys: Section, fields: Sequence[Field]) -> RecordForm:
    """How text tells of events; what is wrong is reported."""
    lines = _read_lines(keys, fields)
    formats = _read_formats(keys) or lines.time_formats
    year, zone = keys.whole("year", 1900, 2199), _read_zone(keys)
    place = keys.key_place("timestamp_format") if keys.has("timestamp_format") else keys.place
    yearless = [format for format in formats if not has_year(format)]
    if yearless and year is None:
        must, do = (
            "must have the key year, for times are written without one",
            "Write for example year: 2024.",
        )
        keys.report.add(place, must, quote(yearless[0]), do)
    for key in ("year", "time_zone"):
        if keys.has(key) and not formats:
            keys.refuse([key], "It goes with timestamp_format.")
    is_null = keys.choice("empty", ("null", "text"), "text") == "null"
    return RecordForm(lines.regex, lines.ignores_unmatched, formats, year, zone, is_null)


def _read_lines(keys: Section, fields: Sequence[Field]) -> RecordForm:
    """What the key ``text`` says."""
    mapping = keys.mapping("text", _EXAMPLE)
    if mapping is None:
        return _ORDINARY
    text = Section(mapping, keys.report, TEXT_KEYS)
    ignores = text.choice("unmatched", ("bad", "ignore"), "bad") == "ignore"
    if text.has("preset"):
        text.refuse([key for key in ("regex",) if text.has(key)], "The preset has one.")
        preset = PRESETS[text.choice("preset", tuple(PRESETS), "syslog")]
        _require_groups(text, "preset", _groups(preset.regex or ""), fields, all_used=False)
        return RecordForm(preset.regex, ignores, preset.time_formats)
    regex = text.text("regex", _EXAMPLE) if text.require("regex", _EXAMPLE) else None
    if regex is None or not _is_expression(regex, text):
        return _ORDINARY
    _require_groups(text, "regex", _groups(regex.text), fields, all_used=True)
    return RecordForm(regex.text, ignores)


def _groups(regex: str) -> list[str]:
    """The names of the groups of an expression that RE2 has taken."""
    found = pc.extract_regex(pa.array([], pa.string()), regex).type
    return [found.field(number).name for number in range(found.num_fields)]


def _is_expression(regex: Scalar, text: Section) -> bool:
    """Tell whether RE2 takes the expression."""
    try:
        _groups(regex.text)
    except pa.ArrowInvalid as error:
        got = str(error).removeprefix("Invalid regular expression: ")
        do = "Write (?:...) for a group without a name." if "unnamed" in got else "Correct the expression."
        text.report.add(regex.place, "must be a regular expression as RE2 has them", quote(got), do)
        return False
    return True


def _require_groups(
    text: Section, key: str, groups: Sequence[str], fields: Sequence[Field], *, all_used: bool
) -> None:
    """Report groups that are no attributes and, if all must be used, attributes without a group."""
    names, place = [field.name for field in fields], text.key_place(key)
    if not groups:
        must, do = "must have a named group for each attribute", "Write (?P<name>...)."
        text.report.add(place, must, "none", do)
    wrong = [name for name in groups if names and name not in names]
    if wrong and all_used:
        must = "must have groups that are called for attributes of the schema"
        text.report.add(place, must, quote(wrong[0]), nearest(wrong[0], names))
    twice = [name for name in groups if groups.count(name) > 1]
    if twice:
        text.report.add(
            place, "must have one group for an attribute", f"{quote(twice[0])} twice", "Rename one."
        )
    if names and not set(groups) & set(names):
        must, do = "must have an attribute among its groups", f"Its groups are: {', '.join(groups)}."
        text.report.add(place, must, "none", do)


def _read_formats(keys: Section) -> tuple[str, ...]:
    """One format or a list of them."""
    node = keys.node("timestamp_format")
    if node is None:
        return ()
    items: Sequence[Node] = (
        [node] if isinstance(node, Scalar) else keys.texts("timestamp_format", _TIMES_EXAMPLE)
    )
    found = []
    for item in items:
        wrong = (
            wrong_format(item.text) if isinstance(item, Scalar) and isinstance(item.value, str) else "no text"
        )
        if wrong is None and isinstance(item, Scalar):
            found.append(item.text)
            continue
        must = f"must be a format of times, of {', '.join('%' + letter for letter in DIRECTIVES)}"
        got = wrong if wrong != "no text" else describe(item)
        keys.report.add(item.place, must, str(got), f"Write for example {_TIMES_EXAMPLE}.")
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
