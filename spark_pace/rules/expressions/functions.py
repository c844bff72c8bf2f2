"""The functions and operators of the expression language: what they take and what they give.

Each is computed alike by Spark SQL and by the core; functions for which that cannot be had are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from spark_pace.core.expr import (
    Call,
    Column,
    Expr,
    ExprType,
    Literal,
    Previous,
    array_element,
    decimal_digits,
)
from spark_pace.core.plan.lower_rules import RULE
from spark_pace.rules.document import nearest, quote
from spark_pace.rules.expressions import calendar
from spark_pace.rules.expressions.calendar import Interval, compared
from spark_pace.rules.expressions.types import (
    COUNTED_IF,
    MAX_DIGITS,
    Wrong,
    computed_decimal,
    constant_text,
    convert,
    converted,
    has_decimal,
    require_type,
    rounded,
    show_types,
    unify,
)

ARRAY_FUNCTIONS = ("size", "array_contains", "element_at")
_PLACES = 2**31 - 1  # as Spark counts them
Built: TypeAlias = "Expr | Wrong"
Build = Callable[[list[Expr]], Built]
MAX_POSITION = 1_000_000
_MANY = 100
# functions that other SQL has: what to write here
ELSEWHERE = {
    "lag": "Write prev(x, n): x of the event n places before.",
    "match_rowtime": "Write LAST of the column by which rows are ordered.",
    **dict.fromkeys(("count_distinct", "countdistinct", "nunique"), "Write count(distinct x)."),
    "count_if": COUNTED_IF,
    **dict.fromkeys(("ifnull", "nvl"), "Write coalesce."),
    "regexp_like": "Write text rlike 'pattern'.",
    "to_timestamp": "Write cast(... as TIMESTAMP).",
    "to_date": "Write cast(... as DATE).",
    "add_months": "Write timestampadd(MONTH, number, time).",
    "months_between": "Write timestampdiff(MONTH, start, end), which counts whole months.",
    "date_format": "Write the parts as numbers, such as hour(t), or date_trunc('day', t).",
    "from_unixtime": "Write timestamp_micros(seconds * 1000000).",
    "unix_timestamp": "Write unix_seconds(t).",
    "week": "Write weekofyear.",
    "dayofmonth": "Write day.",
    **dict.fromkeys(("now", "current_timestamp"), "A rule knows no clock: name the event time."),
}


def size(arguments: Sequence[Expr]) -> Expr | Wrong:
    """``size(array)``."""
    return _no_array(arguments[0]) or Call("size", tuple(arguments), "BIGINT")


def array_contains(arguments: Sequence[Expr]) -> Expr | Wrong:
    """``array_contains(array, constant)``; the constant is of the elements' type."""
    array, sought = arguments
    if wrong := _no_array(array):
        return wrong
    element = array_element(array.type) or ""
    if not isinstance(sought, Literal) or sought.value is None:
        got = "null" if isinstance(sought, Literal) else f"a computed {sought.type}"
        return Wrong("must be a constant, but not null", got, "Write a number, a text or a time.")
    unified = unify([Literal(None, element), sought], element)
    if isinstance(unified, Wrong) or unified[1].type != element:
        return Wrong(
            f"must be a constant of the type {element}", sought.type, "Look for what can be in the ARRAY."
        )
    return Call("array_contains", (array, unified[1]), "BOOLEAN")


def element_at(arguments: Sequence[Expr]) -> Expr | Wrong:
    """``element_at(array, place)``; the place is a constant: 1 is the first element, -1 the last."""
    array, place = arguments
    if wrong := _no_array(array):
        return wrong
    number = place.value if isinstance(place, Literal) and place.type == "BIGINT" else 0
    if not isinstance(number, int) or not 1 <= abs(number) <= _PLACES:
        do = "Write 1 for the first element, -1 for the last."
        return Wrong("must be a constant place other than 0", "another value", do)
    return Call("element_at", (array, place), array_element(array.type) or "")


def _no_array(value: Expr) -> Wrong | None:
    if array_element(value.type) is not None:
        return None
    return Wrong("must be an ARRAY", value.type, "Name an attribute that is declared ARRAY<TYPE>.")


@dataclass(frozen=True)
class Function:
    """A function: how it is written, how many arguments it takes, and what makes the node."""

    usage: str
    least: int
    most: int
    build: Build


def _typed(name: str, kind: str, source: ExprType, result: ExprType) -> Build:
    """One argument of a kind, given to the kernel as it is (`source` for bare null)."""

    def build(arguments: list[Expr]) -> Built:
        wrong = require_type(arguments[0], kind)
        value = convert(arguments[0], source) if arguments[0].type == "NULL" else arguments[0]
        return wrong or Call(name, (value,), result)

    return build


def _rounding(name: str, result: ExprType) -> Build:
    """A rounding of a DOUBLE; a BIGINT is whole already."""
    return lambda of: of[0] if of[0].type == "BIGINT" else converted(name, of, ("DOUBLE",), result)


