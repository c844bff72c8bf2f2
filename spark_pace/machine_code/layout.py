"""Arguments as words: addresses and sizes of arrays, and numbers; and their layout: what they are."""

from __future__ import annotations

from operator import index
from typing import Any, TypeAlias

import numpy as np

# of an array the type of its numbers and its dimensions; of a tuple its type, fields, and their layouts
Layout: TypeAlias = tuple[Any, ...]


def read(value: Any, words: list[int]) -> Layout:
    """The layout of an argument; its words are appended to `words`."""
    if isinstance(value, np.ndarray):
        assert value.flags.c_contiguous, "an array must be in one piece"
        words += (value.__array_interface__["data"][0], *value.shape)
        return value.dtype.str, value.ndim
    if isinstance(value, tuple):
        return type(value).__name__, *getattr(value, "_fields", ()), *[read(one, words) for one in value]
    words.append(index(value))  # refuses what is no whole number
    return ()


def numbers_in(value: Any) -> int:
    """How many numbers an argument has in all."""
    if isinstance(value, tuple):
        return sum(map(numbers_in, value))
    return value.size if isinstance(value, np.ndarray) else 1
