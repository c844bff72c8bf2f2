"""Expressions as text for people. It may change with every release: nothing that is stored rests on it."""

from __future__ import annotations

from spark_pace.core.expr.canonical import canonical_text
from spark_pace.core.expr.nodes import Expr


def to_text(expr: Expr) -> str:
    """The expression as a rule file could write it."""
    return canonical_text(expr)
