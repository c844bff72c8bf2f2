"""The types of columns as they are read, and how they become those of the core.

A parser is told which types to read. Columns of Parquet and of frames have a type of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_pace.core.expr import ARROW_TYPES, STRUCT, TypeName, array_element, decimal_digits, is_single
from spark_pace.core.expr.decimals import to_decimal
from spark_pace.core.expr.time_functions import times_of
from spark_pace.core.plan.rule import ORDINARY, Field, RecordForm
from spark_pace.core.tables import Bools, bools
from spark_pace.io.bad_records import FAR_US, UNIT_US
from spark_pace.io.text.lines import in_quarters, must_be, short

_ZONE = r"(Z|[+-]\d\d(:?\d\d)?)$"
_LONG = r"(:\d\d\.\d{6})\d{1,3}(Z|[+-].*)?$"  # a time with more than six digits of a second
_MOST_DIGITS = 76  # the longest decimal that Arrow can hold


def json_type(kind: TypeName) -> pa.DataType:
    """The type that the JSON parser is to read for an attribute of type `kind`."""
    if decimal_digits(kind):
        return _wide(kind)
    if (element := array_element(kind)) is not None:
        return pa.list_(json_type(element))
    return pa.string() if kind in ("TIMESTAMP", "DATE") else ARROW_TYPES[kind]


def json_fields(
    fields: Sequence[Field], paths: Mapping[str, tuple[str, ...]], depth: int = 0
) -> Iterator[pa.Field]:
    """The columns that the JSON parser is to read, each STRUCT with the attributes inside it.

    Args:
        fields: the attributes.
        paths: for each attribute the names of the STRUCTs around it, outermost first, then its own name.
        depth: how many STRUCTs are around all of `fields`; as many names of their paths are skipped.
    """
    inside: dict[str, list[Field]] = {}
    for field in fields:
        inside.setdefault(paths[field.name][depth], []).append(field)
    for name, members in inside.items():
        deeper = [field for field in members if len(paths[field.name]) > depth + 1]
        if deeper or members[0].type == STRUCT:
            yield pa.field(name, pa.struct(list(json_fields(deeper, paths, depth + 1))))
        else:
            yield pa.field(name, json_type(members[0].type))


def flat(
    table: pa.Table, fields: Sequence[Field], paths: Mapping[str, tuple[str, ...]], form: RecordForm
) -> pa.Table:
    """Take `fields` from a table of parsed JSON, in the types of the core; without fields, the table itself.

    Raises:
        pa.ArrowInvalid: a value is not of its type.
    """
    columns = {field.name: typed(inner(table, paths[field.name]), field.type, form) for field in fields}
    return pa.table(columns) if fields else table


def inner(table: pa.Table, path: Sequence[str]) -> pa.ChunkedArray:
    """The column at a path; null where a STRUCT around it is null, or everywhere if there is no such column.

    Raises:
        pa.ArrowInvalid: a column around it is no STRUCT, or several columns have a name of the path.
    """
    name, *deeper = path
    there = table.schema.get_all_field_indices(name)
    column = table.column(there[0]) if _one(there) else pa.chunked_array([pa.nulls(table.num_rows)])
    for name in deeper:
        if pa.types.is_null(column.type):
            break
        if not pa.types.is_struct(column.type):
            raise pa.ArrowInvalid(f"a column of {column.type}, which holds nothing")
        there = column.type.get_all_field_indices(name)
        column = pc.struct_field(column, there) if _one(there) else pa.chunked_array([pa.nulls(len(column))])
    return column


def _one(columns: list[int]) -> bool:
    """True if there is one column, False if there is none; raises `pa.ArrowInvalid` if there are several."""
    if len(columns) > 1:
        raise pa.ArrowInvalid(f"{len(columns)} columns of that name")
    return len(columns) == 1


def not_utf8(table: pa.Table) -> dict[int, str]:
    """The rows with a STRING that is no UTF-8, each with the name of one such attribute."""
    found: dict[int, str] = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        kind = column.type.value_type if pa.types.is_list(column.type) else column.type
        if pa.types.is_string(kind) and not _is_utf8(column):
            found |= {row: name for row in range(len(column)) if not _is_utf8(column.slice(row, 1))}
    return found


def _is_utf8(column: pa.ChunkedArray) -> bool:
    texts = pc.list_flatten(column) if pa.types.is_list(column.type) else column
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def csv_type(kind: TypeName) -> pa.DataType:
    """The type that the CSV parser is to read for an attribute of type `kind`."""
    # pyarrow refuses a column that mixes times with and without a zone, does not round decimals, and cannot
    # read lists and structs from CSV
    as_text = kind == "TIMESTAMP" or decimal_digits(kind) or not is_single(kind)
    return pa.string() if as_text else ARROW_TYPES[kind]


def typed(column: pa.ChunkedArray, kind: TypeName, form: RecordForm = ORDINARY) -> pa.ChunkedArray:
    """Convert a parser's column, or a column of text in the form `form`, to the type `kind`.

    Raises:
        pa.ArrowInvalid: a value is not of that type.
    """
    target = ARROW_TYPES[kind]
    if column.type == target:
        return column
    if not is_single(kind) and column.null_count == len(column):
        return pa.chunked_array([pa.nulls(len(column), target)])
    if kind == STRUCT:  # true where it is present, null where it is not
        if not pa.types.is_struct(column.type):
            raise pa.ArrowInvalid(f"a column of {column.type}")
        return pc.if_else(pc.is_valid(column), True, None)
    if (element := array_element(kind)) is not None:
        return with_elements(column, partial(typed, kind=element, form=form), target)
    if kind == "TIMESTAMP":
        if form.time_formats:
            return times_of(column, form.time_formats, form.year, form.newest_us, form.zone)
        return timestamps(column)
    if decimal_digits(kind):
        return _decimals(column, kind)
    numbers = column.cast(target)
    if kind == "DOUBLE" and pa.types.is_string(column.type) and has_infinite(numbers):
        large = column.filter(pc.and_(pc.is_inf(numbers), pc.match_substring_regex(column, r"\d")))
        if len(large):
            raise pa.ArrowInvalid(f"{large[0].as_py()}, which is too large")
    return numbers


def has_infinite(column: pa.ChunkedArray) -> bool:
    """True if a column, or a list in it, holds an infinite number: written so, or too large for a DOUBLE."""
    numbers = pc.list_flatten(column) if pa.types.is_list(column.type) else column
    return pc.any(pc.is_inf(numbers)).as_py() is True


def is_text(kind: pa.DataType) -> bool:
    """True for each of Arrow's types of text."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def with_elements(
    column: pa.ChunkedArray, convert: Callable[[pa.ChunkedArray], pa.ChunkedArray], target: pa.DataType
) -> pa.ChunkedArray:
    """Convert the elements of lists, by applying `convert` to the column of all elements.

    Raises:
        pa.ArrowInvalid: the column holds no lists, or `convert` raises it.
    """
    if not pa.types.is_list(column.type) and not pa.types.is_large_list(column.type):
        raise pa.ArrowInvalid(f"a column of {column.type}")
    lists = column.combine_chunks()
    lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy()
    offsets = pa.array(np.append(0, np.cumsum(lengths)), pa.int32())
    elements = convert(pa.chunked_array([lists.flatten()])).combine_chunks()
    made = pa.ListArray.from_arrays(offsets, elements, type=target, mask=pc.is_null(lists))
    return pa.chunked_array([made])


