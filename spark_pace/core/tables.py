"""Functions for Arrow tables of events: read columns as arrays, add columns, concatenate tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from spark_pace.core.columns import Bools


def array(table: pa.Table, name: str) -> pa.Array:
    """The column as one Arrow array; a column of several chunks is copied."""
    column = table.column(name)
    if column.num_chunks == 1:
        return column.chunk(0)
    return column.combine_chunks()


def numbers(table: pa.Table, name: str) -> npt.NDArray[Any]:
    """The column, which must have no nulls, as a numpy array."""
    column = array(table, name)
    if pa.types.is_boolean(column.type):
        return bools(column)
    return column.to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]


def bools(values: pa.BooleanArray) -> Bools:
    """The values, none of them null, as a numpy array; takes a tenth of Arrow's time."""
    count, skipped = len(values), values.offset % 8
    if not count:
        return np.zeros(0, np.bool_)
    held = np.frombuffer(values.buffers()[1], np.uint8)[values.offset // 8 :]
    return np.unpackbits(held, count=skipped + count, bitorder="little")[skipped:].view(np.bool_)


def boolean(values: Bools) -> pa.BooleanArray:
    """The values as an Arrow array; the reverse of `bools`, and as fast."""
    held = pa.py_buffer(np.packbits(values, bitorder="little"))
    return pa.BooleanArray.from_buffers(pa.bool_(), len(values), [None, held])


def with_column(table: pa.Table, name: str, values: pa.Array | npt.NDArray[Any]) -> pa.Table:
    """The table with one column added or replaced."""
    column = values if isinstance(values, pa.Array) else pa.array(values)
    if name in table.column_names:
        return table.set_column(table.column_names.index(name), name, column)
    return table.append_column(name, column)


def concat(tables: list[pa.Table]) -> pa.Table:
    """The tables one below the other, each column in one chunk; a single table is returned as it is."""
    return tables[0] if len(tables) == 1 else in_chunks(tables).combine_chunks()


def in_chunks(tables: list[pa.Table]) -> pa.Table:
    """The tables one below the other. A column keeps the chunks of all tables, so that none is copied."""
    return tables[0] if len(tables) == 1 else pa.concat_tables(tables).unify_dictionaries()


def chosen(table: pa.Table, rows: Bools) -> pa.Table:
    """The rows of the table where `rows`, bool[n], is true.

    Unless these are all rows, dictionaries lose the values that no row has any more.
    """
    if rows.all():
        return table
    return compacted(table.filter(boolean(rows)))


def compacted(table: pa.Table) -> pa.Table:
    """The table with columns of one chunk each; dictionaries lose the values that no row has any more."""
    for name in table.column_names:
        column = array(table, name)
        if pa.types.is_dictionary(column.type):
            column = _compact(column)
        table = with_column(table, name, column)
    return table


def _compact(values: pa.DictionaryArray) -> pa.DictionaryArray:
    if len(values.dictionary) == 1 and values.null_count < len(values):  # most often the column of sources
        return values
    used = np.sort(pc.unique(values.indices).drop_null().to_numpy())
    place = np.empty(len(values.dictionary), np.int32)
    place[used] = np.arange(len(used))
    codes = pc.take(pa.array(place), values.indices)
    return pa.DictionaryArray.from_arrays(codes, values.dictionary.take(pa.array(used)))


def joined(schema: pa.Schema, tables: Sequence[pa.Table]) -> pa.Table:
    """Tables of this schema one below the other, with columns of one chunk each."""
    return all_filled(schema, tables).combine_chunks()


def all_filled(schema: pa.Schema, tables: Sequence[pa.Table]) -> pa.Table:
    """The tables that have rows, all of this schema, one below the other; no column is copied."""
    return pa.concat_tables([table for table in tables if table.num_rows] or [schema.empty_table()])


def paired(left: pa.DictionaryArray, right: pa.DictionaryArray, between: str) -> pa.DictionaryArray:
    """The two texts of each row joined by `between`; null if one is null. Each distinct text is made once."""
    size = max(1, len(right.dictionary))
    codes = pc.add(pc.multiply(left.indices.cast(pa.int64()), size), right.indices.cast(pa.int64()))
    pairs = codes.dictionary_encode()
    both = [divmod(code, size) for code in pairs.dictionary.to_pylist()]
    texts = [f"{left.dictionary[one]}{between}{right.dictionary[other]}" for one, other in both]
    return pa.DictionaryArray.from_arrays(pairs.indices, pa.array(texts, pa.string()))
