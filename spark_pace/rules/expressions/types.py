"""Types of expressions: which go together, and the conversions put in where they differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from spark_pace.core.expr import Call, Expr, ExprType, Literal


@dataclass(frozen=True)
class Wrong:
    """Why an expression cannot be compiled: the parts of a problem."""

    must: str
    got: str
    do: str


_WIDER: dict[frozenset[ExprType], ExprType] = {
    frozenset({"BIGINT", "DOUBLE"}): "DOUBLE",
    frozenset({"DATE", "TIMESTAMP"}): "TIMESTAMP",
}


def common_type(types: Sequence[ExprType]) -> ExprType | None:
    """The type to which all of `types` convert without a word; None where there is no such type."""
    found: ExprType = "NULL"
    for kind in types:
        if found in (kind, "NULL"):
            found = kind
        elif kind != "NULL":
            wider = _WIDER.get(frozenset({found, kind}))
            if wider is None:
                return None
            found = wider
    return found


def convert(expr: Expr, target: ExprType) -> Expr:
    """The expression as `target`, which `common_type` has allowed; constants are converted here and now."""
    if expr.type == target:
        return expr
    if isinstance(expr, Literal):
        if expr.value is None:
            return Literal(None, target)
        if target == "DOUBLE":
            return Literal(float(expr.value), target)
    return Call("cast", (expr,), target)


def unify(exprs: Sequence[Expr], fallback: ExprType) -> tuple[Expr, ...] | Wrong:
    """All expressions as one type; `fallback` where every one of them is a bare null."""
    kind = common_type([expr.type for expr in exprs])
    if kind is None:
        return Wrong(
            "must be values of one type", show_types(exprs), "Compare or mix like with like, or use cast."
        )
    target = fallback if kind == "NULL" else kind
    return tuple(convert(expr, target) for expr in exprs)


def show_types(exprs: Sequence[Expr]) -> str:
    """The types in order, once each: ``STRING and BIGINT``."""
    names = list(dict.fromkeys(expr.type for expr in exprs))
    return " and ".join(names)
