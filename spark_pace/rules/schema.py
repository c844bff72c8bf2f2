"""Reads the section ``events`` of a rule or job file: attributes, side tables, and the form of text.

A schema is a text of names and types: ``id BIGINT, price DECIMAL(10,2)``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.compute as pc

from spark_pace.core.expr import STRUCT, TypeName, is_single
from spark_pace.core.expr.time_functions import DIRECTIVES, wrong_format
from spark_pace.core.plan.rule import ORDINARY, EventSchema, Field, RecordForm, SideTable
from spark_pace.rules.document import (
    Listing,
    Mapping,
    Node,
    Place,
    Report,
    Scalar,
    Section,
    as_mapping,
    check_address,
    describe,
    nearest,
    quote,
)
from spark_pace.rules.expressions.types import ONE_VALUE
from spark_pace.rules.lengths import read_duration

# of `events` of a job file: in which order events come, and what becomes of bad input
OF_SOURCES = ("source_column", "expected_sources", "idle_after")
OF_JOBS = (
    "delay", "ordering", *OF_SOURCES, "heartbeat", "deduplicate_on", "on_bad_record", "on_operator_error",
    "operator_timeout", "clock",
)  # fmt: skip
IN_JOBS = dict.fromkeys(OF_JOBS, "It belongs to `events` of a job file, which Python takes too.")
TYPE_NAMES: tuple[TypeName, ...] = ("BOOLEAN", "BIGINT", "DOUBLE", "STRING", "TIMESTAMP", "DATE")
_DECLARABLE = (*TYPE_NAMES, "DECIMAL(p,s)", "ARRAY<TYPE>", "STRUCT<...>")
_TYPE_LIKE = re.compile(r"\w+|\w+\s*(?:\(.*\)|<.*>)", re.DOTALL)
_TEXTS = re.compile(r"(?:VAR)?CHAR\b", re.IGNORECASE)
MAX_ATTRIBUTES = 1_000
_EXAMPLE = 'schema: "time TIMESTAMP, id BIGINT, name STRING"'
SIDE_TABLE_KEYS = ("path", "on", "schema", "refresh")
_TABLES_EXAMPLE = 'lookup: {hosts: {path: hosts.csv, on: host, schema: "owner STRING"}}'
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_MOST_KEYS = 16  # attributes in `on`
FORM_KEYS = ("text", "timestamp_format", "year", "time_zone", "empty")
SCHEMA_KEYS = ("schema", "event_time", "time_unit", "tie_break", "lookup", *FORM_KEYS)
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
_TEXT_EXAMPLE = r"text: {regex: '(?P<time>\S+) (?P<message>.*)'}"
_TIMES_EXAMPLE = "timestamp_format: '%d.%m.%Y %H:%M:%S'"
SCALARS: dict[str, str] = {
    "BOOLEAN": "BOOLEAN",
    "TINYINT": "BIGINT",
    "SMALLINT": "BIGINT",
    "INT": "BIGINT",
    "INTEGER": "BIGINT",
    "BIGINT": "BIGINT",
    "LONG": "BIGINT",
    "FLOAT": "DOUBLE",
    "DOUBLE": "DOUBLE",
    "STRING": "STRING",
    "TIMESTAMP": "TIMESTAMP",
    "DATE": "DATE",
}
_MAX_DIGITS = 38
_DECLARATION = re.compile(r"\s*(?:`([^`]+)`|([^\s`,]+))\s+(\S.*?)\s*", re.DOTALL)
_MEMBER = re.compile(r"\s*(?:`([^`]+)`|([^\s`,:]+))\s*[\s:]\s*(\S.*?)\s*", re.DOTALL)
_STRUCT = re.compile(r"STRUCT\s*<(.*)>", re.IGNORECASE | re.DOTALL)
_ARRAY = re.compile(r"ARRAY\s*<\s*(.*?)\s*>", re.IGNORECASE | re.DOTALL)
MAX_DEPTH = 20  # STRUCTs inside each other
_PARAMETERS = {
    "<": f"Write ARRAY<TYPE> of single values, or STRUCT<name: TYPE, ...>, at most {MAX_DEPTH} deep.",
    "(": "Write 1 to 38 digits, and how many of them stand behind the point.",
}
_DECIMAL = re.compile(r"(?:DECIMAL|NUMERIC|DEC)\s*\(\s*(\d{1,4})\s*(?:,\s*(\d{1,4})\s*)?\)", re.IGNORECASE)


def read_schema(keys: Section) -> EventSchema | None:
    """Read the schema of events; None if it is wrong."""
    report = keys.report
    before = report.count
    fields = _read_declared(keys)
    event_time = keys.text("event_time", "event_time: time", "event_time: and the attribute's name")
    unit = keys.choice("time_unit", ("s", "ms", "us"), "")
    if fields and event_time is not None:
        _check_event_time(event_time, fields, keys)
    tie_break = _tie_break(keys, fields)
    sides = _read_side_tables(keys, fields)
    form = read_form(keys, fields)
    if report.count > before or event_time is None:
        return None
    attributes = (*fields, *(field for side in sides for field in side.fields))
    return EventSchema(attributes, event_time.text, tie_break, unit or None, sides, form)  # type: ignore[arg-type]


def _read_declared(keys: Section) -> list[Field]:
    report = keys.report
    text = keys.text("schema", _EXAMPLE, _EXAMPLE)
    fields: list[Field] = []
    if text is None:
        return fields
    found = list(islice(declared(text.text), MAX_ATTRIBUTES + 1))
    if len(found) > MAX_ATTRIBUTES:
        must, do = f"must declare at most {MAX_ATTRIBUTES} attributes", "Declare those that rules use."
        report.add(text.place, must, "more", do)
        return fields
    structs = {one.name for one in found if one.kind == STRUCT}
    for one in found:
        place = text.at(one.at)
        field = _field(one, place, structs, report)
        if field is not None and _is_new(field, fields, place, report):
            fields.append(field)
    return fields


def _field(one: Declared, place: Place, structs: set[str], report: Report) -> Field | None:
    if not one.name or (one.kind is None and not _TYPE_LIKE.fullmatch(one.written)):
        must, got = "must declare a name and a type", quote(one.part)
        report.add(place, must, got, f"Write for example {_EXAMPLE}.")
        return None
    if one.kind is None:
        do = next((do for sign, do in _PARAMETERS.items() if sign in one.written), "")
        do = do or nearest(one.written.upper(), _DECLARABLE)
        if _TEXTS.match(one.written):
            do = "Write STRING, whatever the length."
        report.add(place, f"must give {one.name} a type", quote(one.written), do)
        return None
    in_struct = len(one.path) > 1 or one.kind == STRUCT or one.name.partition(".")[0] in structs
    if in_struct and "." in one.path[-1]:
        must = "must have no dot in the name of a STRUCT or of what it holds, nor begin as these do"
        report.add(place, must, quote(one.path[-1]), "Choose another name.")
        return None
    if one.name.startswith("@"):
        report.add(place, 'must not begin with "@"', quote(one.name), "Choose another name.")
        return None
    return Field(one.name, one.kind)


def _is_new(field: Field, fields: list[Field], place: Place, report: Report) -> bool:
    for other in fields:
        if other.name.lower() == field.name.lower():
            report.add(
                place,
                "must declare an attribute once (letter case aside)",
                quote(field.name),
                "Remove or rename one.",
            )
            return False
    return True


def _type_named(item: Scalar, fields: Sequence[Field], report: Report) -> str | None:
    """The type of the attribute that a text names; None if there is none, which is reported."""
    types = {field.name: field.type for field in fields}
    if fields and item.text not in types:
        must, do = "must name an attribute of the schema", nearest(item.text, types)
        report.add(item.place, must, quote(item.text), do)
    return types.get(item.text)


def _check_event_time(event_time: Scalar, fields: list[Field], keys: Section) -> None:
    report, kind = keys.report, _type_named(event_time, fields, keys.report)
    if kind not in ("TIMESTAMP", "BIGINT", None):
        do = "Change its type in the schema."
        report.add(event_time.place, "must name a TIMESTAMP or BIGINT attribute", kind, do)
    elif kind == "BIGINT" and not keys.has("time_unit"):
        must, do = "must say what a BIGINT event time counts", "Add time_unit: s, ms or us."
        report.add(keys.place, must, "no time_unit", do)
    elif kind == "TIMESTAMP":
        keys.refuse(["time_unit"], "A TIMESTAMP needs no unit.")


def _tie_break(keys: Section, fields: list[Field]) -> tuple[str, ...]:
    found: list[str] = []
    for item in keys.texts("tie_break", "tie_break: [id]"):
        kind = _type_named(item, fields, keys.report)
        if kind is not None and not is_single(kind):
            must = "must name an attribute of single values"
            keys.report.add(item.place, must, f"{quote(item.text)}, {kind}", ONE_VALUE)
        elif item.text in found:
            keys.report.add(item.place, "must name an attribute once", quote(item.text), "Remove one.")
        found.append(item.text)
    return tuple(found)


def show_schema(schema: EventSchema) -> str:
    """The schema in the form of a rule file."""
    return ", ".join(_shown(schema, ()))


def _shown(schema: EventSchema, outer: tuple[str, ...]) -> Iterator[str]:
    """Yield the declarations of the attributes directly inside the STRUCTs `outer`."""
    for field in schema.fields:
        path = schema.path_of(field.name)
        if path[:-1] == outer:
            held = f"<{', '.join(_shown(schema, path))}>" if field.type == STRUCT else ""
            yield f"{path[-1]} {field.type}{held}"


def _read_side_tables(keys: Section, fields: Sequence[Field]) -> tuple[SideTable, ...]:
    """Read the side tables; wrong ones are reported and left out."""
    mapping = keys.mapping("lookup", _TABLES_EXAMPLE)
    names = {field.name.partition(".")[0].lower() for field in fields}
    found: list[SideTable] = []
    for name, (place, node) in (mapping.entries if mapping else {}).items():
        if not _IDENTIFIER.fullmatch(name) or name.lower() in names:
            must = "must be a name of letters, digits and _ that no attribute has"
            keys.report.add(place, must, quote(name), "Choose another name.")
        names.add(name.lower())
        inside = as_mapping(node, keys.report, _TABLES_EXAMPLE)
        if inside is not None:
            section = Section(inside, keys.report, SIDE_TABLE_KEYS)
            side = _read_table(name, section, fields)
            found += [] if side is None else [side]
    return tuple(found)


def _read_table(name: str, section: Section, fields: Sequence[Field]) -> SideTable | None:
    path = _read_path(section)
    on = _read_on(section, fields)
    columns = _read_declared(section)
    for column in columns:
        if column.name in (key for _, key in on):
            must = "must not declare a column of its key, which the event has"
            section.report.add(section.key_place("schema"), must, quote(column.name), "Leave it out.")
        elif not is_single(column.type) or not _IDENTIFIER.fullmatch(column.name):
            must = "must declare single values, under names of letters, digits and _"
            got = f"{quote(column.name)}, {column.type}"
            section.report.add(section.key_place("schema"), must, got, "Leave it out, or rename it.")
    refresh_us = read_duration(section.node("refresh"), section.report, least=1)
    if path is None or not on or not columns:
        return None
    return SideTable(name, path, on, tuple(columns), refresh_us)


def _read_path(section: Section) -> str | None:
    path = section.text("path", "path: hosts.csv", "path: hosts.csv")
    if path is None:
        return None
    check_address(path, section.report)
    text = path.text.removeprefix("file://")
    return text.rstrip("/") if "://" in text else str((Path(path.place.file).parent / text).resolve())


def _read_on(section: Section, fields: Sequence[Field]) -> tuple[tuple[str, str], ...]:
    """Read the key ``on`` as (attribute, column) pairs: an attribute, a list, or a mapping to columns."""
    node = section.node("on", "on: and the attribute of the events")
    pairs = _pairs(node)
    if node is not None and (not pairs or len(pairs) > _MOST_KEYS):
        must = f"must name one to {_MOST_KEYS} attributes, as text, as a list, or as attribute: column"
        section.report.add(node.place, must, describe(node), "Write for example on: host.")
        return ()
    found: list[tuple[str, str]] = []
    for item, column in pairs:
        if not _is_key(item, fields, section.report) or item.text in dict(found):
            continue
        if column in [taken for _, taken in found]:
            must, do = "must name each column once", "Join two attributes by two tables."
            section.report.add(item.place, must, f"{quote(column)} twice", do)
            continue
        found.append((item.text, column))
    return tuple(found)


def _pairs(node: Node | None) -> list[tuple[Scalar, str]]:
    if isinstance(node, Scalar):
        return [(node, node.text)]
    if isinstance(node, Listing):
        return [(item, item.text) for item in node.items if isinstance(item, Scalar)]
    if isinstance(node, Mapping):
        pairs = [
            (Scalar(place, name, name, None), column.text)
            for name, (place, column) in node.entries.items()
            if isinstance(column, Scalar) and isinstance(column.value, str) and column.text
        ]
        return pairs if len(pairs) == len(node.entries) else []
    return []


def _is_key(item: Scalar, fields: Sequence[Field], report: Report) -> bool:
    kind = _type_named(item, fields, report)
    if kind is not None and (not is_single(kind) or kind == "DOUBLE"):
        must, do = "must name an attribute of single, exact values", ONE_VALUE
        report.add(item.place, must, f"{quote(item.text)}, {kind}", do)
        return False
    return kind is not None


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
    mapping = keys.mapping("text", _TEXT_EXAMPLE)
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
    text.require("regex", _TEXT_EXAMPLE)
    written = text.texts("regex", _TEXT_EXAMPLE, alone=True)
    regexes = [one for one in written if _is_expression(one, text)]
    if not regexes:
        return ORDINARY
    _require_attributes(text, "regex", [name for one in regexes for name in groups_of(one.text)], fields)
    for one in regexes:
        _require_known(one, groups_of(one.text), fields, text)
    first, *further = (one.text for one in regexes)
    return RecordForm(first, ignores_unmatched=ignores, further=tuple(further))


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
    found = []
    for item in keys.texts("timestamp_format", _TIMES_EXAMPLE, alone=True):
        wrong = wrong_format(item.text)
        if wrong is None:
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


@dataclass(frozen=True)
class Declared:
    """A declaration: a name and its type.

    Attributes:
        part: the whole text of the declaration.
        at: the offset of its beginning in the text of the schema.
        name: the name, with the names of the STRUCTs around it; empty if the part is no declaration.
        written: the type as written.
        kind: the usual name of the type, the same for all spellings; None if there is no such type.
        path: the names of the STRUCTs around it, outermost first, then its own name.
    """

    part: str
    at: int
    name: str
    written: str
    kind: str | None
    path: tuple[str, ...] = ()


def declared(text: str) -> Iterator[Declared]:
    """Yield the declarations of a schema, in order; after a STRUCT those inside it: ``user``, ``user.id``."""
    yield from _declared(text, 0, ())


def _declared(text: str, start: int, outer: tuple[str, ...]) -> Iterator[Declared]:
    """Yield the declarations of a text inside the STRUCTs `outer`; `start` is its offset in the schema."""
    for at, part in _parts(text):
        begins = start + at + len(part) - len(part.lstrip())
        match = (_MEMBER if outer else _DECLARATION).fullmatch(part)
        if match is None:
            yield Declared(part.strip(), begins, "", "", None)
            continue
        path = (*outer, match[1] or match[2])
        struct = _STRUCT.fullmatch(match[3])
        if struct is None or len(path) > MAX_DEPTH:
            yield Declared(part.strip(), begins, ".".join(path), match[3], type_of(match[3]), path)
        else:
            yield Declared(part.strip(), begins, ".".join(path), match[3], "STRUCT", path)
            yield from _declared(struct[1], start + at + match.start(3) + struct.start(1), path)


def type_of(written: str) -> str | None:
    """The usual name of a type: BIGINT for ``int``; None for a STRUCT, or if there is no such type."""
    array = _ARRAY.fullmatch(written)
    if array is not None:
        element = None if _ARRAY.fullmatch(array[1]) else type_of(array[1])
        return element and f"ARRAY<{element}>"
    decimal = _DECIMAL.fullmatch(written)
    if decimal is None:
        return SCALARS.get(written.upper())
    precision, scale = int(decimal[1]), int(decimal[2] or 0)
    possible = 1 <= precision <= _MAX_DIGITS and scale <= precision
    return f"DECIMAL({precision},{scale})" if possible else None


def _parts(text: str) -> Iterator[tuple[int, str]]:
    """Split a text at its commas; yield (offset, part).

    Commas inside backticks, parentheses and ``<>`` do not split.
    """
    start = depth = 0
    quoted = False
    for at, sign in enumerate(text):
        if sign == "`":
            quoted = not quoted
        elif not quoted:
            depth = max(0, depth + (sign in "(<") - (sign in ")>"))
            if sign == "," and depth == 0:
                yield start, text[start:at]
                start = at + 1
    yield start, text[start:]
