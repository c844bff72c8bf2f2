"""What the compiled reader of JSON is given and gives back."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

INTEGER, DOUBLE, BOOLEAN, TIME, DATE, TEXT = range(6)  # kinds of attributes
NULL, NUMBER, DIGITS = range(3)  # states of values: null; read; kept among the texts, as digits
READ, LEFT, BLANK = range(3)  # a record was read, is left to pyarrow's reader, is blank


class Wanted(NamedTuple):
    """The k attributes that are read from each record.

    Attributes:
        names: uint8[], one name behind the other.
        bounds: int64[k + 1], where each name begins, and where the last one ends.
        kinds: int64[k].
        places: int64[k], the row of each attribute in `Columns.texts`, if it is a DOUBLE or a STRING.
    """

    names: Bytes
    bounds: Ints
    kinds: Ints
    places: Ints


class Columns(NamedTuple):
    """Where the values of n records go.

    Attributes:
        numbers: int64[k, n]: integers, booleans, days or microseconds since 1970.
        floats: float64[k, n], the same memory.
        states: uint8[k, n].
        texts: uint8[t, b], the texts of a column one behind the other.
        ends: int64[t, n + 1]: the text of row i ends at entry i + 1, and begins where the one before ends.
        seen: int64[k], the last row in which the attribute was read.
        guess: int64[m], which attributes the first m members of the record before were; -1: none.
    """

    numbers: Ints
    floats: Floats
    states: Bytes
    texts: Bytes
    ends: Ints
    seen: Ints
    guess: Ints
