"""The functions of times and dates, under the names that they have in Spark SQL, and lengths of time.

A function with a unit takes it as a bare word or in quotes: ``timestampdiff(HOUR, a.t, b.t)``. A length is
``interval '5' minutes``, or what one time is behind another. No column holds one: it is compared with another
one, or added to a TIMESTAMP. So it is a BIGINT of microseconds here, under a type of the compiler's own.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from sqlglot import exp

from spark_pace.core.expr import Call, Expr, ExprType, Literal
from spark_pace.rules.document import nearest, quote
from spark_pace.rules.expressions.types import Wrong, constant_text, convert, converted

TRUNCATED = {
    unit: unit
    for unit in ("year", "quarter", "month", "week", "day", "hour", "minute", "second", "millisecond")
}
COUNTED = {**TRUNCATED, "microsecond": "microsecond"}
# units of `trunc`, with their other names
_DATE_UNITS = {
    **dict.fromkeys(("year", "yyyy", "yy"), "year"), "quarter": "quarter", "week": "week",
    **dict.fromkeys(("month", "mon", "mm"), "month"),
}  # fmt: skip
_OF_TIMES = ("hour", "minute")
_WITH_UNIT = ("date_add", "dateadd", "timestampadd", "datediff", "date_diff", "timestampdiff")
_UNITS = {
    "MICROSECOND": 1, "MILLISECOND": 1_000, "SECOND": 1_000_000, "MINUTE": 60_000_000, "HOUR": 3_600_000_000,
    "DAY": 86_400_000_000, "WEEK": 604_800_000_000,
}  # fmt: skip
_CLOCK = {
    "DAY": 1 << 30,
    "HOUR": 24,
    "MINUTE": 60,
    "SECOND": 60,
}  # each with the number that it does not reach
_CLOCK_TEXT = re.compile(r"[+-]?(\d{1,7} )?\d{1,9}(:\d{1,2})*(\.\d{1,6})?")
MOST_US = 36_500 * _UNITS["DAY"]  # of a constant: a hundred years
_TERM = re.compile(r"\s*([+-]?\d+(?:\.\d{1,6})?)\s*([A-Za-z]+)")
_EXAMPLE = "Write for example interval '5' minutes."
_DATED = ("TIMESTAMP", "DATE")


# parts of `extract` and `date_part`, and the function that gives each
_PARTS = {
    **{part: part for part in ("year", "quarter", "month", "day", "dayofweek", "hour", "minute")},
    "week": "weekofyear", "weeks": "weekofyear", "dow": "dayofweek", "doy": "dayofyear",
}  # fmt: skip


def with_unit(name: str, trees: Sequence[exp.Expr]) -> Sequence[exp.Expr]:
    """Return the arguments of a function, with a unit that is a bare word as a text."""
    first = trees[0] if trees else None
    takes_unit = name in _WITH_UNIT and len(trees) == 3
    if takes_unit and isinstance(first, exp.Column) and not first.table and not first.this.quoted:
        return [exp.Literal.string(first.name), *trees[1:]]
    return trees


def date_trunc(arguments: Sequence[Expr]) -> Expr | Wrong:
    """``date_trunc('unit', time)``: the beginning of the unit that a time is in."""
    return _in_units("date_trunc", arguments, TRUNCATED, ("TIMESTAMP",))


def trunc(arguments: Sequence[Expr]) -> Expr | Wrong:
    """``trunc(date, 'unit')``: the first day of the unit that a date is in."""
    found = _in_units("date_trunc", arguments[::-1], _DATE_UNITS, ("TIMESTAMP",))
    return found if isinstance(found, Wrong) else convert(found, "DATE")


def difference(arguments: Sequence[Expr]) -> Expr | Wrong:
    """``datediff(end, start)`` in days, or ``timestampdiff(UNIT, start, end)`` in whole units."""
    if len(arguments) == 2:
        return converted("datediff", arguments, ("DATE", "DATE"), "BIGINT")
    return _in_units("timestampdiff", arguments, COUNTED, ("TIMESTAMP", "TIMESTAMP"), "BIGINT")


def added(arguments: Sequence[Expr]) -> Expr | Wrong:
    """``date_add(date, days)``, or ``timestampadd(UNIT, number, time)``."""
    if len(arguments) == 2:
        return converted("date_add", arguments, ("DATE", "BIGINT"), "DATE")
    return _in_units("timestampadd", arguments, COUNTED, ("BIGINT", "TIMESTAMP"))


def subtracted(arguments: Sequence[Expr]) -> Expr | Wrong:
    """``date_sub(date, days)``."""
    date, days = arguments
    if isinstance(days, Literal) and isinstance(days.value, int) and days.value > -(2**63):
        return added([date, replace(days, value=-days.value)])
    negated = converted("negate", [days], ("BIGINT",), "BIGINT")
    return negated if isinstance(negated, Wrong) else added([date, negated])


def part(unit: str, time: Expr) -> Expr | Wrong:
    """``extract(UNIT from time)``, or ``date_part('unit', time)``."""
    name = unit.lower()
    function = _PARTS.get(name) or _PARTS.get(name.removesuffix("s"))
    if function is None:
        return Wrong("must be a part of a time", quote(unit), nearest(name, _PARTS))
    if function in _OF_TIMES and time.type == "DATE":
        return Wrong("must be a TIMESTAMP", "DATE", "A DATE has no hours: name a TIMESTAMP.")
    kind = "DATE" if time.type == "DATE" else "TIMESTAMP"
    return converted(function, [time], (kind,), "BIGINT")


def date_part(arguments: Sequence[Expr]) -> Expr | Wrong:
    """``date_part('unit', time)``."""
    unit = constant_text(arguments[0])
    if unit is None:
        return Wrong(
            "must be a constant part in quotes", "another value", f"Use one of: {', '.join(_PARTS)}."
        )
    return part(unit, arguments[1])


def _in_units(
    name: str,
    arguments: Sequence[Expr],
    valid: dict[str, str],
    targets: Sequence[ExprType],
    result: ExprType = "TIMESTAMP",
) -> Expr | Wrong:
    """A function of a constant unit, which needs no quotes if it is one of `COUNTED`, and of other values."""
    unit = (constant_text(arguments[0]) or "").lower()
    if unit not in valid:
        must = "must be a unit of time" if valid is COUNTED else "must be a constant unit of time in quotes"
        return Wrong(must, unit or "another value", f"Use one of: {', '.join(valid)}.")
    values = [Literal(valid[unit], "STRING"), *arguments[1:]]
    return converted(name, values, ("STRING", *targets), result)


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
    if text and isinstance(unit, exp.IntervalSpan):
        return _clock(sign + text, unit)
    if not text:
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


def _clock(text: str, span: exp.IntervalSpan) -> Interval | Wrong:
    """``interval '1 02:30:00.5' day to second`` and its like: from a larger unit to a smaller one."""
    first, last = (unit.name.upper().removesuffix("S") for unit in (span.this, span.expression))
    names = list(_CLOCK)
    units = names[names.index(first) : names.index(last) + 1] if {first, last} <= {*names} else []
    parts = text.lstrip("+-").replace(" ", ":").split(":")
    known = _CLOCK_TEXT.fullmatch(text) is not None and len(parts) == len(units) > 1
    known = known and (" " in text) == (first == "DAY") and ("." not in text or last == "SECOND")
    if not known or any(float(part) >= _CLOCK[unit] for part, unit in zip(parts[1:], units[1:], strict=True)):
        got = quote(f"{text} {first.lower()} to {last.lower()}")
        do = "Write for example interval '1 02:30:00' day to second, or interval '90' minutes."
        return Wrong("must be a length from a larger unit to a smaller one", got, do)
    total = sum(Fraction(part) * _UNITS[unit] for part, unit in zip(parts, units, strict=True))
    return Interval(Literal(int(-total if text[0] == "-" else total), "BIGINT"))


def _size(unit: str) -> int | Wrong:
    name = unit.upper()
    size = _UNITS.get(name) or _UNITS.get(name.removesuffix("S"))
    units = ", ".join(one.lower() for one in _UNITS)
    return size or Wrong("must be a unit of time of one length", quote(unit), f"Use one of: {units}.")


def calculate(name: str, values: Sequence[Expr | Interval]) -> Expr | Interval | Wrong | None:
    """Compute with times and lengths; return None if none of the two values is one."""
    lengths = [value for value in values if isinstance(value, Interval)]
    others = [value for value in values if not isinstance(value, Interval)]
    kinds = ["L" if isinstance(one, Interval) else "T" if one.type in _DATED else "N" for one in values]
    form = name.join(kinds)
    if form in ("L+L", "L-L"):
        return Interval(Call(name, tuple(one.micros for one in lengths), "BIGINT"))
    if form == "T-T":
        return Interval(Call("-", tuple(map(_micros, others)), "BIGINT"))
    if form in ("L*N", "N*L"):
        return _multiplied(lengths[0], others[0])
    if form not in ("T+L", "T-L", "L+T"):
        return _refused(name, values) if lengths else None
    if others[0].type == "DATE":
        return Wrong("must be a TIMESTAMP beside an interval", "DATE", "Write cast(... as TIMESTAMP).")
    moved = Call(name, (_micros(others[0]), lengths[0].micros), "BIGINT")
    return Call("timestamp_micros", (moved,), "TIMESTAMP")


def _multiplied(length: Interval, number: Expr) -> Interval | Wrong:
    """A length times a number; times a DOUBLE it is rounded to whole microseconds, half away from zero."""
    if number.type in ("BIGINT", "NULL"):
        return Interval(Call("*", (length.micros, convert(number, "BIGINT")), "BIGINT"))
    if number.type != "DOUBLE":
        return _refused("*", (length, number))
    product = Call("*", (convert(length.micros, "DOUBLE"), number), "DOUBLE")
    return Interval(Call("cast", (Call("round", (product,), "DOUBLE"),), "BIGINT"))


def signed(name: str, length: Interval) -> Interval:
    """``abs(length)``, or ``-length`` by the name ``negate``."""
    return Interval(Call(name, (length.micros,), "BIGINT"))


def _refused(name: str, values: Sequence[Expr | Interval]) -> Wrong:
    got = f" {name} ".join(value.type for value in values)
    do = "Add it to a TIMESTAMP or to an interval, multiply it by a number, or compare it with an interval."
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
