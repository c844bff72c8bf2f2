"""The types of expressions: which go together, conversions, constants, DECIMALs, attributes, aggregates."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Decimal
from typing import get_args

from spark_pace.core.expr import Aggregate, Call, Expr, ExprType, Literal, decimal_digits, is_single
from spark_pace.core.expr.decimals import WIDEST
from spark_pace.core.expr.nodes import AggregateName
from spark_pace.core.expr.time_functions import FIRST_US, LAST_US, RANGES, us_of
from spark_pace.core.plan.rule import EventSchema
from spark_pace.core.summaries.sums import total_digits
from spark_pace.rules.document import nearest, quote

MAX_NODES = 10_000
MAX_JOINED = 100  # texts that `concat` and `||` put together, so that no result is far longer than attributes
MAX_BRANCHES = 100  # of `case`: each holds a column while it is computed
MAX_DIGITS = 38  # of a DECIMAL
EXACT_DIGITS = 15  # the DOUBLE nearest to a number with so many digits, or fewer, tells these digits again
BIGINT_DIGITS = (20, 0)  # of the DECIMAL that Spark makes of a BIGINT: all, and behind the point
_LIKE_WITH_LIKE = "Compare or mix like with like, or use cast."
_WIDER: dict[frozenset[ExprType], ExprType] = {
    frozenset({"BIGINT", "DOUBLE"}): "DOUBLE",
    frozenset({"DATE", "TIMESTAMP"}): "TIMESTAMP",
}
LEAST_SCALE = 6  # digits behind the point that a long result keeps, if it has so many
FEWER = "Write cast(... as DECIMAL(p,s)) with fewer digits, or cast(... as DOUBLE)."
_DATE = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})")
_MOMENT = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"(?:[ T]([0-9]{2}:[0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,6}))?)?(Z|[+-][0-9]{2}:[0-9]{2})?)?"
)
_WHOLE = re.compile(r"-?[0-9]+")
_NUMBER = re.compile(r"-?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?")
_MOST_CHARACTERS = 100  # of a DECIMAL constant
_CASTS: dict[ExprType, tuple[ExprType, ...]] = {
    "BOOLEAN": ("BIGINT", "STRING"),
    "BIGINT": ("DOUBLE", "STRING"),
    "DOUBLE": ("BIGINT",),
    "STRING": (),
    "TIMESTAMP": ("DATE",),
    "DATE": ("TIMESTAMP",),
}
_OF_DECIMAL = ("DOUBLE", "BIGINT", "STRING")
NO_ATTRIBUTE = "must name an attribute of the events"
# events of which nothing is known, for what declares them is wrong: what names of theirs mean is not asked
UNKNOWN_EVENTS = EventSchema((), "")
ONE_VALUE = "Name an attribute of another type, such as user.id of a STRUCT user."
_OF_NUMBERS = ("sum", "avg", "stddev", "median", "percentile")
_RESULT_TYPES: dict[str, ExprType] = {
    **dict.fromkeys(("avg", "stddev", "median", "percentile"), "DOUBLE"),
    **dict.fromkeys(("count", "count_distinct", "approx_count_distinct"), "BIGINT"),
}
AGGREGATES = tuple(name for name in get_args(AggregateName) if name != "count_distinct")
OF_SPANS_ALONE = "approx_count_distinct"
# for those who count the events of which something is true
COUNTED_IF = "Write count(case when condition then 1 end)."
LENGTHS = "Write a length as an interval, as in t + interval '5' minutes, or unix_seconds(t) for a number."
_ACCEPTED: dict[str, tuple[ExprType, ...]] = {
    "a number": ("BIGINT", "DOUBLE"),
    "a BIGINT": ("BIGINT",),
    "text": ("STRING",),
    "a condition": ("BOOLEAN",),
    "a TIMESTAMP": ("TIMESTAMP",),
    "a TIMESTAMP or DATE": ("TIMESTAMP", "DATE"),
    "a value": ("BOOLEAN", "BIGINT", "DOUBLE", "STRING", "TIMESTAMP", "DATE"),
}
# what a function takes whose argument is converted to a type
_CONVERTED: dict[ExprType, str] = {
    "STRING": "text",
    "BIGINT": "a BIGINT",
    "DOUBLE": "a number",
    **dict.fromkeys(("DATE", "TIMESTAMP"), "a TIMESTAMP or DATE"),
}


@dataclass(frozen=True)
class Wrong:
    """Why an expression cannot be compiled: the parts of a problem."""

    must: str
    got: str
    do: str


def constant_text(expr: Expr) -> str | None:
    """The text that a constant is; None for all else. The digits of a DECIMAL are no text."""
    if isinstance(expr, Literal) and expr.type == "STRING" and isinstance(expr.value, str):
        return expr.value
    return None


def common_type(types: Sequence[ExprType]) -> ExprType | None:
    """The type to which all of `types` convert without a cast; None where there is no such type."""
    found: ExprType = "NULL"
    for kind in types:
        if found in (kind, "NULL"):
            found = kind
        elif kind != "NULL":
            wider = _WIDER.get(frozenset({found, kind}))
            if wider is None:
                return None
            found = wider
    return found


def convert(expr: Expr, target: ExprType) -> Expr:
    """The expression converted to `target`, which `unify` has allowed; a constant is converted at once."""
    if expr.type == target:
        return expr
    if isinstance(expr, Literal):
        if expr.value is None:
            return Literal(None, target)
        if target == "DOUBLE":
            return Literal(float(expr.value), target)
        if decimal_digits(target):
            return Literal(f"{Decimal(str(expr.value)):f}", target)
    return Call("cast", (expr,), target)


def require_type(expr: Expr, kind: str) -> Wrong | None:
    """What is wrong if the expression is not of the kind; bare null is of every kind."""
    if expr.type == "NULL" or expr.type in _ACCEPTED[kind]:
        return None
    do = "Use another attribute or cast(... as TYPE)."
    if kind == "a number" and expr.type == "TIMESTAMP":
        do = LENGTHS
    if decimal_digits(expr.type):
        if kind == "a value":
            return None
        do = "Write cast(... as DOUBLE): of a DECIMAL there are + - * / %, abs, round, and comparisons."
    return Wrong(f"must be {kind}", expr.type, do)


def converted(
    name: str, arguments: Sequence[Expr], targets: Sequence[ExprType], result: ExprType
) -> Expr | Wrong:
    """A function whose arguments are converted to these types."""
    for argument, target in zip(arguments, targets, strict=True):
        if wrong := require_type(argument, _CONVERTED[target]):
            return wrong
    return Call(name, tuple(map(convert, arguments, targets)), result)


def unify(exprs: Sequence[Expr], fallback: ExprType) -> tuple[Expr, ...] | Wrong:
    """All expressions converted to one type, or why there is none; `fallback` if all are bare nulls."""
    types = [expr.type for expr in exprs]
    kind = _common_decimal(exprs) if any(map(decimal_digits, types)) else common_type(types)
    if isinstance(kind, Wrong):
        return kind
    if kind is None:
        return Wrong("must be values of one type", show_types(exprs), _LIKE_WITH_LIKE)
    target = fallback if kind == "NULL" else kind
    return tuple(convert(expr, target) for expr in exprs)


def _common_decimal(exprs: Sequence[Expr]) -> ExprType | Wrong:
    """The DECIMAL that holds every value of some expressions, by Spark's rules; or why there is none."""
    found = _digits_of(exprs)
    if isinstance(found, Wrong):
        return found
    known = [digits for digits in found if digits is not None]
    whole, scale = max(total - behind for total, behind in known), max(behind for _, behind in known)
    if whole + scale > MAX_DIGITS:
        must = f"must have at most {MAX_DIGITS} digits together, before and behind the point"
        return Wrong(must, show_types(exprs), FEWER)
    return _text((whole + scale, scale))


