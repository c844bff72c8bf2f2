"""Constants and conversions of the expression language."""

from __future__ import annotations

import math
import re
from datetime import date, datetime
from decimal import Decimal

from spark_pace.core.expr import Call, Expr, ExprType, Literal, decimal_digits
from spark_pace.core.expr.moments import us_of
from spark_pace.core.expr.time_functions import FIRST_US, LAST_US, RANGES
from spark_pace.rules.document.report import quote
from spark_pace.rules.expressions.types import MAX_DIGITS, Wrong, constant_digits

_DATE = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})")
_MOMENT = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"(?:[ T]([0-9]{2}:[0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,6}))?)?(Z|[+-][0-9]{2}:[0-9]{2})?)?"
)
_WHOLE = re.compile(r"-?[0-9]+")
_NUMBER = re.compile(r"-?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?")
_MOST_CHARACTERS = 100  # of a DECIMAL constant
_NAMES: dict[str, ExprType] = {
    "BOOLEAN": "BOOLEAN",
    "BIGINT": "BIGINT",
    "LONG": "BIGINT",
    "DOUBLE": "DOUBLE",
    "STRING": "STRING",
    "TIMESTAMP": "TIMESTAMP",
    "DATE": "DATE",
}
_CASTS: dict[ExprType, tuple[ExprType, ...]] = {
    "BOOLEAN": ("BIGINT", "STRING"),
    "BIGINT": ("DOUBLE", "STRING"),
    "DOUBLE": ("BIGINT",),
    "STRING": (),
    "TIMESTAMP": ("DATE",),
    "DATE": ("TIMESTAMP",),
}
_OF_DECIMAL = ("DOUBLE", "BIGINT", "STRING")


def number_literal(text: str) -> Literal | Wrong:
    """``60`` is a BIGINT, ``60.0`` and ``6e1`` are DOUBLEs."""
    if not _NUMBER.fullmatch(text):
        return Wrong("must be a number", quote(text), "Write for example 60, 60.5 or 6e1.")
    if _WHOLE.fullmatch(text):
        value = int(text[:30])
        if len(text) > 30 or not -(2**63) <= value < 2**63:
            return Wrong(
                "must be a BIGINT",
                quote(text),
                "Write a number from -2^63 to 2^63 - 1, or a DOUBLE such as 1e20.",
            )
        return Literal(value, "BIGINT")
    number = float(text)
    if math.isinf(number):
        return Wrong("must be a DOUBLE", quote(text), "Write a number up to 1.7e308.")
    return Literal(number, "DOUBLE")


def dated_literal(text: str, kind: str) -> Literal | Wrong:
    """``date '2013-01-31'`` and ``timestamp '2013-01-31 12:00:00'``; a time without zone is UTC."""
    example = "2013-01-31" if kind == "DATE" else "2013-01-31 12:00:00"
    wrong = Wrong(f"must be a {kind} such as '{example}'", quote(text), "Correct the constant.")
    match = (_DATE if kind == "DATE" else _MOMENT).fullmatch(text)
    if match is None:
        return wrong
    try:
        if kind == "DATE":
            return Literal((date.fromisoformat(text) - date(1970, 1, 1)).days, "DATE")
        moment = datetime.fromisoformat(
            f"{match[1]}T{match[2] or '00:00'}:{match[3] or '00'}.{(match[4] or ''):0<6}{_zone(match[5])}"
        )
    except ValueError:
        return wrong
    time_us = us_of(moment)
    if not FIRST_US <= time_us <= LAST_US:  # in UTC
        return Wrong(f"must be {RANGES['TIMESTAMP']}", quote(text), "Correct the constant.")
    return Literal(time_us, "TIMESTAMP")


def text_constant(text: str, kind: str) -> Literal | Wrong | None:
    """The constant of the type `kind` that a text writes; None if no constant of that type is a text."""
    if kind in ("DATE", "TIMESTAMP"):
        return dated_literal(text, kind)
    return decimal_literal(text, kind) if decimal_digits(kind) else None


def cast_to(value: Expr, kind: str) -> Expr | Wrong:
    """The value converted to the type `kind`; what is wrong if Spark and the core do not convert it alike."""
    digits = decimal_digits(kind)
    target = kind if digits else _NAMES.get(kind)
    if target is None or (digits and not is_decimal(*digits)):
        return no_type(quote(kind))
    if value.type == "NULL":
        return Literal(None, target)
    if value.type == target:
        return value
    if isinstance(value, Literal) and target == "DOUBLE" and value.type == "BIGINT":
        return Literal(float(value.value or 0), "DOUBLE")
    if digits and isinstance(value, Literal) and value.type in ("BIGINT", "DOUBLE"):
        return decimal_literal(str(value.value), target)
    if target not in _CASTS.get(value.type, _OF_DECIMAL) and not (digits and _is_exact(value.type)):
        possible = _possible(value.type)
        return Wrong(
            "must be a conversion that means the same everywhere",
            f"{value.type} to {target}",
            f"{value.type} converts to {possible}.",
        )
    return Call("cast", (value,), target)


def decimal_literal(text: str, kind: ExprType) -> Literal | Wrong:
    """``cast('99.95' as DECIMAL(10,2))`` and ``99.95BD``; the type must have room for all digits."""
    digits = decimal_digits(kind)
    if digits is None or not is_decimal(*digits):
        return no_type(quote(kind))
    if (
        not _NUMBER.fullmatch(text)
        or len(text) > _MOST_CHARACTERS
        or not _fits(constant_digits(text), digits)
    ):
        return Wrong(f"must be a number that fits {kind}", quote(text), "Write all of its digits.")
    return Literal(f"{Decimal(text):f}", kind)


def is_decimal(precision: int, scale: int) -> bool:
    """Tell whether there is a DECIMAL of `precision` digits with `scale` of them behind the point."""
    return 1 <= precision <= MAX_DIGITS and scale <= precision


def _fits(inner: tuple[int, int], outer: tuple[int, int]) -> bool:
    return inner[1] <= outer[1] and inner[0] - inner[1] <= outer[0] - outer[1]


def _is_exact(kind: ExprType) -> bool:
    """Tell whether the values of a type have digits that a DECIMAL can be rounded to."""
    return kind == "BIGINT" or decimal_digits(kind) is not None


def _possible(kind: ExprType) -> str:
    """To which types a type converts, in words."""
    if decimal_digits(kind):
        return " or ".join((*_OF_DECIMAL, "another DECIMAL"))
    if kind == "TIMESTAMP":
        return "DATE; unix_seconds(...) and unix_micros(...) make it a number"
    decimal = ("a DECIMAL",) if kind == "BIGINT" else ()
    return " or ".join((*_CASTS[kind], *decimal)) or "nothing else"


def no_type(got: str) -> Wrong:
    """What is wrong where `got` stands in place of a type."""
    return Wrong("must be a type of events", got, f"Use one of: {', '.join(_CASTS)}, DECIMAL(p,s).")


def _zone(text: str | None) -> str:
    return "+00:00" if text in (None, "Z") else str(text)
