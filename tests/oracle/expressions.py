"""The value of an expression for one event or one candidate: plain Python, SQL's three-valued logic.

It was written from the documentation of the expression language, not from `spark_pace.core.expr.evaluation`;
it uses only the nodes of that package. A timestamp is a whole number of microseconds since 1970.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

from spark_pace.core.expr import Aggregate, Call, Column, Expr, Literal, Previous, decimal_digits

Row = Mapping[str, Any]

LEAST, GREATEST = -(2**63), 2**63 - 1


class Bindings:
    """What the names in an expression stand for.

    `event` is the event of columns without a component, `before` all events before it, `bound` the event of
    each component (of ``open`` the one that opened the span), `befores` all before that, `groups` all events
    of each component for aggregates, `span` those of aggregates without one; lists are in stream order.
    """

    def __init__(
        self,
        event: Row | None = None,
        bound: Mapping[str, Row] | None = None,
        groups: Mapping[str, Sequence[Row]] | None = None,
        *,
        before: Sequence[Row] = (),
        befores: Mapping[str, Sequence[Row]] | None = None,
        span: Sequence[Row] = (),
    ) -> None:
        self.event = event
        self.befores = {None: before, **(befores or {})}
        self.bound = bound or {}
        self.groups = groups or {}
        self.span = span

    def row(self, component: str | None) -> Row:
        found = self.event if component is None else self.bound[component]
        assert found is not None
        return found


def value_of(expr: Expr, bindings: Bindings) -> Any:
    """The value of the expression; None is SQL's null."""
    if isinstance(expr, Literal):
        is_decimal = decimal_digits(expr.type) is not None and expr.value is not None
        return Decimal(str(expr.value)) if is_decimal else expr.value
    if isinstance(expr, Column):
        return bindings.row(expr.component)[expr.attribute]
    if isinstance(expr, Previous):
        before = bindings.befores.get(expr.component, ())
        return before[-expr.back][expr.attribute] if len(before) >= expr.back else None
    if isinstance(expr, Aggregate):
        if expr.component is None:
            return aggregate(expr, bindings.span, OF_SPANS)
        return aggregate(expr, bindings.groups[expr.component], OF_GROUPS)
    if expr.function in ("and", "or"):
        return logical(expr, bindings)
    if expr.function == "case":
        return case(expr, bindings)
    arguments = [value_of(argument, bindings) for argument in expr.arguments]
    if expr.function in NULL_TOLERANT:
        return NULL_TOLERANT[expr.function](arguments)
    if expr.function == "cast":
        return cast(arguments[0], expr.type)
    if any(argument is None for argument in arguments):
        return None
    digits = decimal_digits(expr.type)
    if digits is not None and expr.function in OF_DECIMALS:
        return as_decimal(OF_DECIMALS[expr.function](*map(Fraction, arguments)), *digits)
    return in_range(ORDINARY[expr.function](*arguments))


def holds(expr: Expr, bindings: Bindings) -> bool:
    """Whether a condition is true; null counts as false."""
    return value_of(expr, bindings) is True


def nodes_of(expr: Expr) -> Iterator[Expr]:
    yield expr
    if isinstance(expr, Call):
        for argument in expr.arguments:
            yield from nodes_of(argument)


def has_previous(expr: Expr) -> bool:
    return any(isinstance(node, Previous) for node in nodes_of(expr))


def has_open(expr: Expr) -> bool:
    return any(isinstance(node, Column) and node.component == "open" for node in nodes_of(expr))


def conjuncts_of(expr: Expr) -> list[Expr]:
    """What stands between the outermost `and`s."""
    if isinstance(expr, Call) and expr.function == "and":
        return [part for argument in expr.arguments for part in conjuncts_of(argument)]
    return [expr]


def logical(expr: Call, bindings: Bindings) -> bool | None:
    values = [value_of(argument, bindings) for argument in expr.arguments]
    decisive = expr.function == "or"  # one true makes an `or` true, one false an `and` false
    if decisive in values:
        return decisive
    return None if None in values else not decisive


