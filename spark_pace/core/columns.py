"""The columns that we add to a table of events, and functions on columns.

Our columns start with "@"; a user's attribute never does.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from spark_pace import ways

TIME = "@time"  # int64, event time in microseconds since 1970 UTC
SOURCE = "@source"  # dictionary<int32, string>: topic and partition, or path
OFFSET = "@offset"  # int64: offset, or row number
HOME = "@home"  # bool: true in one slot only, which counts and reports the event
BITS = "@bits"  # uint64, @bits0, @bits1, …: what each of the plan's `bit_names` says, 64 in a column
KEYS = "@key:"  # dictionary<int32, string>: the partition key's text; @key:k, @key:k,l, … by partition_by
JOIN = "@join"  # dictionary<int32, string>: the join value's text, see `core.split.carry.joined`
SEQ = "@seq"  # int64: place in the rule's stream, per key
OPENING = "@opening"  # int64: how many initiators stand before this event, per key
MASK = "@mask"  # uint16, bit k: the event matches component k
SPENT = "@spent"  # int64: whether a match that is out has used the event up, and when, see UNUSED

_LEAST, _GREATEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max
UNKNOWN_TIME = _GREATEST  # a time that has not come; as the frontier: the input has ended
END_OF_INPUT = _GREATEST - 1  # the time of what only the end of the input decides
UNKNOWN_CODE = _GREATEST  # the code of a position that is not known, see `core.match.stream.Positions`
NO_ROW = _GREATEST  # stands behind every row
NULL_ORDER = _LEAST  # of null among `value_orders`
NO_FRONTIER = _LEAST  # no event has come yet
NOTHING_US = _LEAST  # a time before all others: there is nothing to wait for

# `@spent` of an event: one of these, and above these bits the `seq` of the last event of its match
UNUSED = 0  # it may still be used
USED = 1  # a match that is out has used it
USED_OPEN = 2  # the same, and it has opened a selection that is open until its window ends
SPENT_BITS = 2

MOST_COMPONENTS = 8  # of a pattern: each has a bit of `@mask`
OPEN_BIT = MOST_COMPONENTS  # bit of `@mask`: the event satisfies the span's open
CLOSE_BIT = OPEN_BIT + 1  # bit of `@mask`: the event satisfies what the span's close says of one event

UTC_TIME = pa.timestamp("us", "UTC")  # the type of every time in a result table

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


def array(table: pa.Table, name: str) -> pa.Array:
    """The column as one Arrow array; a column of several chunks is copied."""
    column = table.column(name)
    if column.num_chunks == 1:
        return column.chunk(0)
    return column.combine_chunks()


def numbers(table: pa.Table, name: str) -> npt.NDArray[Any]:
    """The column as a numpy array; it must have no nulls."""
    column = array(table, name)
    if pa.types.is_boolean(column.type):
        return bools(column)
    return column.to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]


def bools(values: pa.BooleanArray) -> Bools:
    """The values as a numpy array; they must have no nulls. It takes a tenth of Arrow's own time."""
    count, skipped = len(values), values.offset % 8
    if not count:
        return np.zeros(0, np.bool_)
    held = np.frombuffer(values.buffers()[1], np.uint8)[values.offset // 8 :]
    return np.unpackbits(held, count=skipped + count, bitorder="little")[skipped:].view(np.bool_)


def boolean(values: Bools) -> pa.BooleanArray:
    """The values as an Arrow array; see `bools`."""
    held = pa.py_buffer(np.packbits(values, bitorder="little"))
    return pa.BooleanArray.from_buffers(pa.bool_(), len(values), [None, held])


def has_bit(words: npt.NDArray[Any], bit: int) -> Bools:
    """bool[n], in which of some unsigned integers the bit is set."""
    return words & words.dtype.type(1 << bit) != 0  # type: ignore[no-any-return]


def marks_of(spent: Ints) -> Ints:
    """int64[n], of values of `SPENT` what is said of the event: `UNUSED`, `USED` or `USED_OPEN`."""
    return spent & ((1 << SPENT_BITS) - 1)


def with_column(table: pa.Table, name: str, values: pa.Array | npt.NDArray[Any]) -> pa.Table:
    """The table with one column added or replaced."""
    column = values if isinstance(values, pa.Array) else pa.array(values)
    if name in table.column_names:
        return table.set_column(table.column_names.index(name), name, column)
    return table.append_column(name, column)


def concat(tables: list[pa.Table]) -> pa.Table:
    """The tables one below the other. Every column has one chunk, and one dictionary if it has any."""
    return tables[0] if len(tables) == 1 else in_chunks(tables).combine_chunks()


def in_chunks(tables: list[pa.Table]) -> pa.Table:
    """The tables one below the other. Every column has a chunk of each, so that none is copied."""
    return tables[0] if len(tables) == 1 else pa.concat_tables(tables).unify_dictionaries()


def chosen(table: pa.Table, rows: Bools) -> pa.Table:
    """The chosen rows of a table of n rows; dictionaries lose the values that no row has any more."""
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
    if len(values.dictionary) == 1 and values.null_count < len(values):  # the one source, most often
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
    """Tables of this schema one below the other, but for those without rows; none is copied."""
    return pa.concat_tables([table for table in tables if table.num_rows] or [schema.empty_table()])


def in_order(columns: Iterable[pa.Array], *, strictly: bool = False) -> bool:
    """Tell whether rows are known to ascend by these columns, nulls first (`strictly`: no two are equal).

    Only integers are looked at: with other columns it is not known.
    """
    equal: Bools | None = None  # which rows are equal to the row before in the columns so far
    for column in columns:
        if not pa.types.is_integer(column.type):
            return False
        filled = pc.fill_null(column, 0).to_numpy()
        parts = [filled] if not column.null_count else [bools(pc.is_valid(column)), filled]
        for part in parts:
            falls, same = part[1:] < part[:-1], part[1:] == part[:-1]
            if (falls if equal is None else falls & equal).any():
                return False
            equal = same if equal is None else same & equal
        if equal is not None and not equal.any():
            return True
    return not strictly


def sorted_rows(columns: Mapping[str, pa.Array]) -> Ints:
    """The permutation (int64[n]) that sorts rows by these columns in their order, ascending, nulls first."""
    columns = {
        name: ranks(column) if pa.types.is_dictionary(column.type) else column
        for name, column in columns.items()
    }
    if columns and in_order(columns.values()):
        return np.arange(len(next(iter(columns.values()))))
    first = next(iter(columns.values()), None)
    if first is None or not pa.types.is_int64(first.type) or first.null_count:
        return _sorted_by_all(columns, None)
    values = first.to_numpy()
    order = np.argsort(values, kind="stable")  # which takes a third of Arrow's time for several columns
    same = np.diff(values[order]) == 0
    tied = np.flatnonzero(np.append(same, False) | np.append(False, same))
    if len(tied):
        order[tied] = order[tied][_sorted_by_all(columns, order[tied])]
    return order


def _sorted_by_all(columns: Mapping[str, pa.Array], rows: Ints | None) -> Ints:
    """Sort some rows (None: all) by all columns; equal rows stay in their order."""
    keys = {}
    for number, column in enumerate(columns.values()):
        taken = column if rows is None else column.take(pa.array(rows))
        if column.null_count:
            keys[f"{number} is valid"] = pc.is_valid(taken)
        keys[str(number)] = taken
    indices = pc.sort_indices(pa.table(keys), sort_keys=[(name, "ascending") for name in keys])
    return indices.to_numpy().astype(np.int64)  # type: ignore[no-any-return]


def ranks(values: pa.DictionaryArray) -> pa.Array:
    """int64 that compare as the values do, null where the value is; no value of the dictionary is null."""
    order = pc.rank(values.dictionary, "ascending", tiebreaker="dense").cast(pa.int64())
    return pc.take(order, values.indices)


def value_codes(values: pa.Array) -> Ints:
    """int64[n], equal where the values are equal in SQL (NaN = NaN, 0.0 = -0.0); -1 for null."""
    indices = pc.fill_null(_encoded(values).indices, -1)
    return indices.to_numpy(zero_copy_only=False).astype(np.int64)  # type: ignore[no-any-return]


def value_ranks(columns: Sequence[pa.Array]) -> list[Ints]:
    """For each column of one type, int64[n] that compare as the values of all columns do in SQL; -1 for null.

    NaN equals NaN and is greater than every number, 0.0 = -0.0, and text is compared by its UTF-8 bytes.
    """
    encoded = _encoded(pa.concat_arrays(columns))
    ascending = pc.sort_indices(encoded.dictionary).to_numpy()  # which puts NaN last
    ranks = np.full(len(ascending) + 1, -1)
    ranks[ascending] = np.arange(len(ascending))
    codes = ranks[pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False)]
    return np.split(codes, np.cumsum([len(column) for column in columns])[:-1])


