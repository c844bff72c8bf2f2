"""What many values come to that no sums say: distinct ones, extremes, percentiles, lists, sketches.

For all but lists and sketches values are sorted once for each question, by group and then as SQL compares
them: NaN equals NaN and is the greatest number, 0.0 = -0.0. Nulls are left out. `extremes` is for ranges,
which may overlap.

Sketches of sets, for their sizes, are HyperLogLog registers, as columns. The sketch of the values of several
ranges is the greatest of theirs, register by register. So no estimate depends on how a stream is cut.

Sources: Flajolet et al., HyperLogLog, 2007; Ertl, New Cardinality Estimation Algorithms for HyperLogLog
Sketches, 2017, algorithm 6 (an estimate without tables, for all sizes).
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from spark_pace.core.expr import Aggregate
from spark_pace.core.ranks import (
    expand,
    float_orders,
    floats_of,
    folded,
    hash_nullable,
    pieces,
    segments_of,
    value_codes,
    value_ranks,
)
from spark_pace.core.tables import Ints, bools

Registers: TypeAlias = npt.NDArray[np.uint8]  # uint8[s, SIZE]
Floats: TypeAlias = npt.NDArray[np.float64]

_INDEX_BITS = 9
SIZE = 1 << _INDEX_BITS  # registers: a relative error of 1.04 / sqrt(SIZE), 4.6 percent
_RANK_BITS = 64 - _INDEX_BITS
STORED = pa.binary(SIZE)


def registers_of(values: pa.Array, start: Ints, end: Ints) -> Registers:
    """A sketch for each range of rows, of the values that are not null.

    Args:
        values: the values of n rows.
        start: int64[s], the first row of each range.
        end: int64[s], the row behind its last one.
    """
    known, hashes = bools(pc.is_valid(values)), hash_nullable(values)
    place = (hashes & np.uint64(SIZE - 1)).astype(np.int64)
    rest = (hashes >> np.uint64(_INDEX_BITS)) | np.uint64(1 << _RANK_BITS)
    lowest = rest & (~rest + np.uint64(1))
    rank = np.frexp(lowest.astype(np.float64))[1].astype(np.int64)  # 1 and the number of zeros at its end
    registers = np.zeros((len(start), SIZE), np.uint8)
    for piece in pieces(end - start):
        owner, rows = expand(start[piece], end[piece])
        rows, owner = rows[known[rows]], owner[known[rows]] + piece.start
        ascending = np.sort((owner * SIZE + place[rows]) << 8 | rank[rows])
        registers.ravel()[ascending >> 8] = ascending & 0xFF  # the last one of each place is the greatest
    return registers


def stored(registers: Registers) -> pa.Array:
    """The sketches as values of `STORED`."""
    held = pa.py_buffer(np.ascontiguousarray(registers))
    return pa.Array.from_buffers(STORED, len(registers), [None, held])


def of_stored(values: pa.Array) -> Registers:
    """The sketches that `stored` has made values of."""
    held = np.frombuffer(values.buffers()[1], np.uint8).reshape(-1, SIZE)
    registers: Registers = held[values.offset : values.offset + len(values)]
    return registers


def sizes(registers: Registers) -> Ints:
    """int64[s], about how many different values each sketch is of."""
    estimates = np.zeros(len(registers))
    for piece in pieces(np.full(len(registers), SIZE)):
        rows = registers[piece].astype(np.int64)
        ranks = _RANK_BITS + 2
        of_rank = np.arange(len(rows))[:, np.newaxis] * ranks + rows
        counts = np.bincount(of_rank.ravel(), minlength=len(rows) * ranks).reshape(-1, ranks)
        estimates[piece] = _estimates(counts.astype(np.float64))
    return np.rint(estimates).astype(np.int64)


def _estimates(counts: Floats) -> Floats:
    """The estimate of each sketch, of float64[s, ranks], how many registers have each rank."""
    total = SIZE * _tau(1 - counts[:, -1] / SIZE)
    for rank in range(_RANK_BITS, 0, -1):
        total = (total + counts[:, rank]) / 2
    with np.errstate(over="ignore"):  # of an empty sketch it is infinite
        total += SIZE * _sigma(counts[:, 0] / SIZE)
    found: Floats = SIZE * SIZE / (2 * np.log(2) * total)
    return found


def _sigma(share: Floats) -> Floats:
    """The sum of share ** (2 ** k) * 2 ** (k - 1) over all k from 0 on, and share once more."""
    power, factor, total = share, 1.0, np.where(share == 1, np.inf, share)
    for _ in range(_RANK_BITS + 9):  # then 2 ** k is so great that only a share of 1 counts
        power = power * power
        total = total + power * factor
        factor *= 2
    return total


def _tau(share: Floats) -> Floats:
    """A third of 1 - share, less the sum of (1 - share ** (2 ** -k)) ** 2 * 2 ** -k over all k from 1 on."""
    power, factor, total = share, 1.0, 1 - share
    for _ in range(_RANK_BITS):
        power = np.sqrt(power)
        factor /= 2
        total = total - (1 - power) ** 2 * factor
    return np.where((share == 0) | (share == 1), 0.0, total / 3)


FUNCTIONS = ("count_distinct", "median", "percentile", "mode", "collect_list")
MEDIAN = 0.5


def distributed(one: Aggregate, values: pa.Array, owner: Ints, rows: int) -> pa.Array:
    """One of `FUNCTIONS` of each group.

    Args:
        one: the aggregate.
        values: of n rows.
        owner: int64[n], ascending, the group of each row.
        rows: how many groups there are. Of one without values a count is 0, a list empty, anything else null.
    """
    known = bools(pc.is_valid(values))
    if not known.all():
        values, owner = values.filter(pa.array(known)), owner[known]
    if one.function == "count_distinct":
        return pa.array(_distinct(value_codes(values), owner, rows))
    if one.function == "mode":
        return _mode(values, owner, rows)
    if one.function == "collect_list":
        assert one.at is not None
        return _lists(values, owner, rows, int(one.at))
    return _percentile(values, owner, rows, MEDIAN if one.at is None else one.at)


def extremes(values: pa.Array, start: Ints, end: Ints, *, least: bool) -> pa.Array:
    """The least or greatest value of each range of rows, `start` to the one before `end`."""
    if pa.types.is_floating(values.type):
        values = pc.add(values, 0.0)  # which makes 0.0 of -0.0, so that equal values look alike
    (ranks,) = value_ranks([values])
    none = len(ranks) if least else -1
    row_of = np.zeros(len(ranks) + 1, np.int64)
    row_of[ranks] = np.arange(len(ranks))
    found, some = np.full(len(start), none), np.flatnonzero(start < end)
    ranks = np.where(ranks < 0, none, ranks)
    found[some] = folded(np.minimum if least else np.maximum, ranks, start[some], end[some])
    return values.take(pa.array(row_of[found], mask=found == none))


def _lists(values: pa.Array, owner: Ints, rows: int, most: int) -> pa.Array:
    """list[rows], the first values of each group, `most` at most, in the order of the rows."""
    counts = np.bincount(owner, minlength=rows)
    place = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
    offsets = np.append(0, np.cumsum(np.minimum(counts, most))).astype(np.int32)
    return pa.ListArray.from_arrays(offsets, values.filter(pa.array(place < most)))


def _distinct(codes: Ints, owner: Ints, rows: int) -> Ints:
    """int64[rows], how many different codes each group has."""
    pairs = np.unique(owner * (int(codes.max(initial=0)) + 1) + codes)
    return np.bincount(pairs // (int(codes.max(initial=0)) + 1), minlength=rows)


def _percentile(values: pa.Array, owner: Ints, rows: int, at: float) -> pa.Array:
    """What stands at a place in the order of each group's numbers, between two of them in proportion.

    Sources: Spark's ``percentile``, whose formula this is.
    """
    is_whole = pa.types.is_integer(values.type)
    orders = values.to_numpy() if is_whole else float_orders(values.to_numpy())
    order = np.lexsort([orders, owner])
    counts = np.bincount(owner, minlength=rows)
    first = np.cumsum(counts) - counts
    place = np.maximum(counts - 1, 0) * at
    below, above = np.floor(place), np.ceil(place)
    ranked = np.append(orders[order], 0)
    low, high = (np.minimum(first + step.astype(np.int64), len(order)) for step in (below, above))
    least, most = _as_doubles(ranked[low], is_whole), _as_doubles(ranked[high], is_whole)
    with np.errstate(over="ignore", invalid="ignore"):
        between = (above - place) * least + (place - below) * most
    return pa.array(np.where(ranked[low] == ranked[high], least, between), mask=counts == 0)


def _as_doubles(orders: Ints, is_whole: bool) -> npt.NDArray[np.float64]:
    return orders.astype(np.float64) if is_whole else floats_of(orders)


def _mode(values: pa.Array, owner: Ints, rows: int) -> pa.Array:
    """The most frequent value of each group; of several the least."""
    (ranks,) = value_ranks([values])
    pairs = owner * (len(values) + 1) + ranks
    _, first, times = np.unique(pairs, return_index=True, return_counts=True)
    of = owner[first]
    best = np.lexsort([-times, of])  # of equal times the least value comes first, as in `pairs`
    leads = best[segments_of(of[best])]
    place = np.full(rows, -1)
    place[of[leads]] = first[leads]
    if pa.types.is_floating(values.type):
        values = pc.add(values, 0.0)  # which makes 0.0 of -0.0
    return values.take(pa.array(place, mask=place < 0))
