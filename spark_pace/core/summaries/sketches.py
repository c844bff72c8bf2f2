"""Sketches of sets, for their sizes: HyperLogLog registers, as columns.

The sketch of the values of several ranges is the greatest of theirs, register by register. So no estimate
depends on how a stream is cut.

Sources: Flajolet et al., HyperLogLog, 2007; Ertl, New Cardinality Estimation Algorithms for HyperLogLog
Sketches, 2017, algorithm 6 (an estimate without tables, for all sizes).
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from spark_pace.core.columns import Ints
from spark_pace.core.hashes import hash_nullable
from spark_pace.core.ranges import expand, pieces
from spark_pace.core.tables import bools

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
