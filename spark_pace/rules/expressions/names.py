"""Dotted names in an expression: which part is a component, which are STRUCTs."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from spark_pace.core.expr import STRUCT, Aggregate, Column, Expr, is_single
from spark_pace.rules.document.report import quote
from spark_pace.rules.expressions.arrays import ARRAY_FUNCTIONS
from spark_pace.rules.expressions.scopes import Scope
from spark_pace.rules.expressions.types import Wrong


def name_of(tree: exp.Expr, scope: Scope) -> tuple[str | None, str] | None:
    """The prefix, None without one, and the attribute that a name is made of; None for what is no name.

    The first part is a prefix unless it is a STRUCT: ``user.id`` has none, ``a.user.id`` has ``a``.
    """
    parts = _parts(tree)
    if not parts:
        return None
    if len(parts) == 1 or (parts[0] in scope.schema.structs and not scope.is_prefix(parts[0])):
        return None, ".".join(parts)
    return parts[0], ".".join(parts[1:])


def _parts(tree: exp.Expr) -> list[str]:
    """The names between the dots; an empty list for what is no name."""
    if isinstance(tree, exp.Dot):
        outer = _parts(tree.this)
        return [*outer, tree.expression.name] if outer and isinstance(tree.expression, exp.Identifier) else []
    if not isinstance(tree, exp.Column) or not isinstance(tree.this, exp.Identifier):
        return []
    return [part.name for part in tree.parts]


def whole(found: Column | Aggregate, tree: exp.Expr) -> Wrong | None:
    """What is wrong if a STRUCT or ARRAY is named where a single value must stand; None if nothing is.

    They may stand before ``is null``, and an ARRAY in the functions that take one.
    """
    around = tree.parent
    asked = isinstance(around, exp.Is) and isinstance(around.expression, exp.Null)
    if is_single(found.type) or asked:
        return None
    name = found.attribute
    got = f"{quote(name or '')}, {found.type}"
    if found.type == STRUCT:
        do = f"Write {name}.name, or {name} is null."
        return Wrong("must be an attribute that the STRUCT holds", got, do)
    called = around.name.lower() if isinstance(around, exp.Anonymous) else ""
    if isinstance(around, exp.Anonymous) and around.expressions[0] is tree and called in ARRAY_FUNCTIONS:
        return None
    if isinstance(around, exp.In) and around.this is not tree:
        sought = around.this.sql(dialect="spark") if isinstance(around.this, exp.Literal) else "constant"
        do = f"Write array_contains({tree.sql(dialect='spark')}, {sought})."
        return Wrong("must be a single value", got, do)
    functions = ", ".join(ARRAY_FUNCTIONS)
    return Wrong("must be a single value", got, f"An ARRAY stands in {functions} and before is null.")


def no_list(values: Sequence[Expr]) -> Wrong:
    """What is wrong with ``x in y``, where y is a single value."""
    do = "Write for example kind in ('a', 'b')."
    return Wrong("must have a list in parentheses after in", values[0].type, do)
