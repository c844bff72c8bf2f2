"""Expressions as Spark SQL, for conditions that the JVM evaluates before events reach the core.

The text means in Spark (session time zone UTC) what `spark_pace.core.expr.evaluate` computes.
"""

from __future__ import annotations

from spark_pace.core.expr import Aggregate, Call, Column, Expr, Literal

_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_LEAST = -(2**63)

_TEMPLATES = {
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
    "+": "try_add({}, {})",
    "-": "try_subtract({}, {})",
    "*": "try_multiply({}, {})",
    "/": "try_divide({}, {})",
    "%": "try_mod({}, {})",
    "like": "({} LIKE {})",
    "length": "CAST(length({}) AS BIGINT)",
    "lower": f"translate({{}}, '{_LETTERS.upper()}', '{_LETTERS}')",
    "upper": f"translate({{}}, '{_LETTERS}', '{_LETTERS.upper()}')",
}
_NARROW = ("year", "month", "day", "dayofweek", "hour", "minute", "second")  # INT in Spark


def to_spark_sql(expr: Expr) -> str:
    """The expression as Spark SQL text over columns that bear the attributes' names.

    Raises:
        ValueError: the expression names components or aggregates, which one event does not have.
    """
    if isinstance(expr, Literal):
        return _literal(expr)
    if isinstance(expr, Aggregate):
        raise ValueError(f"an aggregate cannot be evaluated on single events: {expr}")
    if isinstance(expr, Column):
        if expr.component is not None:
            raise ValueError(f"a column of a component cannot be evaluated on single events: {expr}")
        return "`" + expr.attribute.replace("`", "``") + "`"
    return _call(expr, [to_spark_sql(argument) for argument in expr.arguments])


def _call(call: Call, arguments: list[str]) -> str:
    name = call.function
    if name == "cast":
        return f"try_cast({arguments[0]} AS {call.type})"
    if name == "case":
        branches = [f"WHEN {arguments[i]} THEN {arguments[i + 1]}" for i in range(0, len(arguments) - 1, 2)]
        return f"CASE {' '.join(branches)} ELSE {arguments[-1]} END"
    if name == "in":
        return _in(call, arguments)
    if name in ("negate", "abs"):
        return _signed(call, arguments[0])
    if name in _TEMPLATES:
        return _TEMPLATES[name].format(*arguments)
    text = f"{name}({', '.join(arguments)})"
    return f"CAST({text} AS BIGINT)" if name in _NARROW else text


def _in(call: Call, arguments: list[str]) -> str:
    """Spark looks long lists of DOUBLEs up by their bits, so that -0.0 is not 0.0; equalities do not."""
    if call.arguments[0].type == "DOUBLE":
        return "(" + " OR ".join(f"({arguments[0]} = {item})" for item in arguments[1:]) + ")"
    return f"({arguments[0]} IN ({', '.join(arguments[1:])}))"


def _signed(call: Call, value: str) -> str:
    """Spark has no try_negative and no try_abs: the least BIGINT would raise an error."""
    if call.type == "DOUBLE":
        return f"(- {value})" if call.function == "negate" else f"abs({value})"
    if call.function == "negate":
        return f"try_subtract(0L, {value})"
    return f"try_cast(abs(CAST({value} AS DECIMAL(20, 0))) AS BIGINT)"


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
