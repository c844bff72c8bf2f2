"""Tests an event against the conditions of a rule, part by part."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_pace.core.expr import (
    Call,
    Column,
    Columns,
    EventColumns,
    Expr,
    Previous,
    conjunction,
    evaluate,
    evaluate_mask,
    walk,
)
from spark_pace.core.expr.canonical_text import canonical_text
from spark_pace.core.match.stream import Stream
from spark_pace.core.operate.span_patterns import SpanColumns
from spark_pace.core.plan.conditions import earlier_columns, mentions_open, mentions_previous
from spark_pace.core.plan.fold import StateMachine
from spark_pace.core.plan.members import names_of
from spark_pace.core.plan.rule import PredicateSpan, Rule
from spark_pace.reasons.answer_parts import ComponentTest, ConditionTest
from spark_pace.reasons.events_before import unknown, with_events_before, with_tests
from spark_pace.reasons.wording import plain


def filter_tests(rule: Rule, event: pa.Table) -> tuple[ConditionTest, ...]:
    """The tests against the parts of the filter; `event` has one row with the schema's attributes."""
    return () if rule.filter is None else _tests(rule.filter, EventColumns(event), beside=False)


def filter_tests_beside(rule: Rule, stream: Stream, row: int) -> tuple[ConditionTest, ...]:
    """The same tests of the event in a row of its key's stream before the filter."""
    if rule.filter is None:
        return ()
    nodes = earlier_columns([rule.filter])
    return _tests(rule.filter, SpanColumns(stream, nodes, np.array([row]), np.array([0])), beside=True)


def component_tests(rule: Rule, event: pa.Table) -> tuple[ComponentTest, ...]:
    """The tests against each component, and against the `open` and `close` of a span."""
    columns, pattern, behind = EventColumns(event), rule.pattern, _behind_absences(rule)
    ends = _ends(rule)
    tests = [_component(*one, columns, beside=False) for one in _conditions(rule)]
    tests = [_not_ended(one, ends.get(one.component), columns, beside=False) for one in tests]
    return tuple(
        with_tests(one, unknown(pattern)) if pattern is not None and one.component in behind else one
        for one in tests
    )


def passing(rule: Rule, events: pa.Table) -> dict[str, int]:
    """How many of the events pass the filter and each component, but negated ones.

    Components whose conditions read other events are left out.
    """
    columns = EventColumns(events)
    of_filter = (
        [] if rule.filter is None else [part for part in parts(rule.filter) if not _reads_others(part)]
    )
    return {
        name: int(np.count_nonzero(evaluate_mask(conjunction([*of_filter, condition]), columns)))
        for name, negated, condition in _conditions(rule)
        if not negated and not _reads_others(condition)
    }


def _behind_absences(rule: Rule) -> set[str]:
    """The component behind negated ones in first place, and its members; none if there are none of those."""
    if rule.pattern is None or not rule.pattern.absences:
        return set()
    return {*names_of(rule.pattern.components[0])}


def tests_beside(rule: Rule, stream: Stream, row: int, first: int) -> dict[str, ComponentTest]:
    """The tests against components whose conditions also read other events, by component.

    Args:
        rule: the rule.
        stream: a stream with the attributes that the conditions read.
        row: the event's row.
        first: the first row of the stream, or of the span.
    """
    found, pattern, behind, ends = {}, rule.pattern, _behind_absences(rule), _ends(rule)
    for name, negated, condition in _conditions(rule):
        conditions = [condition, *([ends[name]] if name in ends else [])]
        if any(map(_reads_others, conditions)) or name in behind:
            nodes = earlier_columns(conditions)
            columns = SpanColumns(stream, nodes, np.array([row]), np.array([first]))
            found[name] = _component(name, negated, condition, columns, beside=True)
            found[name] = _not_ended(found[name], ends.get(name), columns, beside=True)
            if pattern is not None and name in behind:
                found[name] = with_events_before(pattern, stream, row, found[name], first)
    return found


def _conditions(rule: Rule) -> list[tuple[str, bool, Expr]]:
    """(name, is negated, condition) of each component or move, and of a span's `open` and `close`.

    Those of a disjunction are its members'.
    """
    if isinstance(rule.fold, StateMachine):
        conditions = rule.fold.conditions
        return [
            (name, False, conjunction([] if move.condition is None else [conditions[move.condition]]))
            for name, move in zip(move_names(rule.fold), rule.fold.moves, strict=True)
        ]
    every = () if rule.pattern is None else rule.pattern.every
    told = list[tuple[str, bool, Expr]]()
    for component in every:
        told += [(one.name, component.negated, one.predicate) for one in component.members or [component]]
    if isinstance(rule.span, PredicateSpan):
        closes = conjunction([*parts(rule.span.close), *rule.span.close_where])
        told += [("span opens", False, rule.span.open), ("span closes", False, closes)]
    return told


def _ends(rule: Rule) -> dict[str, Expr]:
    """The condition at which the group of a component ends, by the component's name."""
    components = () if rule.pattern is None else rule.pattern.components
    return {one.name: one.until.predicate for one in components if one.until is not None}


def _not_ended(test: ComponentTest, until: Expr | None, columns: Columns, *, beside: bool) -> ComponentTest:
    """The test of a component, also that the event does not end its group."""
    if until is None:
        return test
    tests = _tests(until, columns, beside=beside)
    known = [one.holds for one in tests]
    holds = True if False in known else None if None in known else False
    values = {name: value for one in tests for name, value in one.values.items()}
    return with_tests(test, [ConditionTest(f"not until {canonical_text(until)}", holds, values)])


def move_names(machine: StateMachine) -> list[str]:
    """A name for each move: its number, and the states that it leads from and to."""
    names = []
    for number, move in enumerate(machine.moves, 1):
        every = len(move.sources) == len(machine.states)
        sources = "any" if every else " or ".join(machine.states[source] for source in move.sources)
        names.append(f"move {number}, from {sources} to {machine.states[move.target]}")
    return names


def _reads_others(condition: Expr) -> bool:
    return mentions_open(condition) or mentions_previous(condition)


def _component(name: str, negated: bool, predicate: Expr, columns: Columns, *, beside: bool) -> ComponentTest:
    tests = _tests(predicate, columns, beside=beside)
    known = [test.holds for test in tests]
    holds = False if False in known else None if None in known else True
    return ComponentTest(name, negated, holds, tests)


def _tests(condition: Expr, columns: Columns, *, beside: bool) -> tuple[ConditionTest, ...]:
    return tuple(_test(part, columns, beside=beside) for part in parts(condition))


def parts(condition: Expr) -> list[Expr]:
    """The conjuncts of a condition: what ``and`` joins, or the condition itself."""
    if isinstance(condition, Call) and condition.function == "and":
        return [part for argument in condition.arguments for part in parts(argument)]
    return [condition]


def _test(part: Expr, columns: Columns, *, beside: bool) -> ConditionTest:
    """Test one part; `beside` is True if the other events that it reads are known."""
    known = beside or not _reads_others(part)
    nodes = [node for node in walk(part) if isinstance(node, Column | Previous)]
    read = {canonical_text(node): node for node in nodes if known or not _reads_others(node)}
    values = {name: plain(evaluate(node, columns)[0].as_py()) for name, node in read.items()}
    holds = pc.fill_null(evaluate(part, columns), False)[0].as_py() if known else None
    return ConditionTest(canonical_text(part), holds, values)
