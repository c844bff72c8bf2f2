"""Reads the section ``events`` of a rule or job file: the attributes of an event."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from spark_pace.core.expr import STRUCT, TypeName, is_single
from spark_pace.core.plan.rule import EventSchema, Field
from spark_pace.rules.document.declarations import MAX_DEPTH, SCALARS, Declared, declared
from spark_pace.rules.document.document import Scalar
from spark_pace.rules.document.report import Place, Report, nearest, quote
from spark_pace.rules.document.section import Section
from spark_pace.rules.expressions.attributes import ONE_VALUE
from spark_pace.rules.lookup import read_side_tables
from spark_pace.rules.text_form import FORM_KEYS, read_form

SCHEMA_KEYS = ("schema", "event_time", "time_unit", "tie_break", "lookup", *FORM_KEYS)

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
_PARAMETERS = {
    "<": f"Write ARRAY<TYPE> of single values, or STRUCT<name: TYPE, ...>, at most {MAX_DEPTH} deep.",
    "(": "Write 1 to 38 digits, and how many of them stand behind the point.",
}
MAX_ATTRIBUTES = 1_000
_EXAMPLE = 'schema: "time TIMESTAMP, id BIGINT, name STRING"'


def read_schema(keys: Section) -> EventSchema | None:
    """Read the schema of events; None if it is wrong."""
    report = keys.report
    before = report.count
    fields = _declared(keys, report)
    event_time = (
        keys.text("event_time", "event_time: time")
        if keys.require("event_time", "event_time: and the attribute's name")
        else None
    )
    unit = keys.choice("time_unit", ("s", "ms", "us"), "")
    if fields and event_time is not None:
        _check_event_time(event_time, fields, unit, keys)
    tie_break = _tie_break(keys, fields)
    sides = read_side_tables(keys, fields, lambda section: _declared(section, report))
    form = read_form(keys, fields)
    if report.count > before or event_time is None:
        return None
    attributes = (*fields, *(field for side in sides for field in side.fields))
    return EventSchema(attributes, event_time.text, tie_break, unit or None, sides, form)  # type: ignore[arg-type]


def type_name(text: str) -> TypeName | None:
    """The single type that a text names, in any case and spelling; None if it names none."""
    return SCALARS.get(text.upper())


def _declared(keys: Section, report: Report) -> list[Field]:
    text = keys.text("schema", _EXAMPLE) if keys.require("schema", _EXAMPLE) else None
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


def _check_event_time(event_time: Scalar, fields: list[Field], unit: str, keys: Section) -> None:
    types = {field.name: field.type for field in fields}
    kind = types.get(event_time.text)
    report = keys.report
    if kind is None:
        report.add(
            event_time.place,
            "must name an attribute of the schema",
            quote(event_time.text),
            nearest(event_time.text, types),
        )
    elif kind not in ("TIMESTAMP", "BIGINT"):
        report.add(
            event_time.place,
            "must name a TIMESTAMP or BIGINT attribute",
            kind,
            "Change its type in the schema.",
        )
    elif kind == "BIGINT" and not keys.has("time_unit"):
        report.add(
            keys.place,
            "must say what a BIGINT event time counts",
            "no time_unit",
            "Add time_unit: s, ms or us.",
        )
    elif kind == "TIMESTAMP" and keys.has("time_unit"):
        keys.refuse(["time_unit"], "A TIMESTAMP needs no unit.")


def _tie_break(keys: Section, fields: list[Field]) -> tuple[str, ...]:
    types = {field.name: field.type for field in fields}
    names = list(types)
    found: list[str] = []
    for item in keys.texts("tie_break", "tie_break: [id]"):
        if names and item.text not in names:
            keys.report.add(
                item.place,
                "must name an attribute of the schema",
                quote(item.text),
                nearest(item.text, names),
            )
        elif (kind := types.get(item.text)) is not None and not is_single(kind):
            must = "must name an attribute of single values"
            keys.report.add(item.place, must, f"{quote(item.text)}, {kind}", ONE_VALUE)
        elif item.text in found:
            keys.report.add(item.place, "must name an attribute once", quote(item.text), "Remove one.")
        else:
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
