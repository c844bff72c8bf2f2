"""Makes a table of events in memory: of Arrow tables, frames of pandas and polars, lists of dicts."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from functools import partial
from typing import Any

import pyarrow as pa

from spark_pace.core.expr import STRUCT, decimal_digits
from spark_pace.core.plan.rule import EventSchema, Field
from spark_pace.errors import ConfigError, EventError, one_line
from spark_pace.io.event_files import EventsRead, columns_of
from spark_pace.io.text.column_types import fitted_column, inner, is_text, marked, typed
from spark_pace.io.text.lines import must_be
from spark_pace.io.text.parsers import meant_column

SOURCE = "table"  # the source of their events
_TIMES = ("TIMESTAMP", "DATE")
_KINDS = "a pyarrow.Table, a frame of pandas or polars, a list of dicts, or the path of files"
_MOST_CHARACTERS = 200  # of a value
_MOST_TOLD = 20  # columns
_OF_ARROW = (
    pa.ArrowException,
    TypeError,
    ValueError,
    OverflowError,
)  # what a value of no type makes it raise


def table_of(events: object, schema: EventSchema) -> pa.Table:
    """Convert events to an Arrow table with the columns that hold attributes of the schema.

    Args:
        events: a `pyarrow.Table`; a frame of pandas, whose index is ignored; an object with
            ``__arrow_c_stream__``, such as a frame of polars; or a list of dicts.
        schema: the attributes. Times given as text are read like those of JSON.

    Raises:
        ConfigError: `events` is none of these.
        EventError: there is no column of event times, or the values of columns have no common type, or not
            the type of their attribute; with a line for each such column.
    """
    wrong: list[str] = []
    of_spark = type(events).__module__.startswith("pyspark.sql.")
    table = None if of_spark else _as_table(events, schema, wrong)
    if table is None:
        do = "Name a file or folder by a path, or build a table."
        do = "Give df.toArrow(), or call detect for one that streams." if of_spark else do
        raise ConfigError.of("events", f"must be {_KINDS}", type(events).__name__, do)
    _require_event_time(events, table, schema)
    for field in schema.fields:
        table = _or_else(wrong, table, _fitted, table, field, schema)
    if wrong:
        more = len(wrong) - _MOST_TOLD
        others = [f"and {more:,} more columns that do not fit"] if more > 0 else []
        raise EventError("\n".join([*wrong[:_MOST_TOLD], *others]))
    return table


def require_times(read: EventsRead) -> None:
    """Refuse a table of which a row is no event, because its time is missing or impossible.

    Raises:
        EventError: with the first such row.
    """
    if not read.bad.num_rows:
        return
    first, reason = read.bad["offset"][0], read.bad["reason"][0].as_py()
    raise EventError(f"{SOURCE}, row {first}: {reason}. Correct it, or leave the row out.")


def _or_else(wrong: list[str], otherwise: Any, make: Callable[..., Any], *given: Any) -> Any:
    """Return what `make` returns; if it refuses what it is given, keep the message, return `otherwise`."""
    try:
        return make(*given)
    except EventError as error:
        wrong.append(str(error))
        return otherwise


def absent_columns(events: object, table: pa.Table, schema: EventSchema) -> dict[str, str]:
    """Return for each attribute that is no column of `events` what may be meant: a similar column, the index.

    Args:
        events: the events as they were given.
        table: what `table_of` made of them.
        schema: the attributes.
    """
    names = [name for name in columns_of(schema) if name not in table.column_names]
    columns = _columns_given(events, table) if names and table.num_rows else []
    meant = {name: _where_it_is(events, name, columns, schema) for name in names}
    return {name: told for name, told in meant.items() if told}


def _require_event_time(events: object, table: pa.Table, schema: EventSchema) -> None:
    """Refuse a table without the column of the event time; a list without events is none."""
    (name, *_) = schema.path_of(schema.event_time)
    if name in table.column_names or (isinstance(events, Sequence) and not events):
        return
    columns = _columns_given(events, table)
    got = f"the columns {one_line(', '.join(columns), _MOST_CHARACTERS)}" if columns else "no columns"
    do = _where_it_is(events, name, columns, schema) or "Rename a column, or correct event_time in the rules."
    raise EventError(f"{SOURCE} — must have the column {name}, the event time; got {got}. {do}")


def _columns_given(events: Any, table: pa.Table) -> list[str]:
    """Return the names of all columns of `events`; `table` may have those of attributes only."""
    if _is_of_pandas(events):
        return [str(name) for name in events.columns]
    if isinstance(events, Sequence):
        return list(dict.fromkeys(str(name) for event in events for name in event))
    return list(table.column_names)


def _where_it_is(events: Any, name: str, columns: Sequence[str], schema: EventSchema) -> str:
    """Advice for a column that `events` lack; empty if nothing in them looks like it."""
    if _is_of_pandas(events) and name in events.index.names:
        return "It is in the index: call reset_index()."
    attributes = columns_of(schema)
    return meant_column(name, [column for column in columns if column not in attributes])


def _is_of_pandas(events: object) -> bool:
    return all(hasattr(events, name) for name in ("to_numpy", "iloc", "columns"))


def _as_table(events: Any, schema: EventSchema, wrong: list[str]) -> pa.Table | None:
    if isinstance(events, pa.Table):
        return events
    names = columns_of(schema)
    if _is_of_pandas(events):
        places = [place for place, name in enumerate(events.columns) if name in names]
        return _table([(events.columns[place], events.iloc[:, place]) for place in places], schema, wrong)
    if hasattr(events, "__arrow_c_stream__"):
        with suppress(pa.ArrowInvalid):  # it is no table, but a column
            return pa.table(events)
    if isinstance(events, Sequence) and all(isinstance(event, Mapping) for event in events):
        there = [name for name in names if any(name in event for event in events)]
        return _table([(name, [event.get(name) for event in events]) for name in there], schema, wrong)
    return None


def _table(columns: Sequence[tuple[str, Any]], schema: EventSchema, wrong: list[str]) -> pa.Table:
    """Return a table of columns of Python values, each given with its name; `wrong` gets messages."""
    arrays = [
        _or_else(wrong, pa.nulls(len(values)), _column, name, values, schema) for name, values in columns
    ]
    return pa.Table.from_arrays(arrays, names=[name for name, _ in columns])


def _column(name: str, values: Any, schema: EventSchema) -> pa.Array:
    try:
        return pa.array(values, from_pandas=True)
    except _OF_ARROW:
        values = list(values)
    is_decimal = any(field.name == name and decimal_digits(field.type) for field in schema.fields)
    # Arrow does not mix them with integers, nor takes those of more than 64 bits
    if is_decimal or any(isinstance(value, Decimal) for value in values):
        with suppress(*_OF_ARROW):
            return pa.array([_as_decimal(value) for value in values], from_pandas=True)

    def fails(count: int) -> bool:
        try:
            pa.array(values[:count], from_pandas=True)
        except _OF_ARROW:
            return True
        return False

    row = bisect_left(range(1, len(values)), True, key=fails)
    kinds = {field.name: field.type for field in schema.fields}
    must = f"{kinds.get(name, STRUCT)}, and of one type in all rows"
    raise _wrong(row, name, must, f"{values[row]!r}, of the type {type(values[row]).__name__}")


def _as_decimal(value: Any) -> Any:
    """Return an integer as a Decimal, and what else it is as it is."""
    is_integer = hasattr(value, "__index__") and not isinstance(value, bool)
    return Decimal(value.__index__()) if is_integer else value


def _fitted(table: pa.Table, field: Field, schema: EventSchema) -> pa.Table:
    """Return a table in which the times of an attribute are no text any more; those inside a STRUCT are none.

    Raises:
        EventError: the column is not of its attribute's type, or a value in it is not; the first is named.
    """
    place = table.schema.get_field_index(field.name)
    if field.type in _TIMES and place >= 0 and is_text(table.schema.field(place).type):
        texts = table.column(place).cast(pa.string())
        column, wrong = marked(texts, field, partial(typed, kind=field.type, form=schema.form))
        if wrong:
            row = min(wrong)
            raise _wrong(row, field.name, field.type, repr(texts[row].as_py()))
        return table.set_column(place, field.name, column)
    try:
        column = inner(table, schema.path_of(field.name))
        _, unfit = fitted_column(column, field)
    except pa.ArrowInvalid as error:
        do = "Build one column of that type."
        if field.name == schema.event_time and field.type == "TIMESTAMP":
            do += " Or, if it has integers, declare it BIGINT, with time_unit: s in events."
        raise EventError(f"{SOURCE}: {must_be(field)}; got: {error}. {do}") from error
    if unfit.any():
        row = int(unfit.argmax())
        raise _wrong(row, field.name, field.type, repr(column[row].as_py()))
    return table


def _wrong(row: int, name: str, must: str, got: str) -> EventError:
    shown = one_line(got, _MOST_CHARACTERS)
    do = "Correct it, or leave the row out."
    return EventError(f"{SOURCE}, row {row}: {name} — must be {must}; got: {shown}. {do}")
