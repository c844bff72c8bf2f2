"""Events as they came: the attributes of a STRUCT, which are columns of their own, as one column again."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from spark_pace.core.columns import array
from spark_pace.core.plan.rule import EventSchema


def nested(events: pa.Table, schema: EventSchema) -> pa.Table:
    """The attributes among the columns of `events`, in the order of the schema, each STRUCT as one column."""
    if not schema.structs:
        return events.select([name for name in events.column_names if not name.startswith("@")])
    there = [field.name for field in schema.fields if field.name in events.column_names]
    paths = {name: schema.path_of(name) for name in there}
    return pa.table({name: _column(name, events, paths) for name, path in paths.items() if len(path) == 1})


def _column(name: str, events: pa.Table, paths: dict[str, tuple[str, ...]]) -> pa.Array:
    """The attribute; a STRUCT with all that it holds."""
    path = paths[name]
    members = [other for other, inner in paths.items() if inner[:-1] == path]
    if not members:
        return array(events, name)
    columns = [_column(member, events, paths) for member in members]
    absent = pc.is_null(array(events, name))
    return pa.StructArray.from_arrays(columns, [paths[member][-1] for member in members], mask=absent)