def _decimals(column: pa.ChunkedArray, kind: TypeName) -> pa.ChunkedArray:
    """Convert to a DECIMAL, rounding half away from zero as Spark does; numbers that do not fit raise."""
    if pa.types.is_string(column.type):
        large = pc.match_substring_regex(column, large_number(kind))
        large = pc.or_(large, pc.greater(pc.binary_length(column), _MOST_DIGITS))
        require_decimals(column.filter(large).to_pylist(), kind)
    target = ARROW_TYPES[kind]
    read = [to_decimal(chunk, target) for chunk in column.cast(_wide(kind)).chunks]
    if sum(chunk.null_count for chunk in read) > column.null_count:
        raise pa.ArrowInvalid("a number that is rounded to more digits")
    return pa.chunked_array(read, target)


def large_number(kind: TypeName) -> str:
    """A regular expression for numbers with too many digits before the point, or with an exponent."""
    digits = decimal_digits(kind)
    assert digits is not None
    return rf"[+-]?(?:0*[1-9][0-9]{{{digits[0] - digits[1]},}}|[0-9.]+[eE]\+?[0-9])"


def require_decimals(texts: Iterable[str], kind: TypeName) -> None:
    """Refuse numbers with too many digits, because Arrow reads some as other numbers.

    Raises:
        pa.ArrowInvalid: one has more digits before the point than `kind` allows, or more than Arrow can hold.
    """
    digits = decimal_digits(kind)
    assert digits is not None
    for text in texts:
        try:
            number = Decimal(text)
        except InvalidOperation:  # no number: Arrow refuses it
            continue
        too_large = number and number.adjusted() >= digits[0] - digits[1]
        if too_large or len(number.as_tuple().digits) > _MOST_DIGITS:
            raise pa.ArrowInvalid(f"{text} does not fit")