def _digits_of(exprs: Sequence[Expr]) -> list[tuple[int, int] | None] | Wrong:
    """Of each value how many digits it has in all, and behind the point; None for a bare null."""
    found = list[tuple[int, int] | None]()
    for expr in exprs:
        digits = decimal_digits(expr.type)
        if digits is None and expr.type == "BIGINT":
            digits = BIGINT_DIGITS
        if isinstance(expr, Literal) and expr.type in ("BIGINT", "DOUBLE"):
            of_constant = digits_of_constant(expr)
            if isinstance(of_constant, Wrong):
                return of_constant
            digits = of_constant
        if digits is None and expr.type != "NULL":
            do = "Write cast(... as DOUBLE) around the DECIMAL." if expr.type == "DOUBLE" else _LIKE_WITH_LIKE
            return Wrong("must be values of one type", show_types(exprs), do)
        found.append(digits)
    return found


def digits_of_constant(number: Literal) -> tuple[int, int] | Wrong:
    """The digits of a constant beside a DECIMAL, in all and behind the point, as it is written."""
    if number.type == "DOUBLE" and len(Decimal(str(number.value)).as_tuple().digits) > EXACT_DIGITS:
        got, do = str(number.value), f"Write cast('{number.value}' as DECIMAL(p,s)) for more digits."
        return Wrong(f"must be a constant of at most {EXACT_DIGITS} digits beside a DECIMAL", got, do)
    digits = constant_digits(str(number.value))
    if digits[0] > MAX_DIGITS:
        do = "Write cast(... as DOUBLE) around the DECIMAL."
        return Wrong(
            f"must be a constant of at most {MAX_DIGITS} digits beside a DECIMAL", str(number.value), do
        )
    return digits


def constant_digits(text: str) -> tuple[int, int]:
    """How many digits a number has in all, and behind the point, as `decimal_digits` counts them."""
    _, digits, exponent = Decimal(text).as_tuple()
    scale = max(0, -int(exponent))
    return max(len(digits) + max(0, int(exponent)), scale, 1), scale


def show_types(exprs: Sequence[Expr]) -> str:
    """The types in order, once each: ``STRING and BIGINT``."""
    names = list(dict.fromkeys(expr.type for expr in exprs))
    return " and ".join(names)


