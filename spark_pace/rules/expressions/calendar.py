"""The functions of times and dates, under the names that they have in Spark SQL.

A function with a unit takes it as a bare word or in quotes: ``timestampdiff(HOUR, a.t, b.t)``.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from spark_pace.core.expr import Call, Expr, Literal
from spark_pace.rules.document.report import nearest, quote
from spark_pace.rules.expressions.types import Wrong, constant_text, convert

TRUNCATED = ("year", "quarter", "month", "week", "day", "hour", "minute", "second", "millisecond")
COUNTED = (
    "year",
    "quarter",
    "month",
    "week",
    "day",
    "hour",
    "minute",
    "second",
    "millisecond",
    "microsecond",
)
# units of `trunc`, with their other names
_DATE_UNITS = {
    **dict.fromkeys(("year", "yyyy", "yy"), "year"), "quarter": "quarter", "week": "week",
    **dict.fromkeys(("month", "mon", "mm"), "month"),
}  # fmt: skip
# parts of `extract` and `date_part`, and the function that gives each
_PARTS = {
    **{part: part for part in ("year", "quarter", "month", "day", "dayofweek", "hour", "minute")},
    "week": "weekofyear", "weeks": "weekofyear", "dow": "dayofweek", "doy": "dayofyear",
}  # fmt: skip
_OF_TIMES = ("hour", "minute")
_WITH_UNIT = ("date_add", "dateadd", "timestampadd", "datediff", "date_diff", "timestampdiff")
_TIMES = ("TIMESTAMP", "DATE", "NULL")


def with_unit(name: str, trees: Sequence[exp.Expr]) -> Sequence[exp.Expr]:
    """Return the arguments of a function, with a unit that is a bare word as a text."""
    first = trees[0] if trees else None
    takes_unit = name in _WITH_UNIT and len(trees) == 3
    if takes_unit and isinstance(first, exp.Column) and not first.table and not first.this.quoted:
        return [exp.Literal.string(first.name), *trees[1:]]
    return trees


def date_trunc(arguments: Sequence[Expr]) -> Expr | Wrong:
    """``date_trunc('unit', time)``: the beginning of the unit that a time is in."""
    unit, time = arguments
    name = _unit(unit, TRUNCATED)
    return name if isinstance(name, Wrong) else _not_a_time(time) or _truncated(name, time)


def trunc(arguments: Sequence[Expr]) -> Expr | Wrong:
    """``trunc(date, 'unit')``: the first day of the unit that a date is in."""
    time, unit = arguments
    name = _unit(unit, _DATE_UNITS)
    if isinstance(name, Wrong):
        return name
    return _not_a_time(time) or convert(
        _truncated(Literal(_DATE_UNITS[str(name.value)], "STRING"), time), "DATE"
    )


def difference(arguments: Sequence[Expr]) -> Expr | Wrong:
    """``datediff(end, start)`` in days, or ``timestampdiff(UNIT, start, end)`` in whole units."""
    *unit, first, second = arguments
    if wrong := _not_a_time(first) or _not_a_time(second):
        return wrong
    if not unit:
        return Call("datediff", (convert(first, "DATE"), convert(second, "DATE")), "BIGINT")
    name = _unit(unit[0], COUNTED)
    if isinstance(name, Wrong):
        return name
    times = (convert(first, "TIMESTAMP"), convert(second, "TIMESTAMP"))
    return Call("timestampdiff", (name, *times), "BIGINT")


def added(arguments: Sequence[Expr]) -> Expr | Wrong:
    """``date_add(date, days)``, or ``timestampadd(UNIT, number, time)``."""
    if len(arguments) == 2:
        date, days = arguments
        return _not_a_time(date) or _not_whole(days) or _days_added(date, days)
    unit, number, time = arguments
    name = _unit(unit, COUNTED)
    if isinstance(name, Wrong):
        return name
    whole = (convert(number, "BIGINT"), convert(time, "TIMESTAMP"))
    return _not_whole(number) or _not_a_time(time) or Call("timestampadd", (name, *whole), "TIMESTAMP")


def subtracted(arguments: Sequence[Expr]) -> Expr | Wrong:
    """``date_sub(date, days)``."""
    date, days = arguments
    if wrong := _not_a_time(date) or _not_whole(days):
        return wrong
    if isinstance(days, Literal) and isinstance(days.value, int) and days.value > -(2**63):
        return _days_added(date, Literal(-days.value, "BIGINT"))
    return _days_added(date, Call("negate", (convert(days, "BIGINT"),), "BIGINT"))


def last_day(arguments: Sequence[Expr]) -> Expr | Wrong:
    """``last_day(date)``: the last day of the month."""
    return _not_a_time(arguments[0]) or Call("last_day", (convert(arguments[0], "DATE"),), "DATE")


def part(unit: str, time: Expr) -> Expr | Wrong:
    """``extract(UNIT from time)``, or ``date_part('unit', time)``."""
    name = unit.lower()
    if name in ("second", "seconds"):
        do = "Write second(t) for whole seconds, or unix_micros(t) % 60000000 for microseconds."
        return Wrong("must be a part that is a whole number", quote(unit), do)
    function = _PARTS.get(name) or _PARTS.get(name.removesuffix("s"))
    if function is None:
        return Wrong("must be a part of a time", quote(unit), nearest(name, _PARTS))
    if function in _OF_TIMES and time.type == "DATE":
        return Wrong("must be a TIMESTAMP", "DATE", "A DATE has no hours: name a TIMESTAMP.")
    kind = "DATE" if time.type == "DATE" else "TIMESTAMP"
    return _not_a_time(time) or Call(function, (convert(time, kind),), "BIGINT")


def date_part(arguments: Sequence[Expr]) -> Expr | Wrong:
    """``date_part('unit', time)``."""
    unit = constant_text(arguments[0])
    if unit is None:
        return Wrong(
            "must be a constant part in quotes", "another value", f"Use one of: {', '.join(_PARTS)}."
        )
    return part(unit, arguments[1])


def timestamp_micros(arguments: Sequence[Expr]) -> Expr | Wrong:
    """``timestamp_micros(number)``."""
    if arguments[0].type not in ("BIGINT", "NULL"):
        return Wrong("must be a BIGINT", arguments[0].type, "Microseconds are whole numbers.")
    return Call("timestamp_micros", (convert(arguments[0], "BIGINT"),), "TIMESTAMP")


def _truncated(unit: Literal, time: Expr) -> Expr:
    return Call("date_trunc", (unit, convert(time, "TIMESTAMP")), "TIMESTAMP")


def _days_added(date: Expr, days: Expr) -> Expr:
    return Call("date_add", (convert(date, "DATE"), convert(days, "BIGINT")), "DATE")


def _unit(unit: Expr, valid: Sequence[str] | dict[str, str]) -> Literal | Wrong:
    """Return the constant unit; those of `COUNTED` need no quotes."""
    name = (constant_text(unit) or "").lower()
    if name in valid:
        return Literal(name, "STRING")
    must = "must be a unit of time" if valid is COUNTED else "must be a constant unit of time in quotes"
    return Wrong(must, name or "another value", f"Use one of: {', '.join(valid)}.")


def _not_a_time(time: Expr) -> Wrong | None:
    if time.type in _TIMES:
        return None
    return Wrong("must be a TIMESTAMP or DATE", time.type, "Use another attribute or cast(... as TYPE).")


def _not_whole(number: Expr) -> Wrong | None:
    if number.type in ("BIGINT", "NULL"):
        return None
    return Wrong("must be a BIGINT", number.type, "Write a whole number, or cast(... as BIGINT).")
