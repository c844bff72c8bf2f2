"""Ranges of rows, and whole numbers that stand for values: in their order, equal as they are, or hashes.

Hashes, and buckets of keys, are the same in every process and release, for checkpoints rest on them.
"""

from __future__ import annotations

import itertools
import math
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from spark_pace import ways
from spark_pace.core.tables import GREATEST, NULL_ORDER, Bools, Ints, bools


def even_ranges(weights: Ints, most: int, least_weight: int) -> list[tuple[int, int]]:
    """Cut n things into neighbouring ranges of about equal weight.

    Args:
        weights: int64[n], the weight of each thing.
        most: the greatest number of ranges.
        least_weight: the least weight of a range, about.

    Returns:
        The ranges (first, last + 1), in order.
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


def running(steps: npt.NDArray[Any]) -> Ints:
    """int64[n + 1], the sum of the integers before each place; sums above 64 bits wrap around."""
    sums = np.zeros(len(steps) + 1, np.int64)
    np.cumsum(steps, out=sums[1:])
    return sums


def range_sums(steps: npt.NDArray[Any], start: Ints, end: Ints) -> Ints:
    """int64[s], the sum of the integers of each range of rows, `start` to the row before `end`."""
    sums = running(steps)  # what wraps around does so in both terms
    return sums[end] - sums[start]


def folded(fold: np.ufunc, values: npt.NDArray[Any], start: Ints, end: Ints) -> npt.NDArray[Any]:
    """The least or greatest of each range of rows, `start` to the row before `end`; no range is empty.

    Ranges may overlap: time is O(n log m) for m the rows of the longest one, however many there are. In pass
    number l, row i has the fold of 2 ** l rows from i on, and a range is two of these, which may overlap too.

    Args:
        fold: ``np.minimum`` or ``np.maximum``, of rows too where `values` has several dimensions.
        values: n rows.
        start: int64[s].
        end: int64[s].
    """
    passes = np.frexp((end - start).astype(np.float64))[1] - 1
    found = np.empty((len(start), *values.shape[1:]), values.dtype)
    for number in range(int(passes.max(initial=-1)) + 1):
        here, step = np.flatnonzero(passes == number), 1 << number
        found[here] = fold(values[start[here]], values[end[here] - step])
        values = fold(values[:-step], values[step:])
    return found


def pieces(counts: Ints, rows: int | None = None) -> Iterator[slice]:
    """Cut things into slices of about `rows` rows, at most PIECE_ROWS; thing i has counts[i] rows."""
    rows = ways.PIECE_ROWS if rows is None else min(rows, ways.PIECE_ROWS)
    total = np.cumsum(counts)
    start = 0
    while start < len(counts):
        done = total[start - 1] if start else 0
        stop = max(start + 1, int(np.searchsorted(total, done + rows, "right")))
        yield slice(start, stop)
        start = stop


def reached(following: Ints, from_: Bools) -> Ints:
    """int64[m], the rows that some rows lead to, these included, in ascending order.

    The steps double in length, so a chain of n steps takes log n rounds over all rows.

    Args:
        following: int64[n], the row that each row leads to, which is greater; n: none.
        from_: bool[n], the rows to begin with.
    """
    count = len(following)
    there, steps = np.append(from_, False), np.append(following, count)
    while (steps[:-1] < count).any():
        there[steps[np.flatnonzero(there)]] = True
        steps = steps[steps]
    return np.flatnonzero(there[:-1])


def in_order(columns: Iterable[pa.Array], *, strictly: bool = False) -> bool:
    """True if rows certainly ascend by these columns, nulls first (`strictly`: and no two are equal).

    Only columns of integers are compared; if another column must decide, the result is False.
    """
    equal: Bools | None = None  # the rows that equal the row before them in the columns so far
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
    order = np.argsort(values, kind="stable")  # takes a third of Arrow's time for several columns
    same = np.diff(values[order]) == 0
    tied = np.flatnonzero(np.append(same, False) | np.append(False, same))
    if len(tied):
        order[tied] = order[tied][_sorted_by_all(columns, order[tied])]
    return order


def _sorted_by_all(columns: Mapping[str, pa.Array], rows: Ints | None) -> Ints:
    """The permutation (int64[m]) that sorts m rows by all columns, ascending, nulls first.

    Args:
        columns: the columns.
        rows: int64[m], the rows to be sorted, of which equal ones stay in this order; None for all rows.
    """
    keys = {}
    for number, column in enumerate(columns.values()):
        taken = column if rows is None else column.take(pa.array(rows))
        if column.null_count:
            keys[f"{number} is valid"] = pc.is_valid(taken)
        keys[str(number)] = taken
    indices = pc.sort_indices(pa.table(keys), sort_keys=[(name, "ascending") for name in keys])
    return indices.to_numpy().astype(np.int64)  # type: ignore[no-any-return]


def ranks(values: pa.DictionaryArray) -> pa.Array:
    """int64[n] in the order of the values, null for null. The dictionary must have no null value."""
    order = pc.rank(values.dictionary, "ascending", tiebreaker="dense").cast(pa.int64())
    return pc.take(order, values.indices)


def value_codes(values: pa.Array) -> Ints:
    """int64[n], equal where the values are equal in SQL (NaN = NaN, 0.0 = -0.0); -1 for null."""
    indices = pc.fill_null(_encoded(values).indices, -1)
    return indices.to_numpy(zero_copy_only=False).astype(np.int64)  # type: ignore[no-any-return]


def value_ranks(columns: Sequence[pa.Array]) -> list[Ints]:
    """Rank the values of several columns together: int64[n] for each, in the order of SQL; -1 for null.

    The columns have the same type. NaN equals NaN and is greater than every number, 0.0 = -0.0, and text is
    compared by its UTF-8 bytes.
    """
    encoded = _encoded(pa.concat_arrays(columns))
    ascending = pc.sort_indices(encoded.dictionary).to_numpy()  # this puts NaN last
    ranks = np.full(len(ascending) + 1, -1)
    ranks[ascending] = np.arange(len(ascending))
    codes = ranks[pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False)]
    return np.split(codes, np.cumsum([len(column) for column in columns])[:-1])


def value_orders(columns: Sequence[pa.Array]) -> list[Ints]:
    """Like `value_ranks`, with int64 that need not be ranks, and `NULL_ORDER` for null.

    Only texts and DECIMALs must be sorted for it: other values are numbers of 64 bits already.
    """
    if not pa.types.is_string(columns[0].type) and not pa.types.is_decimal(columns[0].type):
        orders = [_order(column) for column in columns]
        if all(order.min(initial=0) > NULL_ORDER for _, order in orders):
            return [np.where(null, NULL_ORDER, order) for null, order in orders]
    return [np.where(ranks < 0, NULL_ORDER, ranks) for ranks in value_ranks(columns)]


def _order(values: pa.Array) -> tuple[Bools, Ints]:
    """For n values bool[n], which are null, and int64[n] in the order of the values."""
    null = pc.is_null(values).to_numpy(zero_copy_only=False)
    if not pa.types.is_floating(values.type):
        kind = pa.int32() if pa.types.is_date32(values.type) else pa.int64()
        return null, pc.fill_null(values.cast(kind), 0).to_numpy().astype(np.int64)
    return null, float_orders(pc.fill_null(values, 0.0).to_numpy())


def float_orders(numbers: npt.NDArray[np.float64]) -> Ints:
    """int64[n] in the order that the numbers have in SQL: NaN is the greatest, and 0.0 = -0.0."""
    numbers = numbers + 0.0  # turns -0.0 into 0.0
    bits = numbers.view(np.int64)  # the bits of positive numbers are in the order of the numbers
    return np.where(np.isnan(numbers), GREATEST, np.where(bits < 0, bits ^ GREATEST, bits))


def floats_of(orders: Ints) -> npt.NDArray[np.float64]:
    """float64[n], the reverse of `float_orders`."""
    return np.where(orders < 0, orders ^ GREATEST, orders).view(np.float64)  # the greatest one is a NaN


def _encoded(values: pa.Array) -> pa.DictionaryArray:
    """Encode the values by a dictionary in which no two values are equal in SQL."""
    if pa.types.is_floating(values.type):
        values = pc.add(values, 0.0)  # turns -0.0 into 0.0
        values = pc.if_else(pc.is_nan(values), math.nan, values)  # NaNs may differ in their bits
    return values.dictionary_encode()


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


Hashes: TypeAlias = npt.NDArray[np.uint64]


def hash_values(values: pa.Array) -> Hashes:
    """uint64[n], a hash of each value, equal where the values are equal in SQL; none of them is null."""
    kind = values.type
    if pa.types.is_string(kind):
        return hash_texts(values)
    if pa.types.is_decimal(kind):
        words = np.frombuffer(values.buffers()[1], np.uint64).reshape(-1, 2)
        words = words[values.offset : values.offset + len(values)]
        return _mixed(_mixed(words[:, 0]) ^ words[:, 1])
    if pa.types.is_floating(kind):
        return _mixed(float_orders(values.to_numpy()).view(np.uint64))
    whole = values.cast(pa.int32() if pa.types.is_date32(kind) else pa.int64())
    return _mixed(whole.to_numpy(zero_copy_only=False).astype(np.int64).view(np.uint64))


def hash_nullable(values: pa.Array) -> Hashes:
    """uint64[n], a hash of each value as `hash_values` makes it; 0 of null."""
    known = bools(values.is_valid())
    hashes = np.zeros(len(values), np.uint64)
    hashes[known] = hash_values(values.drop_null())
    return hashes


def hash_texts(texts: pa.Array) -> Hashes:
    """uint64[n], equal for equal texts, and the same in every process; different texts seldom have one hash.

    The hash of a text is the sum of a mixed number for each (place, byte).
    """
    count = len(texts)
    if not count:
        return np.zeros(0, np.uint64)
    texts = texts.cast(pa.large_string())
    offsets = np.frombuffer(texts.buffers()[1], np.int64, count + 1, texts.offset * 8)
    lengths = np.diff(offsets)
    start, end = int(offsets[0]), int(offsets[-1])
    if start == end:
        return _mixed(lengths.astype(np.uint64))
    codes = np.frombuffer(texts.buffers()[2], np.uint8, end - start, start).astype(np.uint64)
    place = np.arange(end - start) - np.repeat(offsets[:-1] - start, lengths)
    total = np.append(np.uint64(0), np.cumsum(_mixed((place.astype(np.uint64) << np.uint64(8)) | codes)))
    sums = total[offsets[1:] - start] - total[offsets[:-1] - start]
    return _mixed(sums + lengths.astype(np.uint64))


def _mixed(values: Hashes) -> Hashes:
    """Splitmix64: each bit of a result depends on all bits of its value."""
    values = (values + np.uint64(0x9E3779B97F4A7C15)).astype(np.uint64)
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))  # type: ignore[no-any-return]


def buckets_of(texts: pa.Array, buckets: int) -> Ints:
    """int64[n], the bucket of each of n texts, none null: the CRC-32 of the text, modulo their number."""
    if buckets == 1:
        return np.zeros(len(texts), np.int64)
    codes = map(zlib.crc32, texts.cast(pa.large_binary()).to_pylist())
    return np.fromiter(codes, np.int64, len(texts)) % buckets
