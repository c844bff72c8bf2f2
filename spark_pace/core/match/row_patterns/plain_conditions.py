"""Conditions in the operations that programs have, without ``case``, ``coalesce``, ``in`` and ``<=>``.

A condition is written once for each of the values between which a part of it chooses. Several such parts in
one comparison, or in each other, multiply, so what becomes too large stays as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from spark_pace.core.expr import Call, Expr, transform, walk

MOST_NODES = 2_000
_CHOOSING = ("case", "coalesce")


class TooLargeError(Exception):
    """A condition would have more than `MOST_NODES`."""


def plain(expr: Expr) -> Expr:
    """The same condition without these functions, where it is null for the same values.

    Raises:
        TooLargeError: it would be.
    """
    if not isinstance(expr, Call):
        return expr
    if expr.function == "<=>":
        left, right = expr.arguments
        known = _and(_not(_is_null(left)), _not(_is_null(right)))
        return plain(_or(_and(known, _equal(left, right)), _and(_is_null(left), _is_null(right))))
    if expr.function == "in":
        sought, *items = expr.arguments
        return plain(_any([_equal(sought, one) for one in items]))
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
    lifted = _or(_and(chosen, left), _and(_not(chosen), right))
    _require_small(lifted)
    return lifted


def _require_small(condition: Expr) -> None:
    for number, _ in enumerate(walk(condition)):
        if number >= MOST_NODES:
            raise TooLargeError


def _choosing(expr: Expr) -> Call | None:
    """The first part of a condition that chooses, but for those within conditions in it."""
    if not isinstance(expr, Call):
        return None
    if expr.function in _CHOOSING and len(expr.arguments) > 1:
        return expr
    inner = (_choosing(one) for one in expr.arguments if one.type != "BOOLEAN")
    return next(filter(None, inner), None)


def _with(expr: Expr, part: Expr, value: Expr) -> Expr:
    return transform(expr, lambda node: value if node is part else None)


def _any(conditions: Sequence[Call]) -> Call:
    """One of the conditions; it is as deep as the logarithm of their number."""
    if len(conditions) == 1:
        return conditions[0]
    middle = len(conditions) // 2
    return _or(_any(conditions[:middle]), _any(conditions[middle:]))


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
