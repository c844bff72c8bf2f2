"""Conditions in the operations that programs have, without ``case``, ``coalesce``, ``in`` and ``<=>``."""

from __future__ import annotations

from dataclasses import replace

from spark_pace.core.expr import Call, Expr

_CHOOSING = ("case", "coalesce")


def plain(expr: Expr) -> Expr:
    """The same condition without these functions, where it is null for the same values."""
    if not isinstance(expr, Call):
        return expr
    if expr.function == "<=>":
        left, right = expr.arguments
        known = _and(_not(_is_null(left)), _not(_is_null(right)))
        return plain(_or(_and(known, _equal(left, right)), _and(_is_null(left), _is_null(right))))
    if expr.function == "in":
        sought, first, *others = expr.arguments
        found = _equal(sought, first)
        for one in others:
            found = _or(found, _equal(sought, one))
        return plain(found)
    one = replace(expr, arguments=tuple(map(plain, expr.arguments)))
    return _lifted(one) if expr.type == "BOOLEAN" else one


def _lifted(condition: Expr) -> Expr:
    """The condition of each of the values between which a part of it chooses, where that one is chosen."""
    part = _choosing(condition)
    if part is None:
        return condition
    first, *rest = part.arguments
    value = first
    if part.function == "case":
        value, *rest = rest
        chosen: Expr = _and(_not(_is_null(first)), first)
    else:
        chosen = plain(_not(_is_null(first)))
    other = rest[0] if len(rest) == 1 else replace(part, arguments=tuple(rest))
    left, right = (_lifted(_with(condition, part, one)) for one in (value, other))
    return _or(_and(chosen, left), _and(_not(chosen), right))


def _choosing(expr: Expr) -> Call | None:
    """The first part of a condition that chooses, but for those within conditions in it."""
    if not isinstance(expr, Call):
        return None
    if expr.function in _CHOOSING and len(expr.arguments) > 1:
        return expr
    inner = (_choosing(one) for one in expr.arguments if one.type != "BOOLEAN")
    return next(filter(None, inner), None)


def _with(expr: Expr, part: Expr, value: Expr) -> Expr:
    if expr is part:
        return value
    if not isinstance(expr, Call):
        return expr
    return replace(expr, arguments=tuple(_with(one, part, value) for one in expr.arguments))


def _equal(left: Expr, right: Expr) -> Call:
    return Call("=", (left, right), "BOOLEAN")


def _is_null(expr: Expr) -> Call:
    return Call("is_null", (expr,), "BOOLEAN")


def _not(condition: Expr) -> Call:
    return Call("not", (condition,), "BOOLEAN")


def _and(left: Expr, right: Expr) -> Call:
    return Call("and", (left, right), "BOOLEAN")


def _or(left: Expr, right: Expr) -> Call:
    return Call("or", (left, right), "BOOLEAN")
