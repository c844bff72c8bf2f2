"""Expressions as plain lists, to store them as JSON and read exactly the same expression back."""

from __future__ import annotations

from typing import Any

from spark_pace.core.expr.nodes import Aggregate, Call, Column, Expr, Literal, Previous

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
