"""Expressions: frozen trees, evaluated on whole Arrow columns with Spark's null logic.

`spark_pace.rules.expressions.compile` compiles text to these trees; the core evaluates them.
"""

from spark_pace.core.expr.evaluation import Columns, EventColumns, evaluate, evaluate_mask
from spark_pace.core.expr.nodes import (
    ARROW_TYPES,
    STRUCT,
    Aggregate,
    Call,
    Column,
    Expr,
    ExprType,
    Literal,
    Previous,
    TypeName,
    array_element,
    conjunction,
    decimal_digits,
    is_single,
    of_component,
    renamed,
    transform,
    walk,
)

__all__ = [
    "ARROW_TYPES",
    "STRUCT",
    "Aggregate",
    "Call",
    "Column",
    "Columns",
    "EventColumns",
    "Expr",
    "ExprType",
    "Literal",
    "Previous",
    "TypeName",
    "array_element",
    "conjunction",
    "decimal_digits",
    "evaluate",
    "evaluate_mask",
    "is_single",
    "of_component",
    "renamed",
    "transform",
    "walk",
]
