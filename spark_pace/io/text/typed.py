"""Columns as a parser gives them, in the types of the core."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_pace.core.expr import ARROW_TYPES, STRUCT, TypeName, array_element, decimal_digits, is_single
from spark_pace.core.plan.rule import Field

_ZONE = r"(Z|[+-]\d\d(:?\d\d)?)$"
_MOST_DIGITS = 76  # of a decimal that Arrow can hold


def json_type(kind: TypeName, unit: str) -> pa.DataType:
    """What the parser of JSON reads for an attribute of a type; `unit` is that of a TIMESTAMP."""
    if kind == "TIMESTAMP":
        return pa.timestamp(unit)
    if decimal_digits(kind):
        return _wide(kind)
    if (element := array_element(kind)) is not None:
        return pa.list_(json_type(element, unit))
    return pa.string() if kind == "DATE" else ARROW_TYPES[kind]


def json_fields(
    fields: Sequence[Field], paths: Mapping[str, tuple[str, ...]], unit: str, depth: int = 0
) -> Iterator[pa.Field]:
    """What the parser of JSON reads for attributes, some of them in STRUCTs, `depth` of them around."""
    inside: dict[str, list[Field]] = {}
    for field in fields:
        inside.setdefault(paths[field.name][depth], []).append(field)
    for name, members in inside.items():
        deeper = [field for field in members if len(paths[field.name]) > depth + 1]
        if deeper or members[0].type == STRUCT:
            yield pa.field(name, pa.struct(list(json_fields(deeper, paths, unit, depth + 1))))
        else:
            yield pa.field(name, json_type(members[0].type, unit))


def flat(table: pa.Table, fields: Sequence[Field], paths: Mapping[str, tuple[str, ...]]) -> pa.Table:
    """Exactly the attributes, in order, in the types of the core; without any, the table as it is."""
    columns = {field.name: typed(inner(table, paths[field.name]), field.type) for field in fields}
    return pa.table(columns) if fields else table


def inner(table: pa.Table, path: Sequence[str]) -> pa.ChunkedArray:
    """The column at the path: null where a STRUCT around it is, or has no such member.

    Raises:
        pa.ArrowInvalid: what stands around it is no STRUCT.
    """
    name, *deeper = path
    column = (
        table.column(name) if name in table.column_names else pa.chunked_array([pa.nulls(table.num_rows)])
    )
    for name in deeper:
        if pa.types.is_null(column.type):
            break
        if not pa.types.is_struct(column.type):
            raise pa.ArrowInvalid(f"a column of {column.type}, which holds nothing")
        known = column.type.get_field_index(name) >= 0
        column = pc.struct_field(column, name) if known else pa.chunked_array([pa.nulls(len(column))])
    return column


def csv_type(kind: TypeName) -> pa.DataType:
    """What the parser of CSV reads for an attribute of a type."""
    # pyarrow refuses a column that mixes times with and without a zone, does not round decimals, and reads
    # nothing that has parts
    as_text = kind == "TIMESTAMP" or decimal_digits(kind) or not is_single(kind)
    return pa.string() if as_text else ARROW_TYPES[kind]


def typed(column: pa.ChunkedArray, kind: TypeName) -> pa.ChunkedArray:
    """A column that a parser gave, or one of text, in the type `kind`.

    Raises:
        pa.ArrowInvalid: a value is not of that type.
    """
    target = ARROW_TYPES[kind]
    if column.type == target:
        return column
    if not is_single(kind) and column.null_count == len(column):
        return pa.chunked_array([pa.nulls(len(column), target)])
    if kind == STRUCT:
        return _presence(column)
    if (element := array_element(kind)) is not None:
        return with_elements(column, partial(typed, kind=element), target)
    if kind == "TIMESTAMP":
        return timestamps(column) if pa.types.is_string(column.type) else column.cast(target, safe=False)
    if decimal_digits(kind):
        return _decimals(column, kind)
    return column.cast(target)


def _presence(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """True where the STRUCT is there, null where it is not."""
    if not pa.types.is_struct(column.type) and not pa.types.is_null(column.type):
        raise pa.ArrowInvalid(f"a column of {column.type}")
    return pc.if_else(pc.is_valid(column), True, None)


def with_elements(
    column: pa.ChunkedArray, convert: Callable[[pa.ChunkedArray], pa.ChunkedArray], target: pa.DataType
) -> pa.ChunkedArray:
    """Lists with other elements: `convert` makes them of the column of all elements.

    Raises:
        pa.ArrowInvalid: the column holds no lists, or `convert` says so.
    """
    if not pa.types.is_list(column.type) and not pa.types.is_large_list(column.type):
        raise pa.ArrowInvalid(f"a column of {column.type}")
    made = []
    for lists in column.chunks:
        lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy()
        offsets = pa.array(np.append(0, np.cumsum(lengths)), pa.int32())
        elements = convert(pa.chunked_array([lists.flatten()])).combine_chunks()
        made.append(pa.ListArray.from_arrays(offsets, elements, type=target, mask=pc.is_null(lists)))
    return pa.chunked_array(made, type=target)


def _decimals(column: pa.ChunkedArray, kind: TypeName) -> pa.ChunkedArray:
    """Numbers as a DECIMAL, rounded half away from zero as Spark does; one that does not fit is an error."""
    digits = decimal_digits(kind)
    assert digits is not None
    rounded = pc.round(column.cast(_wide(kind)), digits[1], round_mode="half_towards_infinity")
    return rounded.cast(ARROW_TYPES[kind])


def _wide(kind: TypeName) -> pa.DataType:
    """The decimal with the most digits behind the point, to be rounded, and one more before it than `kind`.

    For Arrow rounds what then has too many digits to 0, without a word.
    """
    digits = decimal_digits(kind)
    assert digits is not None
    return pa.decimal256(_MOST_DIGITS, _MOST_DIGITS - (digits[0] - digits[1]) - 1)


def timestamps(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    """ISO 8601 texts, with or without a zone, as UTC."""
    zoned = pc.match_substring_regex(texts, _ZONE)
    zoned = pc.and_kleene(zoned, pc.greater(pc.utf8_length(texts), 10))  # the day of a bare date is no zone
    plain = pc.if_else(pc.fill_null(zoned, False), None, texts).cast(pa.timestamp("ns"))
    if not pc.any(zoned).as_py():
        return plain.cast(pa.timestamp("us"), safe=False)
    with_zone = pc.if_else(pc.fill_null(zoned, False), texts, None)
    with_zone = with_zone.cast(pa.timestamp("ns", "UTC")).cast(pa.timestamp("ns"))
    return pc.coalesce(with_zone, plain).cast(pa.timestamp("us"), safe=False)
