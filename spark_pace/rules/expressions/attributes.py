"""The types of attributes, and of aggregates over an attribute of many events."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

from spark_pace.core.expr import Aggregate, Expr, ExprType, decimal_digits, is_single
from spark_pace.core.expr.nodes import AggregateName
from spark_pace.core.plan.rule import EventSchema
from spark_pace.rules.document.report import nearest, quote
from spark_pace.rules.expressions.digits import total_type
from spark_pace.rules.expressions.types import Wrong

NO_ATTRIBUTE = "must name an attribute of the events"
ONE_VALUE = "Name an attribute of another type, such as user.id of a STRUCT user."
_OF_NUMBERS = ("sum", "avg", "stddev", "median", "percentile")
_RESULTS: dict[str, ExprType] = {
    **dict.fromkeys(("avg", "stddev", "median", "percentile"), "DOUBLE"),
    **dict.fromkeys(("count", "count_distinct", "approx_count_distinct"), "BIGINT"),
}
AGGREGATES = tuple(name for name in get_args(AggregateName) if name != "count_distinct")


def use_one_of(names: Sequence[str]) -> str:
    """The advice to use one of the aggregates."""
    return f"use {', '.join(names[:-1])} or {names[-1]}."


OF_SPANS_ALONE = "approx_count_distinct"
USE_AGGREGATES = use_one_of([name for name in AGGREGATES if name != OF_SPANS_ALONE])


def find_type(schema: EventSchema, attribute: str) -> ExprType | Wrong:
    """The declared type of an attribute."""
    types = {field.name: field.type for field in schema.fields}
    if attribute in types:
        return types[attribute]
    return Wrong(NO_ATTRIBUTE, quote(attribute), nearest(attribute, types))


def over_group(
    schema: EventSchema, function: str, component: str | None, attribute: str | None = None
) -> Aggregate | Wrong:
    """The aggregate of an attribute, or the count of the events."""
    if attribute is None:
        return Aggregate("count", component, None, "BIGINT")
    kind = find_type(schema, attribute)
    if isinstance(kind, Wrong):
        return kind
    if not is_single(kind):
        return Wrong(
            f"must be of single values inside {shown(function)}", f"{quote(attribute)}, {kind}", ONE_VALUE
        )
    return over_values(function, component, attribute, kind)


# for those who count the events of which something is true
COUNTED_IF = "Write count(case when condition then 1 end)."


def shown(function: str) -> str:
    """An aggregate as it is written."""
    return "count(distinct ...)" if function == "count_distinct" else function


def over_values(
    function: str, component: str | None, name: str, kind: ExprType, of: Expr | None = None
) -> Aggregate | Wrong:
    """The aggregate of the values of a column, which are of a type without parts.

    Args:
        function: its name, or "count_distinct".
        component: the component that stands for a group; None: the aggregate is of a span.
        name: the attribute, or the name of the column that `of` is computed into.
        kind: the type of the values.
        of: what is computed of each event.
    """
    digits = decimal_digits(kind)
    if function == OF_SPANS_ALONE and component is not None:
        do = "Write count(distinct x): a group is small."
        return Wrong("must be an aggregate of components", f"{function}(...)", do)
    if function in ("sum", "avg") and digits:  # an average is made of the sum and the count; see `averaged`
        return Aggregate(function, component, name, total_type(*digits) if function == "sum" else kind, of)  # type: ignore[arg-type]
    if function in _OF_NUMBERS and kind not in ("BIGINT", "DOUBLE"):
        types = "BIGINT, DOUBLE or DECIMAL" if function in ("sum", "avg") else "BIGINT or DOUBLE"
        do = f"Name an attribute of type {types}."
        if digits:
            do = f"Write {function}(cast(x as DOUBLE))."
        if kind == "BOOLEAN" and function in ("sum", "avg"):
            do = COUNTED_IF if function == "sum" else "Write avg(case when condition then 1 else 0 end)."
        return Wrong(f"must be a number inside {function}", kind, do)
    if function in ("min", "max", "mode") and kind == "BOOLEAN":
        return Wrong(f"must be a number, text or a time inside {function}", kind, "Name another attribute.")
    result = f"ARRAY<{kind}>" if function == "collect_list" else _RESULTS.get(function, kind)
    return Aggregate(function, component, name, result, of)  # type: ignore[arg-type]
