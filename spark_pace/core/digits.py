"""The digits of floating-point numbers, and of their squares, where the same few places hold all of each.

A digit of place p counts 2 ** (32 * p), see `spark_pace.core.sums`. The first place is the lowest at which
the digits of all numbers together fit into 62 bits; most columns need one or two more. Work goes in blocks,
which stay in the processor's cache.

Sources: Dekker, A Floating-Point Technique for Extending the Available Precision, 1971 (exact products).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from spark_pace.core.columns import Ints

Floats: TypeAlias = npt.NDArray[np.float64]
Digits: TypeAlias = dict[int, Ints]

_BITS = 32
_SUM_BITS = 62  # that the digits of a place have, all added up
_MOST_DIGITS = 4
_FAR = 10  # places from 0: numbers and their digits are far from the ends of what a DOUBLE holds
_LEAST = 2.0**-600
_BLOCK = 1 << 13
_SPLITTER = float((1 << 27) + 1)


def digits_of(numbers: Floats) -> Digits | None:
    """The digits of numbers by their places; None where they are not finite, or need more places."""
    if not len(numbers):
        return {0: np.zeros(0, np.int64)}
    most = max(-float(numbers.min()), float(numbers.max()))
    return _digits(len(numbers), most, lambda block: numbers[block])


def greatest(numbers: Ints) -> int:
    """The greatest size of whole numbers; 0 where there are none."""
    return max(-int(numbers.min(initial=0)), int(numbers.max(initial=0)))


def digits_of_squares(numbers: Floats) -> list[Digits] | None:
    """The digits of two numbers each, which together are the square; None as in `digits_of`."""
    if digits_of(numbers) is None:
        return None
    most = max(-float(numbers.min(initial=0.0)), float(numbers.max(initial=0.0))) ** 2
    parts = [
        _digits(len(numbers), most, lambda block: np.square(numbers[block])),
        _digits(len(numbers), most * 2.0**-52, lambda block: _error_of_square(numbers[block])),
    ]
    found = [part for part in parts if part is not None]
    return found if len(found) == len(parts) else None


def _error_of_square(numbers: Floats) -> Floats:
    """What the rounded squares lack."""
    large = numbers * _SPLITTER
    high = large - (large - numbers)
    low = numbers - high
    lack: Floats = ((high * high - numbers * numbers) + 2.0 * high * low) + low * low
    return lack


def _digits(rows: int, most: float, block_of: Callable[[slice], Floats]) -> Digits | None:
    """The digits of numbers that come in blocks, none of which is greater than `most`."""
    if not most < np.inf:
        return None
    bits = int(np.frexp(most)[1]) + rows.bit_length() - _SUM_BITS
    top = -(-bits // _BITS)
    if most and not -_FAR < top < _FAR:
        return None
    found: Digits = {}
    for first in range(0, rows, _BLOCK):
        block = slice(first, min(first + _BLOCK, rows))
        rest = block_of(block)
        if top > 0 and ((rest != 0) & (np.abs(rest) < _LEAST)).any():
            return None  # it would be lost where it is divided
        rest = rest * 2.0 ** (-_BITS * top)
        for place in range(top, top - _MOST_DIGITS, -1):
            digits = np.rint(rest)
            if place not in found:
                found[place] = np.zeros(rows, np.int64)
            found[place][block] = digits
            rest -= digits
            if not rest.any():
                break
            rest *= 2.0**_BITS
        else:
            return None
    return found or {0: np.zeros(rows, np.int64)}