def value_orders(columns: Sequence[pa.Array]) -> list[Ints]:
    """Give int64 that compare as `value_ranks` do, but need not be ranks; `NULL_ORDER` for null.

    Only texts and DECIMALs are sorted for it: other values are numbers of 64 bits already.
    """
    if not pa.types.is_string(columns[0].type) and not pa.types.is_decimal(columns[0].type):
        orders = [_order(column) for column in columns]
        if all(order.min(initial=0) > NULL_ORDER for _, order in orders):
            return [np.where(null, NULL_ORDER, order) for null, order in orders]
    return [np.where(ranks < 0, NULL_ORDER, ranks) for ranks in value_ranks(columns)]


def _order(values: pa.Array) -> tuple[Bools, Ints]:
    """For each value, whether it is null, and an int64 that compares as the value does."""
    null = pc.is_null(values).to_numpy(zero_copy_only=False)
    if not pa.types.is_floating(values.type):
        kind = pa.int32() if pa.types.is_date32(values.type) else pa.int64()
        return null, pc.fill_null(values.cast(kind), 0).to_numpy().astype(np.int64)
    return null, float_orders(pc.fill_null(values, 0.0).to_numpy())


def float_orders(numbers: npt.NDArray[np.float64]) -> Ints:
    """int64[n] that compare as the numbers do in SQL: NaN is the greatest, and 0.0 = -0.0."""
    numbers = numbers + 0.0  # which makes 0.0 of -0.0
    bits = numbers.view(np.int64)  # of positive numbers they compare as the numbers do
    return np.where(np.isnan(numbers), _GREATEST, np.where(bits < 0, bits ^ _GREATEST, bits))


