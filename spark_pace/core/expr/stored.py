"""Expressions as plain lists, for JSON: exactly the same expression comes back."""

from __future__ import annotations

from typing import Any

from spark_pace.core.expr.nodes import Aggregate, Call, Column, Expr, Literal

_NODES: dict[str, type[Expr]] = {"literal": Literal, "column": Column, "call": Call, "aggregate": Aggregate}
_NAMES = {node: name for name, node in _NODES.items()}


def to_stored(expr: Expr) -> list[Any]:
    """The name of the node, then its fields; arguments are such lists themselves."""
    if isinstance(expr, Call):
        return ["call", expr.function, [to_stored(argument) for argument in expr.arguments], expr.type]
    return [_NAMES[type(expr)], *vars(expr).values()]


def from_stored(stored: list[Any]) -> Expr:
    """The expression of which `to_stored` has made this list.

    Raises:
        KeyError, TypeError: it is no such list.
    """
    name, *fields = stored
    if name == "call":
        function, arguments, kind = fields
        return Call(function, tuple(map(from_stored, arguments)), kind)
    return _NODES[name](*fields)