def excess_of(expr: Expr) -> str:
    """The limit that the expression goes beyond, in words; empty if it goes beyond none.

    An argument that ``nullif`` and others use twice counts twice.
    """
    nodes, joined, waiting = 0, 0, [expr]
    while waiting:
        node = waiting.pop()
        nodes += 1
        if isinstance(node, Call):
            waiting += node.arguments
            joined += len(node.arguments) if node.function == "concat" else 0
            if node.function == "case" and len(node.arguments) > 2 * MAX_BRANCHES + 1:
                return f"at most {MAX_BRANCHES} branches of one case"
        if nodes > MAX_NODES:
            return f"at most {MAX_NODES} operations"
        if joined > MAX_JOINED:
            return f"at most {MAX_JOINED} texts put together"
    return ""


def has_decimal(values: Sequence[Expr]) -> bool:
    """Tell whether one of the values is a DECIMAL."""
    return any(decimal_digits(value.type) for value in values)


def computed_decimal(name: str, values: Sequence[Expr]) -> Expr | Wrong:
    """``+``, ``-``, ``*``, ``/`` or ``%`` of two values, of which one is a DECIMAL."""
    found = _digits_of(values)
    if isinstance(found, Wrong):
        return found
    known = [one for one in found if one is not None]
    left, right = (one or known[0] for one in found)
    precision, scale = _digits_computed(name, left, right)
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


def _digits_computed(name: str, left: tuple[int, int], right: tuple[int, int]) -> tuple[int, int]:
    """The digits of a result, in all and behind the point."""
    scale, wholes = max(left[1], right[1]), (left[0] - left[1], right[0] - right[1])
    if name == "*":
        return left[0] + right[0] + 1, left[1] + right[1]
    if name == "/":
        scale = max(LEAST_SCALE, left[1] + right[0] + 1)
        return wholes[0] + right[1] + scale, scale
    return (min(wholes) if name == "%" else max(wholes) + 1) + scale, scale


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
    target = "BIGINT" if kind == "LONG" else kind
    if (not digits and target not in _CASTS) or (digits and not is_decimal(*digits)):
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


def use_one_of(names: Sequence[str]) -> str:
    """The advice to use one of the aggregates."""
    return f"use {', '.join(names[:-1])} or {names[-1]}."


USE_AGGREGATES = use_one_of([name for name in AGGREGATES if name != OF_SPANS_ALONE])


def find_type(schema: EventSchema, attribute: str) -> ExprType | Wrong:
    """The declared type of an attribute."""
    types = {field.name: field.type for field in schema.fields}
    if attribute in types:
        return types[attribute]
    return Wrong(NO_ATTRIBUTE, quote(attribute), nearest(attribute, types))


def over_group(
    schema: EventSchema, function: str, component: str | None, attribute: str | None = None
) -> Aggregate | Wrong:
    """The aggregate of an attribute, or the count of the events."""
    if attribute is None:
        return Aggregate("count", component, None, "BIGINT")
    kind = find_type(schema, attribute)
    if isinstance(kind, Wrong):
        return kind
    if not is_single(kind):
        return Wrong(
            f"must be of single values inside {shown(function)}", f"{quote(attribute)}, {kind}", ONE_VALUE
        )
    return over_values(function, component, attribute, kind)


def shown(function: str) -> str:
    """An aggregate as it is written."""
    return "count(distinct ...)" if function == "count_distinct" else function


def over_values(
    function: str, component: str | None, name: str, kind: ExprType, of: Expr | None = None
) -> Aggregate | Wrong:
    """The aggregate of the values of a column, which are of a type without parts.

    Args:
        function: its name, or "count_distinct".
        component: the component that stands for a group; None: the aggregate is of a span.
        name: the attribute, or the name of the column that `of` is computed into.
        kind: the type of the values.
        of: what is computed of each event.
    """
    digits = decimal_digits(kind)
    if function == OF_SPANS_ALONE and component is not None:
        do = "Write count(distinct x): a group is small."
        return Wrong("must be an aggregate of components", f"{function}(...)", do)
    if function in ("sum", "avg") and digits:  # an average is made of the sum and the count; see `averaged`
        return Aggregate(function, component, name, total_type(*digits) if function == "sum" else kind, of)  # type: ignore[arg-type]
    if function in _OF_NUMBERS and kind not in ("BIGINT", "DOUBLE"):
        types = "BIGINT, DOUBLE or DECIMAL" if function in ("sum", "avg") else "BIGINT or DOUBLE"
        do = f"Name an attribute of type {types}."
        if digits:
            do = f"Write {function}(cast(x as DOUBLE))."
        if kind == "BOOLEAN" and function in ("sum", "avg"):
            do = COUNTED_IF if function == "sum" else "Write avg(case when condition then 1 else 0 end)."
        return Wrong(f"must be a number inside {function}", kind, do)
    if function in ("min", "max", "mode") and kind == "BOOLEAN":
        return Wrong(f"must be a number, text or a time inside {function}", kind, "Name another attribute.")
    result = f"ARRAY<{kind}>" if function == "collect_list" else _RESULT_TYPES.get(function, kind)
    return Aggregate(function, component, name, result, of)  # type: ignore[arg-type]
