"""The operators of the expression language: comparisons, connectives, arithmetic."""

from __future__ import annotations

from collections.abc import Sequence

from spark_pace.core.expr import Call, Column, Expr, Literal, Previous
from spark_pace.core.plan.lower_rules import RULE
from spark_pace.rules.document.report import nearest, quote
from spark_pace.rules.expressions.digits import computed_decimal, has_decimal
from spark_pace.rules.expressions.functions import arithmetic, case, require_type
from spark_pace.rules.expressions.intervals import Interval, compared
from spark_pace.rules.expressions.types import Wrong, convert, unify


def connect(name: str, values: list[Expr]) -> Expr | Wrong:
    """Conditions joined by ``and`` or ``or``, as a balanced tree."""
    for value in values:
        if wrong := require_type(value, "a condition"):
            return wrong
    if len(values) == 1:
        return convert(values[0], "BOOLEAN")
    half = (len(values) + 1) // 2
    left, right = connect(name, values[:half]), connect(name, values[half:])
    if isinstance(left, Wrong) or isinstance(right, Wrong):
        return left
    return Call(name, (left, right), "BOOLEAN")


def comparison(name: str, values: Sequence[Expr | Interval]) -> Expr | Wrong:
    """Two values, or two lengths of time, compared."""
    plain = [value for value in values if not isinstance(value, Interval)]
    of_one_kind = plain if len(plain) == len(values) else compared(values)
    unified = of_one_kind if isinstance(of_one_kind, Wrong) else unify(of_one_kind, "BIGINT")
    if isinstance(unified, Wrong):
        return unified
    if unified[0].type == "BOOLEAN" and name not in ("=", "<>", "<=>"):
        return Wrong("must compare numbers, text or times", "BOOLEAN", "Use =, and, or, not for conditions.")
    return Call(name, unified, "BOOLEAN")


def no_rule(values: Sequence[Expr | Interval], rules: Sequence[str]) -> Wrong | None:
    """What is wrong if the first value is compared with others, and no match can have such a name of a rule.

    Args:
        values: the values.
        rules: the names in ``from``; none where the events are no matches.
    """
    pairs = [pair for other in values[1:] for pair in ((values[0], other), (other, values[0]))]
    for one, other in pairs if rules else ():
        if isinstance(one, (Column, Previous)) and one.attribute == RULE and isinstance(other, Literal):
            name = other.value
            if isinstance(name, str) and name not in rules:
                return Wrong(
                    f'must compare "{RULE}" with a name in "from"', quote(name), nearest(name, rules)
                )
    return None


def case_of(subject: Expr, tests: Sequence[Expr], values: Sequence[Expr]) -> Expr | Wrong:
    """``case subject when test then value … else value end``."""
    conditions: list[Expr] = []
    for test in tests:
        condition = comparison("=", [subject, test])
        if isinstance(condition, Wrong):
            return condition
        conditions.append(condition)
    return case(conditions, values[:-1], values[-1])


def computed(name: str, values: Sequence[Expr]) -> Expr | Wrong:
    """Arithmetic; ``/`` of numbers that are no DECIMALs always works on DOUBLEs."""
    if has_decimal(values):
        return computed_decimal(name, values)
    built = arithmetic(name, values, "DOUBLE" if name == "/" else "BIGINT")
    if name == "/" and isinstance(built, Call):
        return Call("/", tuple(convert(value, "DOUBLE") for value in built.arguments), "DOUBLE")
    return built
