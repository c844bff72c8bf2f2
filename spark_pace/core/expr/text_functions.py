"""Functions on texts and on ARRAYs, with Spark's null logic."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_pace.core.expr.comparison import equal
from spark_pace.core.ranks import range_sums
from spark_pace.core.tables import Ints, bools


def _length(texts: Any) -> Any:
    """The number of code points."""
    return pc.cast(pc.utf8_length(texts), pa.int64())


def _substring(texts: Any, first: pa.Scalar, count: pa.Scalar | None = None) -> Any:
    """Part of each text, from the position `first` on, counted from 1; of `count` characters, if it says."""
    start = first.as_py() - 1
    return pc.utf8_slice_codeunits(texts, start, None if count is None else start + count.as_py())


def _concat(*texts: Any) -> Any:
    """The parts as one text; null if any part is null."""
    if len(texts) == 1:
        return texts[0]
    return pc.binary_join_element_wise(*texts, "", null_handling="emit_null")


def _with_constant(kernel: Callable[..., Any]) -> Callable[[Any, pa.Scalar], Any]:
    return lambda texts, constant: kernel(texts, constant.as_py())


KERNELS: dict[str, Callable[..., Any]] = {
    "length": _length,
    "lower": pc.ascii_lower,
    "upper": pc.ascii_upper,
    "trim": lambda texts: pc.utf8_trim(texts, characters=" "),
    "substring": _substring,
    "concat": _concat,
    "startswith": _with_constant(pc.starts_with),
    "endswith": _with_constant(pc.ends_with),
    "contains": _with_constant(pc.match_substring),
    "like": _with_constant(pc.match_like),
    "rlike": lambda texts, _, pattern: pc.match_substring_regex(texts, pattern.as_py()),  # RE2: linear
}


def _bounds(arrays: pa.ListArray) -> tuple[Ints, Ints]:
    """int64[n] twice: where the elements of each array begin and end among `arrays.values`."""
    offsets = arrays.offsets.to_numpy().astype(np.int64)
    return offsets[:-1], offsets[1:]


def _size(arrays: Any) -> Any:
    """The number of elements of each array, nulls included; null for a null array, as in ANSI mode."""
    return pc.cast(pc.list_value_length(arrays), pa.int64())


def _array_contains(arrays: Any, sought: pa.Scalar) -> Any:
    """True where an array holds a constant; null if it does not but holds a null, and for a null array."""
    bounds = _bounds(arrays)
    hits = equal(arrays.values, sought)
    found, nulls = (
        range_sums(bools(part), *bounds) for part in (pc.fill_null(hits, False), pc.is_null(hits))
    )
    unknown = (found == 0) & (nulls > 0) | bools(pc.is_null(arrays))
    return pa.array(found > 0, mask=unknown)


def _element_at(arrays: Any, constant: pa.Scalar) -> Any:
    """The element at a place of each array; null where the array has no such place.

    The place is counted from 1 on, or from -1 backwards from the end.
    """
    place, (start, end) = constant.as_py(), _bounds(arrays)
    at = start + place - 1 if place > 0 else end + place
    beyond = (at < start) | (at >= end) | bools(pc.is_null(arrays))
    return arrays.values.take(pa.array(np.where(beyond, 0, at), mask=beyond))


ARRAY_KERNELS: dict[str, Callable[..., Any]] = {
    "size": _size,
    "array_contains": _array_contains,
    "element_at": _element_at,
}