def _wide(kind: TypeName) -> pa.DataType:
    """The type in which numbers are read before they are rounded to `kind`.

    It has one digit more than `kind` before the point, and as many after it as Arrow can hold.
    """
    digits = decimal_digits(kind)
    assert digits is not None
    return pa.decimal256(_MOST_DIGITS, _MOST_DIGITS - (digits[0] - digits[1]) - 1)


def marked(
    column: pa.ChunkedArray, field: Field, convert: Callable[[pa.ChunkedArray], pa.ChunkedArray]
) -> tuple[pa.ChunkedArray, dict[int, str]]:
    """Convert a column to the type of its attribute by `convert`, which raises if a value is not of the type.

    Returns:
        The column, with null in place of such values; and the reason for each, by its row.
    """
    try:
        return convert(column), {}
    except pa.ArrowException:
        coded = column.combine_chunks().dictionary_encode()
    parts, wrong, place = list[pa.Array](), dict[int, str](), 0
    for some, read in in_quarters(pa.chunked_array([coded.dictionary]), convert):
        if isinstance(read, pa.ArrowException):
            wrong[place] = short(f"{must_be(field)}; got: {read}")
            read = pa.nulls(1, ARROW_TYPES[field.type])
        parts += read.chunks if isinstance(read, pa.ChunkedArray) else [read]
        place += len(some)
    values = pa.chunked_array(parts, ARROW_TYPES[field.type])
    codes = coded.indices.to_pylist()
    return values.take(coded.indices), {row: wrong[code] for row, code in enumerate(codes) if code in wrong}