def _round(arguments: list[Expr]) -> Built:
    """``round(x)``, of a DECIMAL to a number of digits behind the point as well."""
    value, *places = arguments
    if not decimal_digits(value.type) and places:
        do = "Write for example round(x * 100) / 100."
        return Wrong("must be a DECIMAL to be rounded to digits", value.type, do)
    if not decimal_digits(value.type):
        return _rounding("round", "DOUBLE")(arguments)
    digits = places[0].value if places and isinstance(places[0], Literal) else None if places else 0
    if not isinstance(digits, int) or not 0 <= digits <= MAX_DIGITS:
        return Wrong(
            f"must be a constant from 0 to {MAX_DIGITS}", "another value", "Write for example round(x, 2)."
        )
    return rounded(value, digits)


def arithmetic(name: str, arguments: Sequence[Expr], fallback: ExprType = "BIGINT") -> Built:
    """An operation on numbers whose result has the arguments' common type."""
    if len(arguments) == 1 and decimal_digits(arguments[0].type):
        return Call(name, tuple(arguments), arguments[0].type)
    for argument in arguments:
        if wrong := require_type(argument, "a number"):
            return wrong
    return _unified(name, arguments, fallback)


def _unified(name: str, arguments: Sequence[Expr], fallback: ExprType = "BIGINT") -> Built:
    """A function whose arguments and result have one type."""
    unified = unify(arguments, fallback)
    return unified if isinstance(unified, Wrong) else Call(name, unified, unified[0].type)


def _extreme(name: str) -> Build:
    def build(arguments: list[Expr]) -> Built:
        if "BOOLEAN" in [argument.type for argument in arguments]:
            do = "Use case for conditions."
            return Wrong("must be numbers, text or times", show_types(arguments), do)
        return _unified(name, arguments)

    return build


def _nullif(arguments: list[Expr]) -> Built:
    unified = unify(arguments, "BIGINT")
    if isinstance(unified, Wrong):
        return unified
    kind = unified[0].type
    return Call("case", (Call("=", unified, "BOOLEAN"), Literal(None, kind), unified[0]), kind)


def case(conditions: Sequence[Expr], values: Sequence[Expr], otherwise: Expr) -> Built:
    """The value of the first condition that holds."""
    for condition in conditions:
        if wrong := require_type(condition, "a condition"):
            return wrong
    unified = unify([*values, otherwise], "BIGINT")
    if isinstance(unified, Wrong):
        return unified
    arguments: list[Expr] = []
    for condition, value in zip(conditions, unified[:-1], strict=True):
        arguments += [convert(condition, "BOOLEAN"), value]
    return Call("case", (*arguments, unified[-1]), unified[-1].type)


def concat(arguments: Sequence[Expr]) -> Built:
    """Texts joined; null if one is null."""
    return converted("concat", arguments, ("STRING",) * len(arguments), "STRING")


def with_constant_text(name: str, arguments: Sequence[Expr]) -> Built:
    """A test of a text against a constant one."""
    if wrong := require_type(arguments[0], "text"):
        return wrong
    sought = arguments[1]
    if constant_text(sought) is None:
        return Wrong(
            "must be a constant text", f"{sought.type} or a computed value", "Write the text in quotes."
        )
    return Call(name, (convert(arguments[0], "STRING"), sought), "BOOLEAN")


def _substring(arguments: list[Expr]) -> Built:
    if wrong := require_type(arguments[0], "text"):
        return wrong
    for number, least in zip(arguments[1:], (1, 0), strict=False):
        if not (
            isinstance(number, Literal)
            and number.type == "BIGINT"
            and least <= int(number.value or 0) <= MAX_POSITION
        ):
            must = f"must be a constant from {least} to {MAX_POSITION}"
            return Wrong(must, "another value", "Positions count from 1; write numbers.")
    return Call("substring", (convert(arguments[0], "STRING"), *arguments[1:]), "STRING")


def _fixed(usage: str, build: Build) -> Function:
    """A function of as many arguments as its usage shows."""
    count = usage.count(",") + 1
    return Function(usage, count, count, build)


def _tests(name: str) -> Function:
    return _fixed(f"{name}(text, 'constant')", lambda arguments: with_constant_text(name, arguments))


def _of(usage: str, result: ExprType, *targets: ExprType) -> Function:
    """A function whose arguments are converted to these types."""
    name = usage.partition("(")[0]
    return _fixed(usage, lambda arguments: converted(name, arguments, targets, result))


def _part(name: str, kind: str = "a TIMESTAMP") -> Function:
    return _fixed(f"{name}(time)", _typed(name, kind, "TIMESTAMP", "BIGINT"))


