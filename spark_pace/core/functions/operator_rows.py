"""Converts the rows that a Python operator returns to a table with the types of ``emit``, or refuses them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime, time
from difflib import get_close_matches
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_pace.core.expr import ARROW_TYPES, TypeName
from spark_pace.core.expr.time_functions import out_of_range
from spark_pace.core.plan.rule import Rule
from spark_pace.errors import one_line

MOST_TEXT_BYTES = 16 << 20  # the size of a value: readers of Parquet refuse pages with much longer ones
MOST_ROWS_BYTES = 256 << 20  # the size of one selection's rows: rows of many selections travel together
ROW = "row"  # the column in which a fold that takes tables says which event causes each row
_ALIKE = 0.8  # a misspelt name is at least as similar: `total` and `totla` are, `amount` and `count` not

Rows: TypeAlias = pa.Table | Iterable[Mapping[str, Any]]

_TAKEN = {  # the types of a column that may be cast to each declared type, if no value loses anything
    "BOOLEAN": (pa.types.is_boolean,),
    "BIGINT": (pa.types.is_integer,),
    "DOUBLE": (pa.types.is_floating, pa.types.is_integer),
    "STRING": (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view),
    "TIMESTAMP": (pa.types.is_timestamp, pa.types.is_date),
    "DATE": (pa.types.is_date,),
}


def emit_schema(rule: Rule) -> pa.Schema:
    """The Arrow schema of the fields that the rule declares in ``emit``."""
    return pa.schema([(field.name, ARROW_TYPES[field.type]) for field in rule.emit])


def as_table(rows: Rows, rule: Rule) -> pa.Table:
    """Convert rows to a table of the declared fields. Missing fields are null, undeclared ones are left out.

    Raises:
        TypeError: a value is not of its field's type, or the name of a field is misspelt.
        ValueError: a value or all of them are too large, or a time is out of range.
        Exception: whatever reading the rows raises.
    """
    if isinstance(rows, pa.Table):
        rows.validate(full=True)  # Arrow trusts its buffers, and bad ones would crash whoever reads the table
        count = rows.num_rows
        _check_names(tuple(rows.column_names), rule)
        columns = {field.name: rows[field.name] for field in rule.emit if field.name in rows.column_names}
    else:
        listed = [dict(row) for row in rows]
        count = len(listed)
        for names in dict.fromkeys(tuple(row) for row in listed):
            _check_names(names, rule)
        columns = {
            field.name: _column(field.name, field.type, [row.get(field.name) for row in listed])
            for field in rule.emit
        }
    schema = emit_schema(rule)
    given = [
        _declared(field.name, columns[field.name], field.type)
        if field.name in columns
        else pa.nulls(count, ARROW_TYPES[field.type])
        for field in rule.emit
    ]
    table = pa.table(given, schema=schema) if given else _without_columns(count)
    if table.nbytes > MOST_ROWS_BYTES:
        must = f"must be at most {MOST_ROWS_BYTES >> 20} MiB"
        raise ValueError(f"the rows that are returned at once {must}; got {table.nbytes >> 20} MiB")
    return table


def _check_names(names: tuple[Any, ...], rule: Rule) -> None:
    """Refuse an undeclared name that is similar to that of a declared field which is not there."""
    lacking = [field.name for field in rule.emit if field.name not in names]
    if not lacking:
        return
    declared = {field.name for field in rule.emit} | ({ROW} if rule.fold is not None else set())
    for name in names:
        meant = get_close_matches(name, lacking, n=1, cutoff=_ALIKE) if isinstance(name, str) else []
        if meant and name not in declared:
            got = f'got "{one_line(name)}" (did you mean "{meant[0]}"?)'
            raise TypeError(f"a row must have the fields of emit; {got}")


def _without_columns(rows: int) -> pa.Table:
    """A table that has a number of rows and nothing else."""
    return pa.table([pa.nulls(rows)], names=[""]).select([])


def _column(name: str, declared: TypeName, values: list[Any]) -> pa.Array:
    """The values of a field as one array, of the type that Arrow gives values of their Python types."""
    values = [_plain(name, declared, value) for value in values]
    column = _by_arrow(name, declared, lambda: pa.array(values))
    if not pa.types.is_boolean(column.type) and any(isinstance(value, (bool, np.bool_)) for value in values):
        # Arrow would make numbers of them
        raise TypeError(f"emit {name} — must be {declared}; got truth values among others")
    if pa.types.is_date(column.type) and any(isinstance(value, datetime) for value in values):
        raise TypeError(f"emit {name} — must be dates or times; got both")  # Arrow would cut the times
    if pa.types.is_timestamp(column.type) and any(getattr(value, "nanosecond", 0) for value in values):
        # times of pandas have them, and Arrow would cut them
        raise TypeError(f"emit {name} — must be whole microseconds; got nanoseconds")
    return column


def _plain(name: str, declared: TypeName, value: Any) -> Any:
    """The value in a form that Arrow reads as what it is.

    A day of NumPy's becomes a date, and a date for a TIMESTAMP becomes its midnight.
    """
    if isinstance(value, np.datetime64):
        missing = bool(np.isnat(value))
        if not missing and np.datetime_data(value)[0] == "D":
            value = value.item()
            if isinstance(value, int):  # Python has no such date
                raise ValueError(f"emit {name} — must be between the years 1 and 9999; got another year")
    else:
        missing = type(value).__name__ in ("NaTType", "NAType")  # types of pandas, which may not be installed
    if missing:
        raise TypeError(f"emit {name} — must be a value or None; got {value}")
    if declared == "TIMESTAMP" and isinstance(value, date) and not isinstance(value, datetime):
        return datetime.combine(value, time())
    return value


def _by_arrow(name: str, declared: TypeName, make: Callable[[], pa.Array]) -> pa.Array:
    """Call `make`; if Arrow refuses the values, raise an error with the field's name and Arrow's message."""
    try:
        return make()
    except OverflowError:
        raise TypeError(f"emit {name} — must be within 64 bits; got a greater integer") from None
    except Exception as error:
        raise TypeError(f"emit {name} — must be {declared}; got what Arrow refuses: {error}") from None


def _declared(
    name: str, column: pa.Array | pa.ChunkedArray, declared: TypeName
) -> pa.Array | pa.ChunkedArray:
    """The column in its field's type. Most columns are short: calls cost more than rows, so make few."""
    target = ARROW_TYPES[declared]
    if column.type != target:
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        if not pa.types.is_null(column.type) and not any(taken(column.type) for taken in _TAKEN[declared]):
            raise TypeError(f"emit {name} — must be {declared}; got {column.type}")
        given = column
        column = _by_arrow(name, declared, lambda: given.cast(target))
    if declared == "STRING" and column.nbytes > MOST_TEXT_BYTES:
        longest = pc.max(pc.binary_length(column)).as_py() or 0
        if longest > MOST_TEXT_BYTES:
            must = f"must be texts of at most {MOST_TEXT_BYTES >> 20} MiB"
            raise ValueError(f"emit {name} — {must}; got one of {longest:,} bytes")
    if declared in ("TIMESTAMP", "DATE") and out_of_range(column) is not None:
        raise ValueError(f"emit {name} — must be between the years 1 and 9999; got another year")
    return column
