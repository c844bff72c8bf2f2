"""Reads the key ``lookup`` of the section ``events``: small tables that are joined to events."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

from spark_pace.core.expr import is_single
from spark_pace.core.plan.rule import Field, SideTable
from spark_pace.rules.document.addresses import check_address
from spark_pace.rules.document.document import Listing, Mapping, Node, Scalar, describe
from spark_pace.rules.document.report import Report, nearest, quote
from spark_pace.rules.document.section import Section, as_mapping
from spark_pace.rules.expressions.attributes import ONE_VALUE
from spark_pace.rules.lengths import read_duration

SIDE_TABLE_KEYS = ("path", "on", "schema", "refresh")
_EXAMPLE = 'lookup: {hosts: {path: hosts.csv, on: host, schema: "owner STRING"}}'
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_MOST_KEYS = 16  # attributes in `on`


def read_side_tables(
    keys: Section, fields: Sequence[Field], declared: Callable[[Section], list[Field]]
) -> tuple[SideTable, ...]:
    """Read the side tables; wrong ones are reported and left out.

    Args:
        keys: the section that may have the key ``lookup``.
        fields: the attributes of the events.
        declared: reads the fields under the key ``schema`` of a section.
    """
    mapping = keys.mapping("lookup", _EXAMPLE)
    names = {field.name.partition(".")[0].lower() for field in fields}
    found: list[SideTable] = []
    for name, (place, node) in (mapping.entries if mapping else {}).items():
        if not _IDENTIFIER.fullmatch(name) or name.lower() in names:
            must = "must be a name of letters, digits and _ that no attribute has"
            keys.report.add(place, must, quote(name), "Choose another name.")
        names.add(name.lower())
        inside = as_mapping(node, keys.report, _EXAMPLE)
        if inside is not None:
            section = Section(inside, keys.report, SIDE_TABLE_KEYS)
            side = _read(name, section, fields, declared)
            found += [] if side is None else [side]
    return tuple(found)


def _read(
    name: str, section: Section, fields: Sequence[Field], declared: Callable[[Section], list[Field]]
) -> SideTable | None:
    path = _read_path(section)
    on = _read_on(section, fields)
    columns = declared(section)
    for column in columns:
        if column.name in (key for _, key in on):
            must = "must not declare a column of its key, which the event has"
            section.report.add(section.key_place("schema"), must, quote(column.name), "Leave it out.")
        elif not is_single(column.type) or not _IDENTIFIER.fullmatch(column.name):
            must = "must declare single values, under names of letters, digits and _"
            got = f"{quote(column.name)}, {column.type}"
            section.report.add(section.key_place("schema"), must, got, "Leave it out, or rename it.")
    node = section.node("refresh")
    refresh_us = None if node is None else read_duration(node, section.report, least=1)
    if path is None or not on or not columns:
        return None
    return SideTable(name, path, on, tuple(columns), refresh_us)


def _read_path(section: Section) -> str | None:
    is_there = section.require("path", "path: hosts.csv")
    path = section.text("path", "path: hosts.csv") if is_there else None
    if path is None:
        return None
    check_address(path, section.report)
    text = path.text.removeprefix("file://")
    return text.rstrip("/") if "://" in text else str((Path(path.place.file).parent / text).resolve())


def _read_on(section: Section, fields: Sequence[Field]) -> tuple[tuple[str, str], ...]:
    """Read the key ``on`` as (attribute, column) pairs: an attribute, a list, or a mapping to columns."""
    if not section.require("on", "on: and the attribute of the events"):
        return ()
    node = section.node("on")
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
        columns = [column for _, column in node.entries.values()]
        if not all(isinstance(one, Scalar) and isinstance(one.value, str) and one.text for one in columns):
            return []
        return [
            (Scalar(place, name, name, None), column.text)
            for name, (place, column) in node.entries.items()
            if isinstance(column, Scalar)
        ]
    return []


def _is_key(item: Scalar, fields: Sequence[Field], report: Report) -> bool:
    types = {field.name: field.type for field in fields}
    kind = types.get(item.text)
    if kind is None:
        if fields:
            must, do = "must name an attribute of the schema", nearest(item.text, types)
            report.add(item.place, must, quote(item.text), do)
        return False
    if not is_single(kind) or kind == "DOUBLE":
        must, do = "must name an attribute of single, exact values", ONE_VALUE
        report.add(item.place, must, f"{quote(item.text)}, {kind}", do)
        return False
    return True
