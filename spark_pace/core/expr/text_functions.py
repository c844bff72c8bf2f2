"""Functions on texts and on ARRAYs, with Spark's null logic."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_pace.core.expr.comparison import equal
from spark_pace.core.tables import Ints


def _length(values: list[Any]) -> Any:
    """The number of code points."""
    return pc.cast(pc.utf8_length(values[0]), pa.int64())


def _lower(values: list[Any]) -> Any:
    return pc.ascii_lower(values[0])


def _upper(values: list[Any]) -> Any:
    return pc.ascii_upper(values[0])


def _trim(values: list[Any]) -> Any:
    return pc.utf8_trim(values[0], characters=" ")


def _substring(values: list[Any]) -> Any:
    """Part of a text.

    Arguments: the text; the first position, counted from 1; the number of characters, which may be missing.
    Both numbers are constants.
    """
    start = values[1].as_py() - 1
    stop = start + values[2].as_py() if values[2:] else None
    return pc.utf8_slice_codeunits(values[0], start, stop)


def _concat(values: list[Any]) -> Any:
    """The parts as one text; null if any part is null."""
    if len(values) == 1:
        return values[0]
    return pc.binary_join_element_wise(*values, "", null_handling="emit_null")


def _with_constant(kernel: Callable[..., Any]) -> Callable[[list[Any]], Any]:
    return lambda values: kernel(values[0], values[1].as_py())


KERNELS: dict[str, Callable[[list[Any]], Any]] = {
    "length": _length,
    "lower": _lower,
    "upper": _upper,
    "trim": _trim,
    "substring": _substring,
    "concat": _concat,
    "startswith": _with_constant(pc.starts_with),
    "endswith": _with_constant(pc.ends_with),
    "contains": _with_constant(pc.match_substring),
    "like": _with_constant(pc.match_like),
    "rlike": lambda values: pc.match_substring_regex(values[0], values[2].as_py()),  # RE2: linear in the text
}


def _bounds(arrays: pa.ListArray) -> tuple[Ints, Ints]:
    """int64[n] twice: where the elements of each array begin and end among `arrays.values`."""
    offsets = arrays.offsets.to_numpy().astype(np.int64)
    return offsets[:-1], offsets[1:]


def _size(values: list[Any]) -> Any:
    """The number of elements of each array, nulls included; null for a null array, as in ANSI mode."""
    return pc.cast(pc.list_value_length(values[0]), pa.int64())


def _array_contains(values: list[Any]) -> Any:
    """True for each array that holds a constant; null if it does not, but holds a null, and for a null array.

    Arguments: the arrays, the constant.
    """
    arrays, sought = values
    start, end = _bounds(arrays)
    hits = equal([arrays.values, sought])
    found, nulls = (_counted(part, start, end) for part in (pc.fill_null(hits, False), pc.is_null(hits)))
    unknown = (found == 0) & (nulls > 0) | pc.is_null(arrays).to_numpy(zero_copy_only=False)
    return pa.array(found > 0, mask=unknown)


def _counted(flags: pa.Array, start: Ints, end: Ints) -> Ints:
    """For each array, how many of its elements have a true flag."""
    total = np.append(0, np.cumsum(flags.to_numpy(zero_copy_only=False), dtype=np.int64))
    return total[end] - total[start]  # type: ignore[no-any-return]


def _element_at(values: list[Any]) -> Any:
    """The element at a place of each array; null where the array has no such place.

    Arguments: the arrays; the place, a constant, counted from 1 on, or from -1 backwards from the end.
    """
    arrays, place = values[0], values[1].as_py()
    start, end = _bounds(arrays)
    at = start + place - 1 if place > 0 else end + place
    beyond = (at < start) | (at >= end) | pc.is_null(arrays).to_numpy(zero_copy_only=False)
    return arrays.values.take(pa.array(np.where(beyond, 0, at), mask=beyond))


ARRAY_KERNELS: dict[str, Callable[[list[Any]], Any]] = {
    "size": _size,
    "array_contains": _array_contains,
    "element_at": _element_at,
}
