"""Bitmaps: a bit for each of n events, 64 in a word, the lowest first; bits behind the last event are 0.

With many rules, each has a handful of a batch's events. To join such sets takes a step for every 64 events.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spark_pace import ways
from spark_pace.core.columns import Bools, Ints

Bitmap = npt.NDArray[np.uint64]  # uint64[(n + 63) // 64], little-endian whatever the machine is

_WORD = np.dtype("<u8")


def bitmap_of(holds: Bools) -> Bitmap:
    """The events for which bool[n] says so."""
    bits = np.zeros(8 * _words(len(holds)), np.uint8)
    packed = np.packbits(holds, bitorder="little")
    bits[: len(packed)] = packed
    return bits.view(_WORD)


def bitmap_of_rows(rows: Ints, count: int) -> Bitmap:
    """These of `count` events, each named once."""
    if not ways.is_named(len(rows), count):
        holds = np.zeros(count, np.bool_)
        holds[rows] = True
        return bitmap_of(holds)
    bits = np.zeros(8 * _words(count), np.uint8)
    np.bitwise_or.at(bits, rows >> 3, np.left_shift(1, rows & 7).astype(np.uint8))
    return bits.view(_WORD)


def every_event(count: int) -> Bitmap:
    """All of `count` events."""
    return bitmap_of(np.ones(count, np.bool_))


def no_event(count: int) -> Bitmap:
    """None of `count` events."""
    return np.zeros(_words(count), _WORD)


def as_bools(bitmap: Bitmap, count: int) -> Bools:
    """bool[count], which events are in the set."""
    return np.unpackbits(bitmap.view(np.uint8), count=count, bitorder="little").view(np.bool_)


def are_many(bitmap: Bitmap) -> bool:
    """Tell whether it takes less to look at all events than to name those that are in the set."""
    return not ways.is_named(int(np.count_nonzero(bitmap)), len(bitmap))


def rows_of(bitmap: Bitmap, count: int) -> Ints:
    """int64[m], the events that are in the set, ascending."""
    if are_many(bitmap):
        return np.flatnonzero(as_bools(bitmap, count))
    words = np.flatnonzero(bitmap)
    word, bit = np.divmod(np.flatnonzero(as_bools(bitmap[words], 64 * len(words))), 64)
    return words[word] * 64 + bit


def _words(count: int) -> int:
    return -(-count // 64)
