"""Comparison as Spark does it.

NaN equals NaN and is greater than every number, -0.0 equals 0.0, and text is compared by its bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_pace.core.tables import boolean


def _any_nan(*values: Any) -> bool:
    return any(pa.types.is_floating(one.type) and pc.any(pc.is_nan(one)).as_py() is True for one in values)


def equal(left: Any, right: Any) -> Any:
    """``a = b``."""
    if (result := _equal_texts(left, right)) is not None:
        return result
    result = pc.equal(left, right)
    if _any_nan(left, right):
        result = pc.or_(result, pc.and_(pc.is_nan(left), pc.is_nan(right)))
    return result


def _equal_texts(texts: Any, constant: Any) -> pa.BooleanArray | None:
    """The texts that equal a constant, if all texts have its length, as codes often do; None otherwise.

    Then their bytes lie side by side, and up to eight at a time are compared. That takes a tenth of the time
    that Arrow takes.
    """
    if not isinstance(texts, pa.StringArray) or not isinstance(constant, pa.StringScalar):
        return None
    sought = (constant.as_py() or "").encode()
    count, length = len(texts), len(sought)
    if not count or not length or texts.null_count:
        return None
    _, offsets, held = texts.buffers()
    ends = np.frombuffer(offsets, np.int32, count + 1, 4 * texts.offset)
    if ends[-1] - ends[0] != count * length or (np.diff(ends) != length).any():
        return None
    equal = np.ones(count, np.bool_)
    at = 0
    while at < length:
        width = next(width for width in (8, 4, 2, 1) if at + width <= length)
        word = np.dtype(f"u{width}")
        words = np.ndarray(count, word, held, int(ends[0]) + at, length)
        equal &= words == np.frombuffer(sought, word, 1, at)[0]
        at += width
    return boolean(equal)


def _less(left: Any, right: Any) -> Any:
    result = pc.less(left, right)
    if _any_nan(right):
        result = pc.or_(result, pc.and_(pc.invert(pc.is_nan(left)), pc.is_nan(right)))
    return result


def _greater(left: Any, right: Any) -> Any:
    return _less(right, left)


def _not(comparison: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda left, right: pc.invert(comparison(left, right))


def _null_safe_equal(left: Any, right: Any) -> Any:
    both_null = pc.and_(pc.is_null(left), pc.is_null(right))
    return pc.if_else(both_null, True, pc.fill_null(equal(left, right), False))


def _in(sought: Any, *items: Any) -> Any:
    """True if a value equals one of several items."""
    if isinstance(sought, pa.Array) and len(items) > 2 and _hashable(items):  # fewer are compared faster
        result = pc.is_in(sought, value_set=pa.array([item.as_py() for item in items], type=sought.type))
        return pc.if_else(pc.is_valid(sought), result, pa.scalar(None, pa.bool_()))
    return reduce(pc.or_kleene, [equal(sought, item) for item in items])


def _hashable(items: Sequence[Any]) -> bool:
    """True if the items can be looked up by hash: constants without null, and no floats.

    Arrow hashes floats by their bits, so that it would not find NaN and -0.0 among the items.
    """
    return all(
        isinstance(item, pa.Scalar) and item.is_valid and not pa.types.is_floating(item.type)
        for item in items
    )


def _pick(wins: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """A kernel that gives the one of its arguments that wins. Null loses; of equal ones the first wins."""

    def better(best: Any, other: Any) -> Any:
        takes = pc.or_(pc.fill_null(wins(other, best), False), pc.is_null(best))
        return pc.if_else(takes, other, best)

    return lambda *values: reduce(better, values)


def _is_nan(value: Any) -> Any:
    return pc.fill_null(pc.is_nan(value), False)


KERNELS: dict[str, Callable[..., Any]] = {
    "=": equal,
    "<>": _not(equal),
    "<": _less,
    ">": _greater,
    "<=": _not(_greater),
    ">=": _not(_less),
    "<=>": _null_safe_equal,
    "in": _in,
    "greatest": _pick(_greater),
    "least": _pick(_less),
    "isnan": _is_nan,
}
