"""The types of arithmetic on DECIMALs by Spark's rules: the digits of a result, and where its point is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from spark_pace.core.expr import Aggregate, Call, Expr, ExprType, Literal, decimal_digits
from spark_pace.core.expr.decimals import WIDEST
from spark_pace.core.summaries.sums import total_digits
from spark_pace.rules.expressions.types import BIGINT_DIGITS, MAX_DIGITS, Wrong, convert, digits_of_constant

LEAST_SCALE = 6  # digits behind the point that a long result keeps, if it has so many
FEWER = "Write cast(... as DECIMAL(p,s)) with fewer digits, or cast(... as DOUBLE)."


def has_decimal(values: Sequence[Expr]) -> bool:
    """Tell whether one of the values is a DECIMAL."""
    return any(decimal_digits(value.type) for value in values)


def computed_decimal(name: str, values: Sequence[Expr]) -> Expr | Wrong:
    """``+``, ``-``, ``*``, ``/`` or ``%`` of two values, of which one is a DECIMAL."""
    found = [_digits(value) for value in values]
    wrong = next((one for one in found if isinstance(one, Wrong)), None)
    if wrong is not None:
        got = " and ".join(dict.fromkeys(value.type for value in values))
        return Wrong(wrong.must, wrong.got or got, wrong.do)
    known = [one for one in found if isinstance(one, tuple)]
    left, right = (known[0] if one is None else one for one in found if not isinstance(one, Wrong))
    precision, scale = _RESULTS[name](left, right)
    if _most_digits(name, left, right, _bounded(precision, scale)) > WIDEST:
        got = f"{_text(left)} {name} {_text(right)}"
        return Wrong(f"must be computed with at most {WIDEST} digits", got, FEWER)
    sides = (convert(value, _text(digits)) for value, digits in zip(values, (left, right), strict=True))
    return Call(name, tuple(sides), _text(_bounded(precision, scale)))


def rounded(value: Expr, places: int) -> Expr:
    """``round(value, places)``: the result may have a digit more before the point."""
    precision, scale = decimal_digits(value.type) or (0, 0)
    kept = min(scale, places)
    arguments = (value, Literal(places, "BIGINT")) if places else (value,)
    return Call("round", arguments, _text((min(precision - scale + 1 + kept, MAX_DIGITS), kept)))


def averaged(found: Aggregate | Wrong) -> Expr | Wrong:
    """Compute the average of a DECIMAL from its sum and its count; leave other aggregates as they are.

    It has four digits more behind the point, as far as there is room.
    """
    digits = decimal_digits(found.type) if isinstance(found, Aggregate) and found.function == "avg" else None
    if digits is None or isinstance(found, Wrong):
        return found
    total = replace(found, function="sum", type=total_type(*digits))
    count = replace(found, function="count", type="BIGINT")
    kind = _text((min(digits[0] + 4, MAX_DIGITS), min(digits[1] + 4, MAX_DIGITS)))
    return Call("avg", (total, convert(count, _text(BIGINT_DIGITS))), kind)


def total_type(precision: int, scale: int) -> ExprType:
    """The type of the sum of DECIMALs."""
    return _text((total_digits(precision), scale))


def _digits(value: Expr) -> tuple[int, int] | Wrong | None:
    """How many digits a value has in all, and behind the point; None for a bare null."""
    if (digits := decimal_digits(value.type)) is not None:
        return digits
    if value.type == "NULL":
        return None
    if isinstance(value, Literal) and value.type in ("BIGINT", "DOUBLE"):
        return digits_of_constant(value)
    if value.type == "BIGINT":
        return BIGINT_DIGITS
    if value.type == "DOUBLE":
        do = "Write cast(... as DOUBLE) around the DECIMAL."
        return Wrong("must be values of one type", "", do)
    return Wrong("must be a number", value.type, "Use another attribute or cast(... as TYPE).")


def _sum(left: tuple[int, int], right: tuple[int, int]) -> tuple[int, int]:
    scale = max(left[1], right[1])
    return max(left[0] - left[1], right[0] - right[1]) + scale + 1, scale


def _product(left: tuple[int, int], right: tuple[int, int]) -> tuple[int, int]:
    return left[0] + right[0] + 1, left[1] + right[1]


def _quotient(left: tuple[int, int], right: tuple[int, int]) -> tuple[int, int]:
    scale = max(LEAST_SCALE, left[1] + right[0] + 1)
    return left[0] - left[1] + right[1] + scale, scale


def _rest(left: tuple[int, int], right: tuple[int, int]) -> tuple[int, int]:
    scale = max(left[1], right[1])
    return min(left[0] - left[1], right[0] - right[1]) + scale, scale


_RESULTS = {"+": _sum, "-": _sum, "*": _product, "/": _quotient, "%": _rest}


def _bounded(precision: int, scale: int) -> tuple[int, int]:
    """At most 38 digits: those behind the point are given up first, as long as six of them are left."""
    if precision <= MAX_DIGITS:
        return precision, scale
    return MAX_DIGITS, max(MAX_DIGITS - (precision - scale), min(scale, LEAST_SCALE))


def _most_digits(name: str, left: tuple[int, int], right: tuple[int, int], result: tuple[int, int]) -> int:
    """How many digits the numbers have that the core computes with, without their points."""
    if name == "/":
        return left[0] + result[1] + right[1] - left[1]
    if name == "*":
        return 0  # any product has room
    return max(left[0] - left[1], right[0] - right[1]) + max(left[1], right[1]) + 1


def _text(digits: tuple[int, int]) -> ExprType:
    return f"DECIMAL({digits[0]},{digits[1]})"
