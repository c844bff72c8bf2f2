"""Expressions as text in the rule language, for people."""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone

from spark_pace.core.expr import Aggregate, Call, Column, Expr, Literal

_INFIX = {"=", "<>", "<", ">", "<=", ">=", "<=>", "+", "-", "*", "/", "%", "and", "or", "like"}
_CONNECTIVES = ("and", "or")
_OPERATORS = _INFIX | {"not", "negate", "is_null", "in"}


def to_text(expr: Expr) -> str:
    """The expression as a rule file could write it."""
    if isinstance(expr, Literal):
        return _literal(expr)
    if isinstance(expr, Column):
        return _name(expr.component, expr.attribute)
    if isinstance(expr, Aggregate):
        return (
            f"{expr.function}({_name(expr.component, expr.attribute) if expr.attribute else expr.component})"
        )
    return _call(expr)


def _part(expr: Expr, inside: str) -> str:
    """An argument of an operator, in parentheses where it is an operator too that `inside` does not bind less than."""
    text = to_text(expr)
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
        return f"cast({to_text(call.arguments[0])} as {call.type.lower()})"
    if name == "is_null":
        return f"{parts[0]} is null"
    if name == "not":
        return f"not {parts[0]}"
    if name == "negate":
        return f"-{parts[0]}"
    if name == "in":
        return f"{parts[0]} in ({', '.join(parts[1:])})"
    if name == "case":
        branches = "".join(f" when {parts[i]} then {parts[i + 1]}" for i in range(0, len(parts) - 1, 2))
        return f"case{branches} else {parts[-1]} end"
    return f"{name}({', '.join(to_text(argument) for argument in call.arguments)})"


def _name(component: str | None, attribute: str | None) -> str:
    name = str(attribute)
    shown = name if name.isidentifier() else "`" + name.replace("`", "``") + "`"
    return f"{component}.{shown}" if component else shown


def _literal(literal: Literal) -> str:
    value = literal.value
    if value is None:
        return "null" if literal.type == "NULL" else f"cast(null as {literal.type.lower()})"
    if isinstance(value, bool):
        return "true" if value else "false"
    if literal.type == "STRING":
        return "'" + str(value).replace("\\", "\\\\").replace("'", "\\'") + "'"
    if literal.type == "TIMESTAMP":
        moment = datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(microseconds=int(value))
        return f"timestamp '{moment:%Y-%m-%d %H:%M:%S.%f}'"
    if literal.type == "DATE":
        return f"date '{date(1970, 1, 1) + timedelta(days=int(value))}'"
    return repr(value)
