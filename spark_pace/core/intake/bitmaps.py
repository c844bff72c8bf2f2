"""Sets of events as bitmaps: a bit for each of n events, 64 in a word, the lowest first.

Bits after the last event are 0. If there are many rules, each has few of a batch's events; uniting such sets
takes one step for 64 events.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from spark_pace.core.columns import Bools, Ints

Bitmap = npt.NDArray[np.uint64]  # uint64[(n + 63) // 64], little-endian on every machine

_WORD = np.dtype("<u8")
# to transpose a square of eight by eight bits: how far bits move, and which of them
_TURNS = tuple(
    (np.uint64(distance), np.uint64(kept))
    for distance, kept in ((7, 0x00AA00AA00AA00AA), (14, 0x0000CCCC0000CCCC), (28, 0x00000000F0F0F0F0))
)


def bitmap_of(holds: Bools) -> Bitmap:
    """The bitmap of the events for which `holds`, bool[n], is True."""
    bits = np.zeros(8 * _words(len(holds)), np.uint8)
    packed = np.packbits(holds, bitorder="little")
    bits[: len(packed)] = packed
    return bits.view(_WORD)


def bitmap_of_rows(rows: Ints, count: int) -> Bitmap:
    """The bitmap of `count` events that has those at `rows`, which are distinct."""
    holds = np.zeros(count, np.bool_)
    holds[rows] = True
    return bitmap_of(holds)


def every_event(count: int) -> Bitmap:
    """The bitmap that has all of `count` events."""
    return bitmap_of(np.ones(count, np.bool_))


def no_event(count: int) -> Bitmap:
    """The bitmap that has none of `count` events."""
    return np.zeros(_words(count), _WORD)


def as_bools(bitmap: Bitmap, count: int) -> Bools:
    """bool[count]: which events the bitmap has."""
    return np.unpackbits(bitmap.view(np.uint8), count=count, bitorder="little").view(np.bool_)


def side_by_side(bitmaps: Sequence[Bitmap], count: int) -> npt.NDArray[np.uint8]:
    """uint8[count]: the bits of each event in up to eight bitmaps, the first bitmap's lowest.

    A table with a column for each bitmap consists of words, squares of eight by eight bits. Each is
    transposed: its halves change places, then their halves, then theirs. Bitmaps without events need none
    of it.
    """
    if not any(bitmap.any() for bitmap in bitmaps):
        return np.zeros(count, np.uint8)
    table = np.zeros((8 * _words(count), 8), np.uint8)
    for column, bitmap in enumerate(bitmaps):
        table[:, column] = bitmap.view(np.uint8)
    square = table.view(_WORD).ravel()
    for distance, kept in _TURNS:
        moved = (square ^ (square >> distance)) & kept
        square ^= moved ^ (moved << distance)
    return square.view(np.uint8)[:count]


def _words(count: int) -> int:
    return -(-count // 64)
