"""Conditions that the JVM can test before events reach the core, as Spark SQL."""

from __future__ import annotations

from spark_pace.core.expr import Aggregate, Call, Column, Expr, Literal

_LEAST = -(2**63)

TESTS = {
    "and": "({} AND {})",
    "or": "({} OR {})",
    "not": "(NOT {})",
    "is_null": "({} IS NULL)",
    "=": "({} = {})",
    "<>": "({} <> {})",
    "<": "({} < {})",
    ">": "({} > {})",
    "<=": "({} <= {})",
    ">=": "({} >= {})",
    "<=>": "({} <=> {})",
    "like": "({} LIKE {})",
    "startswith": "startswith({}, {})",
    "endswith": "endswith({}, {})",
    "contains": "contains({}, {})",
}


def to_spark_filter(condition: Expr) -> str:
    """A condition in Spark SQL that is true wherever `condition` is, and perhaps elsewhere.

    Only tests of attributes and constants are Spark's. What is computed is not: the optimizer puts the constants of
    ``i * 5000000000 * 5000000000`` together before it knows `i`, and parts of a time are those of the session's zone.

    Raises:
        ValueError: the condition names components or aggregates, which one event does not have.
    """
    if isinstance(condition, Call) and condition.function in ("and", "or"):
        return TESTS[condition.function].format(*map(to_spark_filter, condition.arguments))
    return plain_sql(condition) if _is_plain(condition) else "true"


def _is_plain(expr: Expr) -> bool:
    return not isinstance(expr, Call) or (
        (expr.function in TESTS or expr.function == "in") and all(map(_is_plain, expr.arguments))
    )


def plain_sql(expr: Expr) -> str:
    """Attributes, constants, and tests of them as Spark SQL text over columns that bear the attributes' names."""
    if isinstance(expr, Literal):
        return _literal(expr)
    if isinstance(expr, Aggregate):
        raise ValueError(f"an aggregate cannot be evaluated on single events: {expr}")
    if isinstance(expr, Column):
        if expr.component is not None:
            raise ValueError(f"a column of a component cannot be evaluated on single events: {expr}")
        return "`" + expr.attribute.replace("`", "``") + "`"
    arguments = [plain_sql(argument) for argument in expr.arguments]
    return in_sql(expr, arguments) if expr.function == "in" else TESTS[expr.function].format(*arguments)


def in_sql(call: Call, arguments: list[str]) -> str:
    """``x in (1, 2)``: Spark looks long lists of DOUBLEs up by their bits, so that -0.0 is not 0.0; equalities do not."""
    if call.arguments[0].type == "DOUBLE":
        return "(" + " OR ".join(f"({arguments[0]} = {item})" for item in arguments[1:]) + ")"
    return f"({arguments[0]} IN ({', '.join(arguments[1:])}))"


def _literal(literal: Literal) -> str:
    value = literal.value
    if value is None:
        return "NULL" if literal.type == "NULL" else f"CAST(NULL AS {literal.type})"
    if literal.type == "STRING":
        # Spark replaces ${...} before it parses, so a dollar sign must not show
        return "'" + str(value).replace("\\", "\\\\").replace("'", "\\'").replace("$", "\\u0024") + "'"
    if literal.type == "BIGINT":
        return f"{value}L" if value != _LEAST else f"CAST('{_LEAST}' AS BIGINT)"
    if literal.type == "DOUBLE":
        return f"CAST('{value!r}' AS DOUBLE)"
    if literal.type == "TIMESTAMP":
        return f"timestamp_micros({value}L)"
    if literal.type == "DATE":
        return f"date_from_unix_date({value})"
    return "true" if value else "false"