_PARTS_OF_DATES = (
    "year", "month", "day", "dayofweek", "quarter", "dayofyear", "weekday", "weekofyear",
)  # fmt: skip
_PARTS_OF_TIMES = ("hour", "minute", "second", "unix_micros", "unix_millis", "unix_seconds")
_FUNCTIONS = (
    _fixed("abs(number)", lambda of: arithmetic("abs", of)),
    _fixed("ceil(number)", _rounding("ceil", "BIGINT")),
    _fixed("floor(number)", _rounding("floor", "BIGINT")),
    Function("round(number), or round(decimal, digits)", 1, 2, _round),
    _of("sqrt(number)", "DOUBLE", "DOUBLE"),
    _of("isnan(number)", "BOOLEAN", "DOUBLE"),
    Function("greatest(a, b, ...)", 2, _MANY, _extreme("greatest")),
    Function("least(a, b, ...)", 2, _MANY, _extreme("least")),
    Function("coalesce(a, b, ...)", 1, _MANY, lambda of: _unified("coalesce", of)),
    _fixed("nullif(a, b)", _nullif),
    _fixed("if(condition, a, b)", lambda of: case(of[:1], of[1:2], of[2])),
    _fixed("size(array)", size),
    _fixed("array_contains(array, constant)", array_contains),
    _fixed("element_at(array, place)", element_at),
    _of("length(text)", "BIGINT", "STRING"),
    *(_of(f"{name}(text)", "STRING", "STRING") for name in ("lower", "upper", "trim")),
    Function("substring(text, from) or substring(text, from, length)", 2, 3, _substring),
    Function("concat(a, b, ...)", 1, _MANY, concat),
    *map(_tests, ("startswith", "endswith", "contains")),
    *(_part(name, "a TIMESTAMP or DATE") for name in _PARTS_OF_DATES),
    *map(_part, _PARTS_OF_TIMES),
    _fixed("date_trunc('unit', time)", calendar.date_trunc),
    _fixed("trunc(date, 'unit')", calendar.trunc),
    _of("last_day(date)", "DATE", "DATE"),
    _fixed("date_part('unit', time)", calendar.date_part),
    Function("datediff(end, start) or datediff(UNIT, start, end)", 2, 3, calendar.difference),
    Function("date_diff(end, start) or date_diff(UNIT, start, end)", 2, 3, calendar.difference),
    _fixed("timestampdiff(UNIT, start, end)", calendar.difference),
    Function("date_add(date, days) or date_add(UNIT, number, time)", 2, 3, calendar.added),
    Function("dateadd(date, days) or dateadd(UNIT, number, time)", 2, 3, calendar.added),
    _fixed("date_sub(date, days)", calendar.subtracted),
    _fixed("timestampadd(UNIT, number, time)", calendar.added),
    _of("timestamp_micros(number)", "TIMESTAMP", "BIGINT"),
)
FUNCTIONS = {one.usage.partition("(")[0]: one for one in _FUNCTIONS}


def connect(name: str, values: list[Expr]) -> Expr | Wrong:
    """Conditions joined by ``and`` or ``or``, as a balanced tree."""
    for value in values:
        if wrong := require_type(value, "a condition"):
            return wrong
    if len(values) == 1:
        return convert(values[0], "BOOLEAN")
    half = (len(values) + 1) // 2
    left, right = connect(name, values[:half]), connect(name, values[half:])
    if isinstance(left, Wrong) or isinstance(right, Wrong):
        return left
    return Call(name, (left, right), "BOOLEAN")


def comparison(name: str, values: Sequence[Expr | Interval]) -> Expr | Wrong:
    """Two values, or two lengths of time, compared."""
    plain = [value for value in values if not isinstance(value, Interval)]
    of_one_kind = plain if len(plain) == len(values) else compared(values)
    unified = of_one_kind if isinstance(of_one_kind, Wrong) else unify(of_one_kind, "BIGINT")
    if isinstance(unified, Wrong):
        return unified
    if unified[0].type == "BOOLEAN" and name not in ("=", "<>", "<=>"):
        return Wrong("must compare numbers, text or times", "BOOLEAN", "Use =, and, or, not for conditions.")
    return Call(name, unified, "BOOLEAN")


def no_rule(values: Sequence[Expr | Interval], rules: Sequence[str]) -> Wrong | None:
    """What is wrong if the first value is compared with others, and no match can have such a name of a rule.

    Args:
        values: the values.
        rules: the names in ``from``; none where the events are no matches.
    """
    sides = values[: 2 if len(values) == 2 else 1]
    of_rule = any(isinstance(one, Column | Previous) and one.attribute == RULE for one in sides)
    for one in values if of_rule and rules else ():
        if isinstance(one, Literal) and isinstance(one.value, str) and one.value not in rules:
            must = f'must compare "{RULE}" with a name in "from"'
            return Wrong(must, quote(one.value), nearest(one.value, rules))
    return None


def computed(name: str, values: Sequence[Expr]) -> Expr | Wrong:
    """Arithmetic; ``/`` of numbers that are no DECIMALs always works on DOUBLEs."""
    if has_decimal(values):
        return computed_decimal(name, values)
    built = arithmetic(name, values, "DOUBLE" if name == "/" else "BIGINT")
    if name == "/" and isinstance(built, Call):
        return Call("/", tuple(convert(value, "DOUBLE") for value in built.arguments), "DOUBLE")
    return built
