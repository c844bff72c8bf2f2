"""What the compiled reader of JSON is given and gives back."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

INTEGER, DOUBLE, BOOLEAN, TIME, DATE, TEXT = range(6)  # kinds of attributes
NULL, NUMBER, DIGITS = range(3)  # states of values: null, read, among the texts as digits
READ, LEFT, BLANK = range(3)  # what became of a record


class Wanted(NamedTuple):
    """The k attributes.

    Attributes:
        names: uint8[], one name behind the other.
        bounds: int64[k + 1], where each begins, and where the last one ends.
        kinds: int64[k].
        places: int64[k], the row of an attribute in `Columns.texts`.
    """

    names: Bytes
    bounds: Ints
    kinds: Ints
    places: Ints
    attributes: int


class Columns(NamedTuple):
    """Where the values of n records go.

    Attributes:
        numbers: int64[k, n]: integers, booleans, days or microseconds since 1970.
        floats: float64[k, n], the same memory.
        states: uint8[k, n].
        texts: uint8[t, bytes], the texts of a column one behind the other.
        ends: int64[t, n + 1], where each ends; the first is 0.
        seen: int64[k], the last row that had the attribute.
        guess: int64[m], the attributes of the record before by their order.
    """

    numbers: Ints
    floats: Floats
    states: Bytes
    texts: Bytes
    ends: Ints
    seen: Ints
    guess: Ints
    rows: int
    texts_columns: int
    text_bytes: int
    members: int
