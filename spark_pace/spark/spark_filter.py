"""Writes conditions in Spark SQL, so that the JVM can drop events before they reach the core."""

from __future__ import annotations

from spark_pace.core.expr import Aggregate, Call, Column, Expr, Literal, Previous, decimal_digits

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
    """A condition in Spark SQL that is true where `condition` is true, and perhaps elsewhere.

    It only compares attributes with constants. Spark must not compute, because its results differ: its
    optimizer multiplies the constants of ``i * 5000000000 * 5000000000`` first, and it takes the parts of a
    time in the session's zone.

    Raises:
        ValueError: the condition reads components or aggregates, which a single event does not have.
    """
    if isinstance(condition, Call) and condition.function in ("and", "or"):
        return TESTS[condition.function].format(*map(to_spark_filter, condition.arguments))
    return plain_sql(condition) if _is_plain(condition) else "true"


def _is_plain(expr: Expr) -> bool:
    return not isinstance(expr, Call) or (
        (expr.function in TESTS or expr.function == "in") and all(map(_is_plain, expr.arguments))
    )


def plain_sql(expr: Expr) -> str:
    """The Spark SQL for an attribute (the column of its name), a constant, or a test of these."""
    if isinstance(expr, Literal):
        return _literal(expr)
    if isinstance(expr, Aggregate | Previous):
        raise ValueError(f"an aggregate or prev cannot be evaluated on a single event: {expr}")
    if isinstance(expr, Column):
        if expr.component is not None:
            raise ValueError(f"a column of a component cannot be evaluated on single events: {expr}")
        return "`" + expr.attribute.replace("`", "``") + "`"
    arguments = [plain_sql(argument) for argument in expr.arguments]
    return in_sql(expr, arguments) if expr.function == "in" else TESTS[expr.function].format(*arguments)


def in_sql(call: Call, arguments: list[str]) -> str:
    """The Spark SQL for ``x in (1, 2)``; for DOUBLEs, a chain of equalities.

    Spark looks up DOUBLEs in a long list by their bits, so that -0.0 would differ from 0.0.
    """
    if call.arguments[0].type == "DOUBLE":
        return "(" + " OR ".join(f"({arguments[0]} = {item})" for item in arguments[1:]) + ")"
    return f"({arguments[0]} IN ({', '.join(arguments[1:])}))"


def _literal(literal: Literal) -> str:
    value = literal.value
    if value is None:
        return "NULL" if literal.type == "NULL" else f"CAST(NULL AS {literal.type})"
    if literal.type == "STRING":
        # Spark replaces ${...} before it parses, so a dollar sign must be written as an escape
        return "'" + str(value).replace("\\", "\\\\").replace("'", "\\'").replace("$", "\\u0024") + "'"
    if literal.type == "BIGINT":
        return f"{value}L" if value != _LEAST else f"CAST('{_LEAST}' AS BIGINT)"
    if decimal_digits(literal.type):
        return f"CAST('{value}' AS {literal.type})"
    if literal.type == "DOUBLE":
        return f"CAST('{value!r}' AS DOUBLE)"
    if literal.type == "TIMESTAMP":
        return f"timestamp_micros({value}L)"
    if literal.type == "DATE":
        return f"date_from_unix_date({value})"
    return "true" if value else "false"
