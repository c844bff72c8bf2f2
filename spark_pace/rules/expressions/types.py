"""Which types of expressions go together, the conversions put in where they differ, and limits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from spark_pace.core.expr import Call, Expr, ExprType, Literal, decimal_digits

MAX_NODES = 10_000
MAX_JOINED = 100  # texts that `concat` and `||` put together, so that no result is far longer than attributes
MAX_BRANCHES = 100  # of `case`: each holds a column while it is computed
MAX_DIGITS = 38  # of a DECIMAL
EXACT_DIGITS = 15  # the DOUBLE nearest to a number with so many digits, or fewer, tells these digits again
BIGINT_DIGITS = (20, 0)  # of the DECIMAL that Spark makes of a BIGINT: all, and behind the point
_LIKE_WITH_LIKE = "Compare or mix like with like, or use cast."


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


def constant_text(expr: Expr) -> str | None:
    """The text that a constant is; None for all else. The digits of a DECIMAL are no text."""
    if isinstance(expr, Literal) and expr.type == "STRING" and isinstance(expr.value, str):
        return expr.value
    return None


def common_type(types: Sequence[ExprType]) -> ExprType | None:
    """The type to which all of `types` convert without a cast; None where there is no such type."""
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
    """The expression converted to `target`, which `unify` has allowed; a constant is converted at once."""
    if expr.type == target:
        return expr
    if isinstance(expr, Literal):
        if expr.value is None:
            return Literal(None, target)
        if target == "DOUBLE":
            return Literal(float(expr.value), target)
        if decimal_digits(target):
            return Literal(f"{Decimal(str(expr.value)):f}", target)
    return Call("cast", (expr,), target)


def unify(exprs: Sequence[Expr], fallback: ExprType) -> tuple[Expr, ...] | Wrong:
    """All expressions converted to one type, or why there is none; `fallback` if all are bare nulls."""
    types = [expr.type for expr in exprs]
    kind = _common_decimal(exprs) if any(map(decimal_digits, types)) else common_type(types)
    if isinstance(kind, Wrong):
        return kind
    if kind is None:
        return Wrong("must be values of one type", show_types(exprs), _LIKE_WITH_LIKE)
    target = fallback if kind == "NULL" else kind
    return tuple(convert(expr, target) for expr in exprs)


def _common_decimal(exprs: Sequence[Expr]) -> ExprType | Wrong:
    """The DECIMAL that holds every value of some expressions, by Spark's rules; or why there is none."""
    whole = scale = 0
    for expr in exprs:
        if expr.type == "NULL":
            continue
        digits = decimal_digits(expr.type)
        if digits is None and isinstance(expr, Literal) and expr.type in ("BIGINT", "DOUBLE"):
            found = digits_of_constant(expr)
            if isinstance(found, Wrong):
                return found
            digits = found
        elif digits is None and expr.type == "BIGINT":
            digits = BIGINT_DIGITS
        if digits is None:
            do = "Write cast(... as DOUBLE) around the DECIMAL." if expr.type == "DOUBLE" else _LIKE_WITH_LIKE
            return Wrong("must be values of one type", show_types(exprs), do)
        whole, scale = max(whole, digits[0] - digits[1]), max(scale, digits[1])
    if whole + scale > MAX_DIGITS:
        must = f"must have at most {MAX_DIGITS} digits together, before and behind the point"
        do = "Write cast(... as DECIMAL(p,s)) with fewer digits, or cast(... as DOUBLE)."
        return Wrong(must, show_types(exprs), do)
    return f"DECIMAL({whole + scale},{scale})"


def digits_of_constant(number: Literal) -> tuple[int, int] | Wrong:
    """The digits of a constant beside a DECIMAL, in all and behind the point, as it is written."""
    if number.type == "DOUBLE" and len(Decimal(str(number.value)).as_tuple().digits) > EXACT_DIGITS:
        got, do = str(number.value), f"Write cast('{number.value}' as DECIMAL(p,s)) for more digits."
        return Wrong(f"must be a constant of at most {EXACT_DIGITS} digits beside a DECIMAL", got, do)
    digits = constant_digits(str(number.value))
    if digits[0] > MAX_DIGITS:
        do = "Write cast(... as DOUBLE) around the DECIMAL."
        return Wrong(
            f"must be a constant of at most {MAX_DIGITS} digits beside a DECIMAL", str(number.value), do
        )
    return digits


def constant_digits(text: str) -> tuple[int, int]:
    """How many digits a number has in all, and behind the point, as `decimal_digits` counts them."""
    _, digits, exponent = Decimal(text).as_tuple()
    scale = max(0, -int(exponent))
    return max(len(digits) + max(0, int(exponent)), scale, 1), scale


def show_types(exprs: Sequence[Expr]) -> str:
    """The types in order, once each: ``STRING and BIGINT``."""
    names = list(dict.fromkeys(expr.type for expr in exprs))
    return " and ".join(names)


def excess_of(expr: Expr) -> str:
    """The limit that the expression goes beyond, in words; empty if it goes beyond none.

    An argument that ``nullif`` and others use twice counts twice.
    """
    nodes, joined, waiting = 0, 0, [expr]
    while waiting:
        node = waiting.pop()
        nodes += 1
        if isinstance(node, Call):
            waiting += node.arguments
            joined += len(node.arguments) if node.function == "concat" else 0
            if node.function == "case" and len(node.arguments) > 2 * MAX_BRANCHES + 1:
                return f"at most {MAX_BRANCHES} branches of one case"
        if nodes > MAX_NODES:
            return f"at most {MAX_NODES} operations"
        if joined > MAX_JOINED:
            return f"at most {MAX_JOINED} texts put together"
    return ""