def case(expr: Call, bindings: Bindings) -> Any:
    """Arguments: condition, value, condition, value, …, otherwise."""
    *branches, otherwise = expr.arguments
    for condition, value in zip(branches[::2], branches[1::2], strict=True):
        if holds(condition, bindings):
            return value_of(value, bindings)
    return value_of(otherwise, bindings)


def is_in(arguments: list[Any]) -> bool | None:
    sought, *items = arguments
    if sought is None:
        return None
    if compared(sought) in [compared(item) for item in items if item is not None]:
        return True
    return None if None in items else False


def compared(value: Any) -> tuple[bool, Any]:
    """What compares as the value does: NaN equals NaN and is greater than every number."""
    is_nan = value != value
    return is_nan, 0 if is_nan else value


def extreme(pick: Callable[..., Any]) -> Callable[[list[Any]], Any]:
    def among(arguments: list[Any]) -> Any:
        known = [argument for argument in arguments if argument is not None]
        return pick(known, key=compared) if known else None

    return among


def divide(left: float, right: float) -> float | None:
    return None if right == 0 else left / right


def modulo(left: int, right: int) -> int | None:
    """The remainder has the sign of the left operand."""
    if right == 0:
        return None
    remainder = abs(left) % abs(right)
    return -remainder if left < 0 else remainder


def in_range(value: Any) -> Any:
    """Null where a whole number does not fit in 64 bits."""
    if isinstance(value, int) and not isinstance(value, bool) and not LEAST <= value <= GREATEST:
        return None
    return value


def as_decimal(exact: Fraction | None, precision: int, scale: int) -> Decimal | None:
    """The number rounded half up to its digits; null where it has too many before the point."""
    if exact is None:
        return None
    units = abs(exact) * 10**scale
    whole = units.numerator // units.denominator
    whole += 2 * (units - whole) >= 1
    number = Decimal(whole if exact >= 0 else -whole).scaleb(-scale, Context(prec=100))
    return number if whole < 10**precision else None


def rest(left: Fraction, right: Fraction) -> Fraction | None:
    """What is left of a division; it has the sign of the left operand."""
    if right == 0:
        return None
    left_over = abs(left) % abs(right)
    return -left_over if left < 0 else left_over


def cast(value: Any, target: str) -> Any:
    if value is None or target == "NULL":
        return value
    digits = decimal_digits(target)
    if digits is not None:
        return as_decimal(Fraction(value), *digits)
    if isinstance(value, Decimal) and target in ("BIGINT", "STRING"):
        return in_range(int(value)) if target == "BIGINT" else f"{value:f}"
    return {"DOUBLE": float, "BIGINT": int}.get(target, lambda same: same)(value)


def aggregate(expr: Aggregate, rows: Sequence[Row], reductions: Reductions) -> Any:
    """Leave nulls out, except that `first` and `last` give the value as it is; ``count(x)`` counts events."""
    if expr.attribute is None:
        return len(rows)
    values = [value_of(expr.of, Bindings(row)) if expr.of else row[expr.attribute] for row in rows]
    if expr.function in ("first", "last"):
        return values[0 if expr.function == "first" else -1] if values else None
    known = [value for value in values if value is not None]
    if expr.function == "count":
        return len(known)
    if expr.function == "count_distinct":
        return len({compared(value) for value in known})
    if expr.function == "collect_list":
        return known[: int(expr.at or 0)]
    if not known:
        return None
    if expr.function in ("median", "percentile"):
        return percentile(known, 0.5 if expr.at is None else expr.at)
    if expr.function == "sum" and (digits := decimal_digits(expr.type)):
        return as_decimal(sum(map(Fraction, known), Fraction(0)), *digits)
    return in_range(reductions[expr.function](known))


def percentile(known: list[Any], at: float) -> float:
    """What stands at a place between the least (0) and the greatest (1), in proportion."""
    ascending = sorted(known, key=compared)
    place = (len(known) - 1) * at
    below, above = (ascending[round_to(place)] for round_to in (math.floor, math.ceil))
    if compared(below) == compared(above):
        return float(below)
    return (math.ceil(place) - place) * float(below) + (place - math.floor(place)) * float(above)