def floats_of(orders: Ints) -> npt.NDArray[np.float64]:
    """The numbers of which `float_orders` has made these."""
    return np.where(orders < 0, orders ^ _GREATEST, orders).view(np.float64)  # the greatest one is a NaN


def _encoded(values: pa.Array) -> pa.DictionaryArray:
    """The values with a dictionary that has each once, as SQL counts them."""
    if pa.types.is_floating(values.type):
        values = pc.add(values, 0.0)  # which makes 0.0 of -0.0
        values = pc.if_else(pc.is_nan(values), math.nan, values)  # NaNs may differ in their bits
    return values.dictionary_encode()


def paired(left: pa.DictionaryArray, right: pa.DictionaryArray, between: str) -> pa.DictionaryArray:
    """The texts of two columns, joined by `between`; none is made twice. Null where one of them is."""
    size = max(1, len(right.dictionary))
    codes = pc.add(pc.multiply(left.indices.cast(pa.int64()), size), right.indices.cast(pa.int64()))
    pairs = codes.dictionary_encode()
    both = [divmod(code, size) for code in pairs.dictionary.to_pylist()]
    texts = [f"{left.dictionary[one]}{between}{right.dictionary[other]}" for one, other in both]
    return pa.DictionaryArray.from_arrays(pairs.indices, pa.array(texts, pa.string()))


def distinct(columns: Sequence[pa.Array]) -> tuple[Ints, Ints]:
    """The distinct combinations of values in some columns of n rows.

    Returns:
        first: int64[c], the first row of each combination; code: int64[n], each row's combination.
    """
    code = np.zeros(len(columns[0]), np.int64)
    first = np.zeros(0, np.int64)
    for column in columns:
        values = value_codes(column) + 1
        combined = code * (int(values.max(initial=0)) + 1) + values
        _, first, code = np.unique(combined, return_index=True, return_inverse=True)
    return first, code


def segments_of(codes: Ints) -> Ints:
    """int64[s], the first row of each run of equal codes."""
    if len(codes) == 0:
        return np.zeros(0, np.int64)
    return np.append(0, np.flatnonzero(np.diff(codes)) + 1)


def even_ranges(weights: Ints, most: int, least_weight: int) -> list[tuple[int, int]]:
    """Cut a run of things into neighbouring ranges of about equal weight.

    Args:
        weights: int64[n], of each thing.
        most: the most ranges.
        least_weight: about the least weight of a range.

    Returns:
        The ranges, in order.
    """
    total = int(weights.sum())
    pieces = max(1, min(most, total // max(1, least_weight), len(weights)))
    if pieces == 1:
        return [(0, len(weights))] if len(weights) else []
    targets = np.arange(1, pieces) * (total / pieces)
    inner = np.searchsorted(np.cumsum(weights), targets) + 1
    bounds = np.unique(np.concatenate([[0], inner, [len(weights)]])).tolist()
    return list(itertools.pairwise(bounds))


def expand(lo: Ints, hi: Ints) -> tuple[Ints, Ints]:
    """All pairs (i, index) with index in the range lo[i]:hi[i], in order, as two int64[k]."""
    counts = hi - lo
    owner = np.repeat(np.arange(len(lo)), counts)
    first = np.cumsum(counts) - counts
    return owner, np.arange(len(owner)) - np.repeat(first - lo, counts)


def pieces(counts: Ints, rows: int | None = None) -> Iterator[slice]:
    """Slices of things; each grows to about `rows`, PIECE_ROWS at most, where thing i grows to counts[i]."""
    rows = ways.PIECE_ROWS if rows is None else min(rows, ways.PIECE_ROWS)
    total = np.cumsum(counts)
    start = 0
    while start < len(counts):
        done = total[start - 1] if start else 0
        stop = max(start + 1, int(np.searchsorted(total, done + rows, "right")))
        yield slice(start, stop)
        start = stop
