"""Dotted names in an expression: which part is a component, which are STRUCTs."""

from __future__ import annotations

from sqlglot import exp

from spark_pace.core.expr import STRUCT, Aggregate, Column
from spark_pace.rules.document.report import quote
from spark_pace.rules.expressions.scopes import Scope
from spark_pace.rules.expressions.types import Wrong


def name_of(tree: exp.Expr, scope: Scope) -> tuple[str | None, str] | None:
    """The prefix and the attribute that a name says; None for what is no name.

    What comes first is a prefix, unless it is a STRUCT: ``user.id`` has none, ``a.user.id`` has one.
    """
    parts = _parts(tree)
    if not parts:
        return None
    if len(parts) == 1 or (parts[0] in scope.schema.structs and not scope.is_prefix(parts[0])):
        return None, ".".join(parts)
    return parts[0], ".".join(parts[1:])


def _parts(tree: exp.Expr) -> list[str]:
    """The names between the dots; none for what is no name."""
    if isinstance(tree, exp.Dot):
        outer = _parts(tree.this)
        return [*outer, tree.expression.name] if outer and isinstance(tree.expression, exp.Identifier) else []
    if not isinstance(tree, exp.Column) or not isinstance(tree.this, exp.Identifier):
        return []
    return [part.name for part in tree.parts]


def whole(found: Column | Aggregate, tree: exp.Expr) -> Wrong | None:
    """What is wrong if a STRUCT is named where a value must stand: only ``is null`` takes it."""
    if found.type != STRUCT:
        return None
    asked = isinstance(tree.parent, exp.Is) and isinstance(tree.parent.expression, exp.Null)
    if asked and isinstance(found, Column):
        return None
    got, do = (
        f"{quote(found.attribute or '')}, a STRUCT",
        f"Write {found.attribute}.name, or {found.attribute} is null.",
    )
    return Wrong("must be an attribute that the STRUCT holds", got, do)