def mode(known: list[Any]) -> Any:
    """The most frequent value, of several the least."""
    times = [sum(compared(other) == compared(value) for other in known) for value in known]
    most = [value for value, count in zip(known, times, strict=True) if count == max(times)]
    return min(most, key=compared)


def total(known: list[Any]) -> Any:
    """Number after number is added (`sum` does otherwise from Python 3.12 on)."""
    so_far = known[0]
    for value in known[1:]:
        so_far += value
    return so_far


def mean(known: list[Any]) -> float:
    return float(total(known)) / len(known)


def exact_total(known: list[Any]) -> Any:
    """The sum as it is; that of floating-point numbers is rounded once."""
    return sum(known[1:], known[0]) if not isinstance(known[0], float) else nearest(known)


def exact_mean(known: list[Any]) -> float:
    return nearest(known) / len(known)


def exact_deviation(known: list[Any]) -> float | None:
    """The standard deviation of a sample: the root of (n * sum(x * x) - sum(x) ** 2) / (n * (n - 1)).

    The first difference is exact, and rounded to the digits of a DOUBLE, however large or small it is.
    """
    if len(known) < 2:
        return None
    if not all(map(math.isfinite, known)):
        return math.nan
    values, count = [Fraction(value) for value in known], len(known)
    difference = count * sum(value * value for value in values) - sum(values) ** 2
    size = difference.numerator.bit_length() - difference.denominator.bit_length()
    scaled = float(difference / Fraction(4) ** (size // 2))
    root = math.sqrt(scaled / (count * (count - 1)))
    try:
        return math.ldexp(root, size // 2)
    except OverflowError:
        return math.inf


def nearest(known: list[Any]) -> float:
    """The DOUBLE that is nearest to the exact sum."""
    odd = {str(value) for value in known if not math.isfinite(value)}
    if odd:
        return math.nan if len(odd) > 1 else float(odd.pop())
    exact = sum(map(Fraction, known), Fraction(0))
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


Reductions = Mapping[str, Callable[[list[Any]], Any]]
OF_GROUPS: Reductions = {
    "sum": total,
    "avg": mean,
    "min": extreme(min),
    "max": extreme(max),
    "stddev": exact_deviation,
    "mode": mode,
}
OF_SPANS: Reductions = {**OF_GROUPS, "sum": exact_total, "avg": exact_mean}

OF_DECIMALS: dict[str, Callable[..., Fraction | None]] = {
    "+": lambda left, right: left + right,
    "-": lambda left, right: left - right,
    "*": lambda left, right: left * right,
    "/": lambda left, right: None if right == 0 else left / right,
    "avg": lambda total, count: None if count == 0 else total / count,
    "%": rest,
    "round": lambda value, *_: value,
    "negate": lambda value: -value,
    "abs": abs,
}

NULL_TOLERANT: dict[str, Callable[[list[Any]], Any]] = {
    "is_null": lambda arguments: arguments[0] is None,
    "<=>": lambda arguments: compared(arguments[0]) == compared(arguments[1]),
    "in": is_in,
    "coalesce": lambda arguments: next((argument for argument in arguments if argument is not None), None),
    "greatest": extreme(max),
    "least": extreme(min),
}

ORDINARY: dict[str, Callable[..., Any]] = {
    "not": lambda value: not value,
    "=": lambda left, right: compared(left) == compared(right),
    "<>": lambda left, right: compared(left) != compared(right),
    "<": lambda left, right: compared(left) < compared(right),
    "<=": lambda left, right: compared(left) <= compared(right),
    ">": lambda left, right: compared(left) > compared(right),
    ">=": lambda left, right: compared(left) >= compared(right),
    "+": lambda left, right: left + right,
    "-": lambda left, right: left - right,
    "*": lambda left, right: left * right,
    "/": divide,
    "%": modulo,
    "negate": lambda value: -value,
    "abs": abs,
    "length": len,
    "lower": str.lower,
    "upper": str.upper,
    "concat": lambda *parts: "".join(parts),
    "startswith": str.startswith,
    "endswith": str.endswith,
    "contains": lambda text, part: part in text,
    **dict.fromkeys(("unix_micros", "timestamp_micros"), lambda micros: micros),
    "unix_seconds": lambda micros: micros // 1_000_000,
}
