"""Lengths of time in expressions: ``interval '5' minutes``, and what one time is behind another.

No column holds a length: it is compared with another one, or added to a TIMESTAMP. So it is a BIGINT of
microseconds here, under a type of its own that only the compiler knows.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from sqlglot import exp

from spark_pace.core.expr import Call, Expr, Literal
from spark_pace.rules.document.report import nearest, quote
from spark_pace.rules.expressions.types import Wrong, convert

_UNITS = {
    "MICROSECOND": 1, "MILLISECOND": 1_000, "SECOND": 1_000_000, "MINUTE": 60_000_000, "HOUR": 3_600_000_000,
    "DAY": 86_400_000_000, "WEEK": 604_800_000_000,
}  # fmt: skip
_SHORT = {
    "US": "MICROSECOND",
    "MS": "MILLISECOND",
    "S": "SECOND",
    "SEC": "SECOND",
    "M": "MINUTE",
    "MIN": "MINUTE",
    "H": "HOUR",
    "D": "DAY",
}  # as rule files write them elsewhere
MOST_US = 36_500 * _UNITS["DAY"]  # of a constant: a hundred years
_TERM = re.compile(r"\s*([+-]?\d+(?:\.\d{1,6})?)\s*([A-Za-z]+)")
_EXAMPLE = "Write for example interval '5' minutes."
_TIMES = ("TIMESTAMP", "DATE")


@dataclass(frozen=True)
class Interval:
    """A length of time: `micros` gives it in microseconds, as a BIGINT."""

    micros: Expr

    type = "an interval"


def constant_interval(tree: exp.Interval) -> Interval | Wrong:
    """``interval '5' minutes``, ``interval 5 minutes`` or ``interval '1 day 2 hours'``."""
    text = tree.this.name if isinstance(tree.this, exp.Literal) else ""
    sign = ""
    if isinstance(tree.this, exp.Neg) and isinstance(tree.this.this, exp.Literal):
        sign, text = "-", tree.this.this.name
    unit = tree.args.get("unit")
    if not text or isinstance(unit, exp.IntervalSpan):
        return Wrong("must be a number and a unit of time", quote(tree.sql("spark")), _EXAMPLE)
    told = f"{sign}{text} {unit.name}" if unit is not None else text
    total, at = Fraction(0), 0
    while at < len(told.rstrip()):
        term = _TERM.match(told, at)
        if term is None:
            return Wrong("must be a number and a unit of time", quote(told), _EXAMPLE)
        size = _size(term[2])
        if isinstance(size, Wrong):
            return size
        total, at = total + Fraction(term[1]) * size, term.end()
    if total.denominator != 1 or abs(total) > MOST_US:
        return Wrong("must be whole microseconds, at most 36,500 days", quote(told), "Write another length.")
    return Interval(Literal(int(total), "BIGINT"))


def unit_in_words(unit: str) -> str | None:
    """The unit of time that a word means, such as ``minutes`` by ``min``; None where it means none."""
    name = unit.upper()
    meant = _SHORT.get(name, name.removesuffix("S"))
    return f"{meant.lower()}s" if meant in _UNITS else None


def _size(unit: str) -> int | Wrong:
    name = unit.upper()
    size = _UNITS.get(name) or _UNITS.get(name.removesuffix("S"))
    if size is not None:
        return size
    if name.removesuffix("S") in ("MONTH", "YEAR", "QUARTER"):
        return Wrong("must have the same length always", unit, "Write days, as in interval '30' days.")
    return Wrong(
        "must be a unit of time", quote(unit), nearest(name.lower(), [one.lower() for one in _UNITS])
    )


def calculate(name: str, values: Sequence[Expr | Interval]) -> Expr | Interval | Wrong | None:
    """Times and lengths added or subtracted; None if there is neither among the two values."""
    left, right = values
    if name not in "+-" or not any(isinstance(value, Interval) or value.type in _TIMES for value in values):
        return _refused(name, values) if any(isinstance(value, Interval) for value in values) else None
    if isinstance(left, Interval) and isinstance(right, Interval):
        return Interval(Call(name, (left.micros, right.micros), "BIGINT"))
    if name == "-" and not isinstance(left, Interval) and not isinstance(right, Interval):
        if left.type in _TIMES and right.type in _TIMES:
            return Interval(Call("-", (_micros(left), _micros(right)), "BIGINT"))
        return None
    time, length = (right, left) if isinstance(left, Interval) and name == "+" else (left, right)
    if not isinstance(time, Interval) and isinstance(length, Interval) and time.type == "TIMESTAMP":
        return Call("timestamp_micros", (Call(name, (_micros(time), length.micros), "BIGINT"),), "TIMESTAMP")
    if not isinstance(time, Interval) and time.type == "DATE" and isinstance(length, Interval):
        return Wrong("must be a TIMESTAMP beside an interval", "DATE", "Write cast(... as TIMESTAMP).")
    return _refused(name, values) if any(isinstance(value, Interval) for value in values) else None


def _refused(name: str, values: Sequence[Expr | Interval]) -> Wrong:
    got = f" {name} ".join(value.type for value in values)
    do = "Add it to a TIMESTAMP or to an interval, or compare it with one."
    return Wrong("must compute with times and intervals only where it means something", got, do)


def compared(values: Sequence[Expr | Interval]) -> list[Expr] | Wrong:
    """What is compared in the place of lengths: their microseconds."""
    if all(isinstance(value, Interval) or value.type == "NULL" for value in values):
        return [value.micros if isinstance(value, Interval) else convert(value, "BIGINT") for value in values]
    got = " and ".join(dict.fromkeys(value.type for value in values))
    return Wrong("must compare an interval with another one", got, _EXAMPLE)


def no_value(_: Interval) -> Wrong:
    """Refuse a length where a value is wanted."""
    do = "Compare it with another interval, or write unix_micros(b.t) - unix_micros(a.t) to have a number."
    return Wrong("must be a value", "an interval", do)


def _micros(time: Expr) -> Expr:
    return Call("unix_micros", (convert(time, "TIMESTAMP"),), "BIGINT")
