"""Converts columns that have a type of their own, as in Parquet and in frames, to the types of the core."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_pace.core.expr import ARROW_TYPES, STRUCT, array_element, decimal_digits
from spark_pace.core.expr.decimals import to_decimal
from spark_pace.core.plan.rule import Field
from spark_pace.core.tables import Bools, bools
from spark_pace.io.event_times import FAR_US, UNIT_US
from spark_pace.io.text.column_types import typed, with_elements

_INTEGERS = pa.decimal128(20, 0)  # has room for each of 64 bits
_LEAST_TOO_LARGE = 2**63  # for a BIGINT


def fitted_column(column: pa.ChunkedArray, attribute: Field) -> pa.ChunkedArray:
    """A stored column in the type of its attribute.

    Raises:
        pa.ArrowInvalid: it has another type, or a value that would change.
    """
    if attribute.type == STRUCT:
        return typed(column, STRUCT)
    return _typed(column, ARROW_TYPES[attribute.type])


def _typed(column: pa.ChunkedArray, target: pa.DataType) -> pa.ChunkedArray:
    """Convert a stored column to the declared type; floats may lose precision, times what is below 1 µs.

    Raises:
        pa.ArrowInvalid: more would be lost.
    """
    is_, stored = pa.types, column.type
    if is_.is_list(target) and not is_.is_null(stored):
        return with_elements(column, lambda elements: _typed(elements, target.value_type), target)
    if is_.is_dictionary(stored):
        if is_.is_string_view(stored.value_type):  # of polars; Arrow does not decode it
            column = column.cast(pa.dictionary(stored.index_type, pa.string()))
        return _typed(column.cast(column.type.value_type), target)
    if is_.is_decimal(target) and (is_.is_integer(stored) or is_.is_decimal(stored)):
        decimals, changed = _decimals(column.combine_chunks(), target)
        if changed.any():
            raise pa.ArrowInvalid(f"{column.filter(pa.array(changed))[0].as_py()}, which has too many digits")
        return pa.chunked_array([decimals])
    is_number = is_.is_integer(stored) or is_.is_floating(stored) or is_.is_decimal(stored)
    kept = stored == target or is_.is_null(stored)
    kept |= is_.is_integer(stored) and is_.is_integer(target)
    if is_.is_timestamp(stored) and is_.is_timestamp(target):
        return _microseconds(column)
    kept |= is_number and is_.is_floating(target)
    is_text = is_.is_large_string(stored) or is_.is_string_view(stored)
    kept |= is_text and is_.is_string(target)
    if not kept:
        raise pa.ArrowInvalid(f"a column of {stored}")
    return column.cast(target, safe=is_.is_integer(target))


def _decimals(column: pa.Array, target: pa.DataType) -> tuple[pa.Array, Bools]:
    """Whole numbers or decimals in another type of decimals; and bool[n], which ones would change."""
    if pa.types.is_integer(column.type):
        column = column.cast(_INTEGERS)
    found = to_decimal(column, target)
    same = pc.fill_null(pc.equal(to_decimal(found, column.type), column), False)
    return found, bools(pc.is_valid(column)) & ~bools(same)


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


def too_large_or_exact(column: pa.ChunkedArray, attribute: Field) -> Bools:
    """bool[n]: the rows with a number that has too many digits for an attribute, before or behind the point.

    It is about columns of a type that `fitted_column` takes; in columns of another type no row is told.
    """
    column = column.combine_chunks()
    if not pa.types.is_list(column.type) and not pa.types.is_large_list(column.type):
        return _of_numbers(column, attribute.type)
    lists = np.zeros(len(column), np.bool_)
    wrong = _of_numbers(pc.list_flatten(column), array_element(attribute.type) or attribute.type)
    lists[pc.list_parent_indices(column).to_numpy()[wrong]] = True
    return lists


def _of_numbers(column: pa.Array, kind: str) -> Bools:
    is_, stored = pa.types, column.type
    if decimal_digits(kind) and (is_.is_integer(stored) or is_.is_decimal(stored)):
        return _decimals(column, ARROW_TYPES[kind])[1]
    if kind == "BIGINT" and is_.is_integer(stored):
        least = pa.scalar(Decimal(_LEAST_TOO_LARGE), _INTEGERS)
        return bools(pc.fill_null(pc.greater_equal(column.cast(_INTEGERS), least), False))
    return np.zeros(len(column), np.bool_)
