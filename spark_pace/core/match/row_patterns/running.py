"""Aggregates that go with a search: what the values so far come to, step by step, and back again."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Context, Decimal
from typing import Any

from spark_pace.core.expr import decimal_digits
from spark_pace.core.match.row_patterns.scalars import less
from spark_pace.core.plan.row_pattern import Summary

_LEAST, _ABOVE = -(2**63), 2**63
_SCALE = 1074  # every DOUBLE is a whole number of 2 ** -1074
_WIDE = Context(prec=80)

# a state is a count of values and what they come to; None before the first value
State = tuple[int, Any] | None
Step = Callable[[Any, Any], Any]  # what the values before come to, and the next value


def step_of(one: Summary) -> Step:
    """How the next value changes what the values come to."""
    if one.function == "count":
        return lambda before, value: None
    if one.function in ("min", "max"):
        return _least if one.function == "min" else _greatest
    assert one.of is not None
    if decimal_digits(one.of.type):
        return lambda before, value: _WIDE.add(before or Decimal(0), value)
    return _add_whole if one.of.type == "BIGINT" else _add


def result_of(one: Summary, state: State) -> Any:
    """The value of an aggregate."""
    if state is None:
        return 0 if one.function == "count" else None
    count, total = state
    if one.function == "count":
        return count
    if one.function in ("min", "max"):
        return total + 0.0 if isinstance(total, float) else total
    assert one.of is not None
    if one.of.type != "DOUBLE":
        if one.function == "avg":
            return float(total) / count
        if (digits := decimal_digits(one.type)) is not None:
            return total if total.adjusted() < digits[0] - digits[1] else None
        return total if _LEAST <= total < _ABOVE else None
    whole = _rounded(total)
    return whole / count if one.function == "avg" else whole


def _least(before: Any, value: Any) -> Any:
    return value if before is None or less(value, before) else before


def _greatest(before: Any, value: Any) -> Any:
    return value if before is None or less(before, value) else before


def _add_whole(before: Any, value: int) -> int:
    return value + (before or 0)


def _add(before: Any, value: float) -> tuple[int, frozenset[float]]:
    """The exact sum of the finite numbers, in 2 ** -1074, and which infinities and NaNs there are."""
    total, odd = before or (0, frozenset())
    if value - value != 0:  # NaN or infinite
        return total, odd | {value if value == value else 0.0}
    numerator, denominator = value.as_integer_ratio()
    return total + (numerator << (_SCALE + 1 - denominator.bit_length())), odd


def _rounded(total: tuple[int, frozenset[float]]) -> float:
    whole, odd = total
    if odd:
        return float("nan") if len(odd) > 1 or 0.0 in odd else next(iter(odd))
    try:
        return whole / (1 << _SCALE)
    except OverflowError:
        return float("inf") if whole > 0 else float("-inf")
