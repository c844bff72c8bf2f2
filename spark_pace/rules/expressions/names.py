"""Dotted names in an expression: which part is a component, which are STRUCTs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from spark_pace.core.expr import STRUCT, Aggregate, Column, Expr, is_single
from spark_pace.rules.document.report import meant_by, quote
from spark_pace.rules.expressions.arrays import ARRAY_FUNCTIONS
from spark_pace.rules.expressions.attributes import NO_ATTRIBUTE
from spark_pace.rules.expressions.scopes import Scope
from spark_pace.rules.expressions.types import Wrong

_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ, exp.Like)
_CONSTANTS = (exp.Literal, exp.Boolean, exp.Neg)


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


def whole(found: Expr, tree: exp.Expr) -> Wrong | None:
    """What is wrong if a STRUCT or ARRAY is named where a single value must stand; None if nothing is.

    They may stand before ``is null``, and an ARRAY in the functions that take one.
    """
    around = tree.parent
    asked = isinstance(around, exp.Is) and isinstance(around.expression, exp.Null)
    if is_single(found.type) or asked:
        return None
    assert isinstance(found, Column | Aggregate), found
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


def perhaps_text(wrong: Wrong, tree: exp.Expr, scope: Scope) -> Wrong:
    """What is wrong with a name; if it may be a text whose quotation marks were forgotten, that is added."""
    attributes = [field.name for field in scope.schema.fields]
    unknown = wrong.must == NO_ATTRIBUTE and attributes and meant_by(tree.name, attributes) is None
    if not unknown or not _stands_as_text(tree) or len(_parts(tree)) > 1 or "'" in tree.name:
        return wrong
    return replace(wrong, do=f"{wrong.do} A text stands in quotes: '{tree.name}'.")


def _stands_as_text(tree: exp.Expr) -> bool:
    """Tell whether something is compared with a name, or a function takes it."""
    around = tree.parent
    if isinstance(around, exp.In):
        return around.this is not tree
    if isinstance(around, (exp.Anonymous, exp.DPipe)):
        return True
    others = [side for side in (around.this, around.expression) if side is not tree] if around else []
    return isinstance(around, _COMPARISONS) and not any(isinstance(side, _CONSTANTS) for side in others)


def no_list(values: Sequence[Expr]) -> Wrong:
    """What is wrong with ``x in y``, where y is a single value."""
    do = "Write for example kind in ('a', 'b')."
    return Wrong("must have a list in parentheses after in", values[0].type, do)
