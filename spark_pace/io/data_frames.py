"""Makes a table of events in memory: of Arrow tables, frames of pandas and polars, lists of dicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from spark_pace.core.plan.rule import EventSchema
from spark_pace.errors import ConfigError, EventError
from spark_pace.io.text.column_types import typed

_TIMES = ("TIMESTAMP", "DATE")
_KINDS = "a pyarrow.Table, a frame of pandas or polars, a list of dicts, or the path of files"


def table_of(events: object, schema: EventSchema) -> pa.Table:
    """Convert events to an Arrow table.

    Args:
        events: a `pyarrow.Table`; a frame of pandas, whose index is ignored; an object with
            ``__arrow_c_stream__``, such as a frame of polars; or a list of dicts.
        schema: the attributes. Times given as text are read like those of JSON.

    Raises:
        ConfigError: `events` is none of these.
        EventError: the values of a column have no common type, or a text is no time.
    """
    try:
        table = _as_table(events)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise EventError(f"events — must be columns of one type each; got: {error}") from error
    if table is None:
        do = "Name a file or folder by a path, or build a table."
        raise ConfigError.of("events", f"must be {_KINDS}", type(events).__name__, do)
    for field in schema.fields:
        place = table.schema.get_field_index(field.name)
        if field.type in _TIMES and place >= 0 and _is_text(table.schema.field(place).type):
            try:
                column = typed(table.column(place).cast(pa.string()), field.type, schema.form)
            except pa.ArrowInvalid as error:
                raise EventError(f"events: {field.name} — must be {field.type}; got: {error}") from error
            table = table.set_column(place, field.name, column)
    return table


def _as_table(events: Any) -> pa.Table | None:
    if isinstance(events, pa.Table):
        return events
    if hasattr(events, "to_numpy") and hasattr(events, "iloc"):  # a frame of pandas
        return pa.Table.from_pandas(events, preserve_index=False)
    if hasattr(events, "__arrow_c_stream__"):
        return pa.table(events)
    if isinstance(events, Sequence) and all(isinstance(event, Mapping) for event in events):
        names = dict.fromkeys(name for event in events for name in event)
        return pa.table({name: pa.array([event.get(name) for event in events]) for name in names})
    return None


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))
