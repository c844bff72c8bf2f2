"""Expressions as text, to compare them, and as plain lists, to store them as JSON and read them back.

Each expression and each duration has one text, the same in every release. Checkpoints keep these texts, and
refuse a rule whose text differs from the kept one. So what this file gives may never change, whatever would
look better. People read the same texts (in `explain`, `why` and messages); where they should read others,
that needs a function of its own.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta
from typing import Any

from spark_pace.core.expr import (
    Aggregate,
    Call,
    Column,
    Expr,
    Literal,
    Previous,
    decimal_digits,
    of_component,
)
from spark_pace.core.expr.time_functions import time_of

_INFIX = {"=", "<>", "<", ">", "<=", ">=", "<=>", "+", "-", "*", "/", "%", "and", "or", "like", "rlike"}
_CONNECTIVES = ("and", "or")
_OPERATORS = _INFIX | {"not", "negate", "is_null", "in"}
# These units never change; those of `spark_pace.core.plan.meaning` may.
_UNITS_US = {
    "d": 86_400_000_000,
    "h": 3_600_000_000,
    "min": 60_000_000,
    "s": 1_000_000,
    "ms": 1_000,
    "us": 1,
}


def canonical_text(expr: Expr) -> str:
    """The text of an expression, in the rule language."""
    if isinstance(expr, Literal):
        return _literal(expr)
    if isinstance(expr, Column):
        return _name(expr.component, expr.attribute)
    if isinstance(expr, Previous):
        return f"prev({_name(expr.component, expr.attribute)}, {expr.back})"
    if isinstance(expr, Aggregate):
        return _aggregate(expr)
    return _call(expr)


def canonical_duration(time_us: int) -> str:
    """The text of microseconds, in the largest unit that divides them: ``90 min``."""
    unit, unit_us = next(item for item in _UNITS_US.items() if time_us % item[1] == 0)
    return f"{time_us // unit_us} {unit}"


def _aggregate(expr: Aggregate) -> str:
    name = _name(expr.component, expr.attribute) if expr.attribute else expr.component or "*"
    if expr.of is not None:
        name = canonical_text(of_component(expr.of, expr.component))
    if expr.function == "count_distinct":
        return f"count(distinct {name})"
    return f"{expr.function}({name})" if expr.at is None else f"{expr.function}({name}, {expr.at!r})"


def _part(expr: Expr, inside: str) -> str:
    """An argument of the operator `inside`: in parentheses if it is an operator that does not bind more."""
    text = canonical_text(expr)
    if not isinstance(expr, Call) or expr.function not in _OPERATORS:
        return text
    binds_more = inside in _CONNECTIVES and (expr.function == inside or expr.function not in _CONNECTIVES)
    return text if binds_more else f"({text})"


def _call(call: Call) -> str:
    name = call.function
    parts = [_part(argument, name) for argument in call.arguments]
    if name in _INFIX:
        return f"{parts[0]} {name} {parts[1]}"
    if name == "cast":
        return f"cast({canonical_text(call.arguments[0])} as {call.type.lower()})"
    if name == "is_null":
        return f"{parts[0]} is null"
    if name == "not":
        return f"not {parts[0]}"
    if name == "negate":
        return f"-{parts[0]}"
    if name == "avg" and isinstance(call.arguments[0], Aggregate):  # of a DECIMAL: its sum, and its count
        return canonical_text(replace(call.arguments[0], function="avg"))
    if name == "in":
        return f"{parts[0]} in ({', '.join(parts[1:])})"
    if name == "case":
        branches = "".join(f" when {parts[i]} then {parts[i + 1]}" for i in range(0, len(parts) - 1, 2))
        return f"case{branches} else {parts[-1]} end"
    return f"{name}({', '.join(canonical_text(argument) for argument in call.arguments)})"


def _name(component: str | None, attribute: str | None) -> str:
    name = str(attribute)
    shown = name if name.isidentifier() else "`" + name.replace("`", "``") + "`"
    return f"{component}.{shown}" if component else shown


def _literal(literal: Literal) -> str:
    value = literal.value
    if value is None:
        return "null" if literal.type == "NULL" else f"cast(null as {literal.type.lower()})"
    if decimal_digits(literal.type):
        return f"cast('{value}' as {literal.type.lower()})"
    if isinstance(value, bool):
        return "true" if value else "false"
    if literal.type == "STRING":
        return "'" + str(value).replace("\\", "\\\\").replace("'", "\\'") + "'"
    if literal.type == "TIMESTAMP":
        return f"timestamp '{time_of(int(value)):%Y-%m-%d %H:%M:%S.%f}'"
    if literal.type == "DATE":
        return f"date '{date(1970, 1, 1) + timedelta(days=int(value))}'"
    return repr(value)


_NODES: dict[str, type[Expr]] = {
    "literal": Literal,
    "column": Column,
    "previous": Previous,
    "call": Call,
    "aggregate": Aggregate,
}
_NAMES = {node: name for name, node in _NODES.items()}


def to_stored(expr: Expr) -> list[Any]:
    """The expression as a list: the kind of node, then its fields; arguments are such lists too."""
    if isinstance(expr, Call):
        return ["call", expr.function, [to_stored(argument) for argument in expr.arguments], expr.type]
    return [_NAMES[type(expr)], *vars(expr).values()]


def from_stored(stored: list[Any]) -> Expr:
    """Convert a list from `to_stored` back to the expression.

    Raises:
        KeyError, TypeError: `to_stored` makes no such list.
    """
    name, *fields = stored
    if name == "call":
        function, arguments, kind = fields
        return Call(function, tuple(map(from_stored, arguments)), kind)
    return _NODES[name](*fields)
