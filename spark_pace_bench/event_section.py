"""Reads the section `events` of a run file: generators of attributes, or what is replayed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from spark_pace.core.plan.rule import EventSchema, Field
from spark_pace.job_file import JobSpec
from spark_pace.rules.document import (
    Broken,
    Listing,
    Node,
    Scalar,
    Section,
    as_mapping,
    describe,
    nearest,
    quote,
)
from spark_pace.rules.document import Mapping as MappingNode
from spark_pace_bench.generators import KINDS, Generator, Kind
from spark_pace_bench.spec import Replay

Events = Mapping[str, Generator] | Replay
_EXAMPLE = "{generate: {card: {uniform: [1, 1000]}}}"
# how many numbers a generator has, and what they are
_NUMBERS = {
    "uniform": (2, "the least and the greatest value, as in [1, 1000]"),
    "normal": (2, "mean and standard deviation, as in [10, 2]"),
    "exponential": (1, "the mean, as in 10"),
    "counter": (2, "the first value and the step, as in [0, 1]"),
}


def read_events(fields: Section, job: JobSpec, folder: Path) -> Events | None:
    """What a run sends; None if it is reported as wrong. A path is relative to `folder`."""
    mapping = fields.mapping("events", _EXAMPLE)
    if mapping is None:
        return None
    keys = Section(mapping, fields.report, ("generate", "replay"))
    if keys.has("generate") == keys.has("replay"):
        got = "both" if keys.has("replay") else "neither"
        fields.report.add(keys.place, "must have generate or replay", got, f"Write for example {_EXAMPLE}.")
        return None
    if not keys.has("replay"):
        found: Events | None = _read_generators(keys, job.events.schema)
    else:
        found = _read_replay(keys, folder)
    inside = len(job.events.schema.path_of(job.events.schema.event_time)) > 1
    if inside and not (isinstance(found, Replay) and found.own_times):
        must, got = "must be replay with times: own", "another way, and an event time inside a STRUCT"
        fields.report.add(keys.place, must, got, "Replay a file.")
    return found


def _read_replay(keys: Section, folder: Path) -> Replay | None:
    mapping = keys.mapping("replay", "{path: events.json}")
    if mapping is None:
        return None
    section = Section(mapping, keys.report, ("path", "times"))
    section.require("path", "path: events.json")
    path = section.text("path", "path: events.json")
    times = section.choice("times", ("due", "own"), "due")
    if path is None:
        return None
    found = folder / path.text
    if not found.exists():
        do = "Correct the path; it is relative to the run file."
        keys.report.add(path.place, "must be a file or a folder of events", "nothing there", do)
    return Replay(found, times == "own")


def _read_generators(keys: Section, schema: EventSchema) -> Mapping[str, Generator] | None:
    mapping = keys.mapping("generate", "{card: {uniform: [1, 1000]}}")
    if mapping is None:
        return None
    before = keys.report.count
    named = {field.name: field for field in schema.fields if field.name != schema.event_time}
    found = {}
    for name, (place, node) in mapping.entries.items():
        if name == schema.event_time:
            do = "Leave it out: it is the time at which an event is due."
            keys.report.add(place, "must not be generated", "the event time", do)
        elif name not in named:
            must = "must be an attribute of the job's events"
            keys.report.add(place, must, quote(name), nearest(name, list(named)))
        else:
            found[name] = _read_generator(node, keys, named[name])
    for name in named:
        if name not in mapping.entries:
            do = f"Add for example {name}: {{uniform: [1, 1000]}}."
            keys.report.add(mapping.place, f"must say how {name} is made", "nothing", do)
    return cast("Mapping[str, Generator]", found) if keys.report.count == before else None


def _read_generator(node: Node, keys: Section, field: Field) -> Generator | None:
    kinds = KINDS.get(field.type, ())
    if not kinds:
        must, do = "must have a type that can be generated", "Use replay."
        keys.report.add(node.place, must, field.type, do)
        return None
    mapping = as_mapping(node, keys.report, "{uniform: [1, 1000]}")
    if mapping is None:
        return None
    if len(mapping.entries) != 1:
        got = f"{len(mapping.entries)} of them"
        keys.report.add(node.place, "must be one way to make values", got, "Write for example constant: 1.")
        return None
    ((name, (place, inner)),) = mapping.entries.items()
    kind = next((kind for kind in kinds if kind == name), None)
    if kind is None:
        do = f"Use one of: {', '.join(kinds)}."
        keys.report.add(place, f"must be a way to make a {field.type}", quote(name), do)
        return None
    if kind in _NUMBERS:
        return _of_numbers(kind, inner, keys, field)
    return _of_values(kind, inner, keys, field)


def _of_numbers(kind: Kind, node: Node, keys: Section, field: Field) -> Generator | None:
    many, what = _NUMBERS[kind]
    items = node.items if isinstance(node, Listing) else (node,)
    whole = field.type != "DOUBLE"
    values = [number for item in items if (number := _number(item, whole)) is not None]
    ordered = kind != "uniform" or values == sorted(values)
    if len(items) != many or len(values) != many or not ordered:
        must = f"must be {what}" + (", in whole numbers" if whole else "")
        keys.report.add(node.place, must, describe(node), "Correct the numbers.")
        return None
    return Generator(field.name, field.type, kind, numbers=tuple(values))


def _number(node: Node, whole: bool) -> float | None:
    value = node.value if isinstance(node, Scalar) else None
    wanted = isinstance(value, int) or (isinstance(value, float) and not whole)
    return value if wanted and not isinstance(value, (bool, str)) else None


def _of_values(kind: Kind, node: Node, keys: Section, field: Field) -> Generator | None:
    """Read the values of `choice`, a list or a mapping of values to weights, or the value of `constant`."""
    weights: list[Any] = []
    if kind == "choice" and isinstance(node, MappingNode):
        texts = list(node.entries)
        weights = [inner.value if isinstance(inner, Scalar) else None for _, inner in node.entries.values()]
        values = [_as_type(text, text, field.type) for text in texts]
    else:
        items = node.items if kind == "choice" and isinstance(node, Listing) else (node,)
        scalars = [item if isinstance(item, Scalar) else None for item in items]
        values = [None if item is None else _as_type(item.text, item.value, field.type) for item in scalars]
    good = all(isinstance(weight, (int, float)) and weight > 0 for weight in weights)
    if not values or None in values or not good:
        if not isinstance(node, Broken):
            shape = "a list of values, or values with weights above 0" if kind == "choice" else "a value"
            do = "Write for example choice: {a: 0.9, b: 0.1}." if kind == "choice" else "Correct the value."
            keys.report.add(node.place, f"must be {shape}, each a {field.type}", describe(node), do)
        return None
    return Generator(field.name, field.type, kind, values=tuple(values), weights=tuple(weights))


def _as_type(text: str, value: Any, kind: str) -> Any:
    """A value as a type of the schema; None if it is none."""
    if kind == "STRING":
        return text
    if kind == "BOOLEAN":
        return {"true": True, "false": False}.get(text.lower())
    try:
        return int(text) if kind == "BIGINT" else float(text)
    except ValueError:
        return None