def timestamps(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    """Parse ISO 8601 texts, with or without a zone, as UTC; of a second nine digits are read, six kept."""
    try:
        return _timestamps(texts)
    except pa.ArrowInvalid:
        return _timestamps(pc.replace_substring_regex(texts, _LONG, r"\1\2"))


def _timestamps(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    zoned = pc.match_substring_regex(texts, _ZONE)
    zoned = pc.and_kleene(zoned, pc.greater(pc.utf8_length(texts), 10))  # a date's "-07" is no zone
    zoned = pc.fill_null(zoned, False)
    plain = pc.if_else(zoned, None, texts).cast(pa.timestamp("us"))
    if not pc.any(zoned).as_py():
        return plain
    with_zone = pc.if_else(zoned, texts, None).cast(pa.timestamp("us", "UTC"))
    return pc.coalesce(with_zone.cast(pa.timestamp("us")), plain)


_INTEGERS = pa.decimal128(20, 0)  # has room for each of 64 bits
_LEAST_TOO_LARGE = 2**63  # for a BIGINT


def fitted_column(column: pa.ChunkedArray, attribute: Field) -> tuple[pa.ChunkedArray, Bools]:
    """A stored column in the type of its attribute.

    Returns:
        The column, with null in place of each number that would change; and bool[n], the rows that have one,
        perhaps in a list.

    Raises:
        pa.ArrowInvalid: it has another type.
    """
    if attribute.type == STRUCT:
        return typed(column, STRUCT), np.zeros(len(column), np.bool_)
    made = _typed(column, ARROW_TYPES[attribute.type])
    return made, _lost(column, made)


def _lost(given: pa.ChunkedArray, made: pa.ChunkedArray) -> Bools:
    """bool[n]: the rows that are null now, or have such a value in their list, and were not before."""
    if not pa.types.is_list(made.type) or pa.types.is_null(given.type):
        return bools(pc.and_(pc.is_valid(given), pc.is_null(made)).combine_chunks())
    before, after = given.combine_chunks(), made.combine_chunks()
    lists = np.zeros(len(after), np.bool_)
    elements = (pa.chunked_array([pc.list_flatten(column)]) for column in (before, after))
    lists[pc.list_parent_indices(after).to_numpy()[_lost(*elements)]] = True
    return lists


def _typed(column: pa.ChunkedArray, target: pa.DataType) -> pa.ChunkedArray:
    """Convert a stored column to the declared type; floats may lose precision, times what is below 1 µs.

    Numbers of which more would be lost become null.

    Raises:
        pa.ArrowInvalid: it has another type.
    """
    is_, stored = pa.types, column.type
    if is_.is_list(target) and not is_.is_null(stored):
        return with_elements(column, lambda elements: _typed(elements, target.value_type), target)
    if is_.is_dictionary(stored):
        if is_.is_string_view(stored.value_type):  # of polars; Arrow does not decode it
            column = column.cast(pa.dictionary(stored.index_type, pa.string()))
        return _typed(column.cast(column.type.value_type), target)
    if is_.is_timestamp(stored) and is_.is_timestamp(target):
        return _microseconds(column)
    if is_.is_decimal(target) and (is_.is_integer(stored) or is_.is_decimal(stored)):
        decimals = (column.cast(_INTEGERS) if is_.is_integer(stored) else column).combine_chunks()
        found = to_decimal(decimals, target)
        same = pc.equal(to_decimal(found, decimals.type), decimals)
        return pa.chunked_array([pc.if_else(pc.fill_null(same, False), found, None)])
    if is_.is_uint64(stored) and is_.is_integer(target):
        column = pc.if_else(pc.less(column, pa.scalar(_LEAST_TOO_LARGE, stored)), column, None)
    is_number = is_.is_integer(stored) or is_.is_floating(stored) or is_.is_decimal(stored)
    kept = stored == target or is_.is_null(stored)
    kept |= is_.is_integer(stored) and is_.is_integer(target)
    kept |= is_number and is_.is_floating(target)
    kept |= is_text(stored) and is_.is_string(target)
    if not kept:
        raise pa.ArrowInvalid(f"a column of {stored}")
    return column.cast(target, safe=False)


def _microseconds(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Convert times of any unit to microseconds; times too large for these stay far out of range."""
    unit, target = column.type.unit, pa.timestamp("us")
    if unit == "ns":
        # without its zone, for with it hours that a clock shows twice would be refused
        return pc.floor_temporal(column.cast(pa.timestamp("ns")), unit="microsecond").cast(target, safe=False)
    if unit == "us":
        return column.cast(target)
    most = FAR_US // UNIT_US[unit]
    counts = pc.max_element_wise(column.cast(pa.int64()), -most, skip_nulls=False)
    counts = pc.min_element_wise(counts, most, skip_nulls=False)
    return counts.cast(pa.timestamp(unit)).cast(target)
