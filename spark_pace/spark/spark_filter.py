"""Writes conditions as Spark SQL, which the JVM can test before events reach the core."""

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
    """A condition in Spark SQL that is true wherever `condition` is true, and perhaps elsewhere.

    Spark tests only attributes and constants. It must not compute: its optimizer multiplies the constants of
    ``i * 5000000000 * 5000000000`` before it knows `i`, and takes the parts of a time in the session's zone.

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
    """An attribute, a constant, or a test of them in Spark SQL; each attribute is a column of its name."""
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
    """``x in (1, 2)`` in Spark SQL; with DOUBLEs as equalities.

    Spark looks DOUBLEs up in a long list by their bits, so that -0.0 would not be 0.0.
    """
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
    if decimal_digits(literal.type):
        return f"CAST('{value}' AS {literal.type})"
    if literal.type == "DOUBLE":
        return f"CAST('{value!r}' AS DOUBLE)"
    if literal.type == "TIMESTAMP":
        return f"timestamp_micros({value}L)"
    if literal.type == "DATE":
        return f"date_from_unix_date({value})"
    return "true" if value else "false"
