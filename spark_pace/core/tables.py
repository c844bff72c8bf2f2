"""Arrow tables of events: the names of the columns that we add, special numbers in them, and functions."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

TIME = "@time"  # int64, event time in microseconds since 1970 UTC
SOURCE = "@source"  # dictionary<int32, string>: topic and partition, or path
OFFSET = "@offset"  # int64: offset, or row number
HOME = "@home"  # bool: true in one slot only, which counts the event
BITS = "@bits"  # uint64, @bits0, @bits1, …: a bit for each of the plan's `bit_names`, 64 in a column
KEYS = "@key:"  # dictionary<int32, string>: the text of the partition key; named @key:k, @key:k,l, …
JOIN = "@join"  # dictionary<int32, string>: the join value's text, see `core.split.carry.join_values`
SEQ = "@seq"  # int64: position in the rule's stream, per key
OPENING = "@opening"  # int64: the number of initiators before this event, per key
MASK = "@mask"  # uint16, bit k: the event matches component k, or satisfies condition k of a fold's moves
BEGUN = "@begun"  # int64, of a key: the event time of the first event of its stream
OF_KEY = "@of"  # string, of a group of events with equal values: the text of its partition key
SPENT = "@spent"  # int64: says if a match has used the event up, and where, see UNUSED

LEAST, GREATEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max
UNKNOWN_TIME = GREATEST  # a time that has not come; as the frontier: the input has ended
END_OF_INPUT = GREATEST - 1  # the time of what only the end of the input decides
UNKNOWN_CODE = GREATEST  # the code of an unknown position, see `core.match.stream.Positions`
NO_ROW = GREATEST  # greater than every row
NULL_ORDER = LEAST  # the number of null in `value_orders`
NO_FRONTIER = LEAST  # the frontier before the first event
NOTHING_US = LEAST  # a time before all others: there is nothing to wait for
# the low bits of `@spent`; the bits above them are the `seq` of the last event of the match
UNUSED = 0  # the event may still be used
USED = 1  # a match that has gone out has used it
USED_OPEN = 2  # likewise, and the event has opened a selection that stays open until its window ends
SPENT_BITS = 2

MOST_COMPONENTS = 16  # of a pattern, and conditions of a fold's moves: each has a bit of `@mask`
MOST_IN_OPENED_SPANS = 14  # components of a pattern in a span with `open`, which has the last two bits
OPEN_BIT = MOST_IN_OPENED_SPANS  # bit of `@mask`: the event satisfies the span's `open`
CLOSE_BIT = OPEN_BIT + 1  # bit of `@mask`: the event satisfies the part of `close` about one event

UTC_TIME = pa.timestamp("us", "UTC")  # the type of every time in a result table

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


def has_bit(words: npt.NDArray[Any], bit: int) -> Bools:
    """bool[n]: which of some unsigned integers have the bit set."""
    return words & words.dtype.type(1 << bit) != 0  # type: ignore[no-any-return]


def marks_of(spent: Ints) -> Ints:
    """int64[n]: `UNUSED`, `USED` or `USED_OPEN` for each value of `SPENT`."""
    return spent & ((1 << SPENT_BITS) - 1)


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


def on_columns(function: Callable[..., pa.Array]) -> Callable[..., Any]:
    """The function of a column, which gives a scalar for a scalar."""

    @wraps(function)
    def on_either(value: Any) -> Any:
        return function(pa.repeat(value, 1))[0] if isinstance(value, pa.Scalar) else function(value)

    return on_either


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


def paired(left: pa.DictionaryArray, right: pa.DictionaryArray, between: str) -> pa.DictionaryArray:
    """The two texts of each row joined by `between`; null if one is null. Each distinct text is made once."""
    size = max(1, len(right.dictionary))
    codes = pc.add(pc.multiply(left.indices.cast(pa.int64()), size), right.indices.cast(pa.int64()))
    pairs = codes.dictionary_encode()
    both = [divmod(code, size) for code in pairs.dictionary.to_pylist()]
    texts = [f"{left.dictionary[one]}{between}{right.dictionary[other]}" for one, other in both]
    return pa.DictionaryArray.from_arrays(pairs.indices, pa.array(texts, pa.string()))
