"""What an event satisfies by itself: the filter and the components, part by part."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from spark_pace.core.expr import Call, Column, EventColumns, Expr, Previous, evaluate, walk
from spark_pace.core.expr.render import to_text
from spark_pace.core.plan.rule import PredicateSpan, Rule
from spark_pace.io.replaying.why.answer import ComponentTest, ConditionTest
from spark_pace.io.replaying.why.wording import plain


def filter_tests(rule: Rule, event: pa.Table) -> tuple[ConditionTest, ...]:
    """The parts of the filter; `event` has one row with the schema's attributes."""
    return () if rule.filter is None else _tests(rule.filter, event)


def component_tests(rule: Rule, event: pa.Table) -> tuple[ComponentTest, ...]:
    """The parts of what each component demands of one event, and of what opens and closes a span."""
    told = [(one.name, one.negated, one.predicate) for one in rule.pattern.components] if rule.pattern else []
    if isinstance(rule.span, PredicateSpan):
        told += [("span opens", False, rule.span.open), ("span closes", False, rule.span.close)]
    found = []
    for name, negated, predicate in told:
        tests = _tests(predicate, event)
        known = [test.holds for test in tests]
        holds = None if None in known else all(known)
        found.append(ComponentTest(name, negated, False if False in known else holds, tests))
    return tuple(found)


def _tests(condition: Expr, event: pa.Table) -> tuple[ConditionTest, ...]:
    return tuple(_test(part, event) for part in parts(condition))


def parts(condition: Expr) -> list[Expr]:
    """What is joined by ``and``."""
    if isinstance(condition, Call) and condition.function == "and":
        return [part for argument in condition.arguments for part in parts(argument)]
    return [condition]


def _test(part: Expr, event: pa.Table) -> ConditionTest:
    columns = [node for node in walk(part) if isinstance(node, Column) and node.component is None]
    names = dict.fromkeys(node.attribute for node in columns)
    values = {name: plain(event[name][0].as_py()) for name in names}
    if any(isinstance(node, Previous) or getattr(node, "component", None) for node in walk(part)):
        return ConditionTest(to_text(part), None, values)
    holds = pc.fill_null(evaluate(part, EventColumns(event)), False)[0].as_py()
    return ConditionTest(to_text(part), holds, values)
