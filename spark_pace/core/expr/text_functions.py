"""Functions on text.

`lower` and `upper` change the letters A-Z only: for other letters, the tables of Java and Arrow differ.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc


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
