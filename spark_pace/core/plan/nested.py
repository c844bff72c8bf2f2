"""Events as they came: the attributes of a STRUCT, which are columns of their own, as one column again."""

from __future__ import annotations

from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

from spark_pace.core.columns import array
from spark_pace.core.plan.rule import EventSchema

Path = tuple[str, ...]


def nested(events: pa.Table, schema: EventSchema) -> pa.Table:
    """The attributes among the columns of `events`, in the order of the schema, each STRUCT as one column.

    Where `events` has what a STRUCT holds but not the STRUCT, this is null where all of that is.
    """
    if not schema.structs:
        return events.select([name for name in events.column_names if not name.startswith("@")])
    there = [field.name for field in schema.fields if field.name in events.column_names]
    paths = [schema.path_of(name) for name in there]
    names = dict.fromkeys(path[0] for path in paths)
    return pa.table({name: _column((name,), events, paths) for name in names})


def _column(path: Path, events: pa.Table, paths: list[Path]) -> pa.Array:
    """The attribute; a STRUCT with all that it holds."""
    name, depth = ".".join(path), len(path)
    below = (other for other in paths if len(other) > depth and other[:depth] == path)
    inner = dict.fromkeys(other[: depth + 1] for other in below)
    if not inner:
        return array(events, name)
    columns = [_column(member, events, paths) for member in inner]
    own = [array(events, name)] if name in events.column_names else columns
    absent = reduce(pc.and_, map(pc.is_null, own))
    return pa.StructArray.from_arrays(columns, [member[-1] for member in inner], mask=absent)
