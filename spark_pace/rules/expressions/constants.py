"""Constants and conversions of the expression language."""

from __future__ import annotations

import math
import re
from datetime import date, datetime, timedelta, timezone

from spark_pace.core.expr import Call, Expr, ExprType, Literal
from spark_pace.rules.document.report import quote
from spark_pace.rules.expressions.types import Wrong

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_DATE = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})")
_MOMENT = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"(?:[ T]([0-9]{2}:[0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,6}))?)?(Z|[+-][0-9]{2}:[0-9]{2})?)?"
)
_WHOLE = re.compile(r"-?[0-9]+")
_NUMBER = re.compile(r"-?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?")
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
    return Literal((moment - _EPOCH) // timedelta(microseconds=1), "TIMESTAMP")


def cast_to(value: Expr, kind: str) -> Expr | Wrong:
    """A conversion that Spark and the core make alike."""
    target = _NAMES.get(kind)
    if target is None:
        return no_type(quote(kind))
    if value.type == "NULL":
        return Literal(None, target)
    if value.type == target:
        return value
    if isinstance(value, Literal) and target == "DOUBLE" and value.type == "BIGINT":
        return Literal(float(value.value or 0), "DOUBLE")
    if target not in _CASTS[value.type]:
        possible = " or ".join(_CASTS[value.type]) or "nothing else"
        return Wrong(
            "must be a conversion that means the same everywhere",
            f"{value.type} to {target}",
            f"{value.type} converts to {possible}.",
        )
    return Call("cast", (value,), target)


def no_type(got: str) -> Wrong:
    """Something else where a type must stand."""
    return Wrong("must be a type of events", got, f"Use one of: {', '.join(_CASTS)}.")


def _zone(text: str | None) -> str:
    return "+00:00" if text in (None, "Z") else str(text)
