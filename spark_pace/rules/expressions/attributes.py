"""The types of attributes, and of aggregates over an attribute of many events."""

from __future__ import annotations

from spark_pace.core.expr import Aggregate, ExprType, decimal_digits, is_single
from spark_pace.core.plan.rule import EventSchema
from spark_pace.rules.document.report import meant_by, nearest, quote
from spark_pace.rules.expressions.digits import MORE_DIGITS
from spark_pace.rules.expressions.types import MAX_DIGITS, Wrong

ONE_VALUE = "Name an attribute of another type, such as user.id of a STRUCT user."
USE_AGGREGATES = "use count, sum, avg, min, max, first or last."


def find_type(schema: EventSchema, attribute: str) -> ExprType | Wrong:
    """The declared type of an attribute."""
    types = {field.name: field.type for field in schema.fields}
    if attribute in types:
        return types[attribute]
    advice = nearest(attribute, types)
    if types and meant_by(attribute, tuple(types)) is None and "'" not in attribute:
        advice += f" A text stands in quotes: '{attribute}'."
    return Wrong("must name an attribute of the events", quote(attribute), advice)


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
        return Wrong(f"must be of single values inside {function}", f"{quote(attribute)}, {kind}", ONE_VALUE)
    if function == "stddev" and component is not None:
        must = "must be an aggregate of components"
        return Wrong(must, quote(f"{function}({component}.{attribute})"), f"U{USE_AGGREGATES[1:]}")
    digits = decimal_digits(kind)
    if function in ("sum", "avg") and digits:
        return _decimal_over_group(function, component, attribute, digits)
    if function in ("sum", "avg", "stddev") and kind not in ("BIGINT", "DOUBLE"):
        types = "BIGINT or DOUBLE" if function == "stddev" else "BIGINT, DOUBLE or DECIMAL"
        return Wrong(f"must be a number inside {function}", kind, f"Name an attribute of type {types}.")
    if function in ("min", "max") and kind == "BOOLEAN":
        return Wrong(f"must be a number, text or a time inside {function}", kind, "Name another attribute.")
    return Aggregate(function, component, attribute, "DOUBLE" if function in ("avg", "stddev") else kind)  # type: ignore[arg-type]


def _decimal_over_group(
    function: str, component: str | None, attribute: str, digits: tuple[int, int]
) -> Aggregate | Wrong:
    """The sum of a DECIMAL has ten digits more, as in Spark, which billions of events cannot overflow.

    An average has the type of the values here: `averaged` makes it of the sum and the count.
    """
    precision, scale = digits
    if precision + MORE_DIGITS > MAX_DIGITS:
        must = f"must be a DECIMAL of at most {MAX_DIGITS - MORE_DIGITS} digits inside {function}"
        return Wrong(must, f"DECIMAL({precision},{scale})", "Declare fewer digits in the schema.")
    if function == "avg":
        return Aggregate("avg", component, attribute, f"DECIMAL({precision},{scale})")
    return Aggregate("sum", component, attribute, f"DECIMAL({precision + MORE_DIGITS},{scale})")
