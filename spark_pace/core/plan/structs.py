"""Puts the members of STRUCTs, which are columns of their own, back into STRUCT columns.

Also shows events as JSON for people to read, even with values that Python's types cannot hold.
"""

from __future__ import annotations

import json
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from spark_pace.core.plan.rule import EventSchema
from spark_pace.core.tables import array

Path = tuple[str, ...]


def nested(events: pa.Table, schema: EventSchema) -> pa.Table:
    """The attributes among the columns of `events`, in the order of the schema, each STRUCT as one column.

    If `events` has members of a STRUCT but not the STRUCT itself, the STRUCT is null if all of them are null.
    """
    if not schema.structs:
        own = {field.name for field in schema.fields}
        return events.select([name for name in events.column_names if name in own])
    there = [field.name for field in schema.fields if field.name in events.column_names]
    paths = [schema.path_of(name) for name in there]
    names = dict.fromkeys(path[0] for path in paths)
    return pa.table({name: _column((name,), events, paths) for name in names})


def _column(path: Path, events: pa.Table, paths: list[Path]) -> pa.Array:
    """The attribute at a path; for a STRUCT, with all attributes in it."""
    name, depth = ".".join(path), len(path)
    below = (other for other in paths if len(other) > depth and other[:depth] == path)
    inner = dict.fromkeys(other[: depth + 1] for other in below)
    if not inner:
        return array(events, name)
    columns = [_column(member, events, paths) for member in inner]
    own = [array(events, name)] if name in events.column_names else columns
    absent = reduce(pc.and_, map(pc.is_null, own))
    return pa.StructArray.from_arrays(columns, [member[-1] for member in inner], mask=absent)


def json_rows(table: pa.Table) -> list[str]:
    """Each row as a JSON object for people to read. Every value can be shown."""
    columns = [shown_values(column) for column in table.columns]
    rows = [dict(zip(table.column_names, values, strict=True)) for values in zip(*columns, strict=True)]
    return [json.dumps(row, default=_shown, ensure_ascii=False) for row in rows or [{}] * table.num_rows]


def shown_values(values: pa.Array | pa.ChunkedArray) -> list[Any]:
    """The values as Python objects; if Python cannot hold one of them, all times and texts as text."""
    try:
        return values.to_pylist()  # type: ignore[no-any-return]
    except (ValueError, OverflowError):  # a time outside the years 1 to 9999; a text that is no UTF-8
        if pa.types.is_string(values.type):
            texts = values.cast(pa.binary()).to_pylist()
            return [text if text is None else _shown(text) for text in texts]
        return values.cast(_shown_type(values.type)).to_pylist()  # type: ignore[no-any-return]


def _shown_type(kind: pa.DataType) -> pa.DataType:
    """The type to which values of a type are cast so that Python can hold all of them."""
    if pa.types.is_struct(kind):
        return pa.struct([(field.name, _shown_type(field.type)) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(_shown_type(kind.value_type))
    if pa.types.is_string(kind):
        return pa.binary()
    return pa.string() if pa.types.is_temporal(kind) else kind


def _shown(value: Any) -> str:
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)
