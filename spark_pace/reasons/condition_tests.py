"""Tests an event against the conditions of a rule, part by part."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_pace.core.columns import OFFSET, SOURCE, Ints
from spark_pace.core.expr import (
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
from spark_pace.core.expr.canonical_text import canonical_duration, canonical_text
from spark_pace.core.match.row_patterns.rows import Rows, SlotColumns
from spark_pace.core.match.stream import Stream
from spark_pace.core.operate.span_patterns import SpanColumns
from spark_pace.core.plan.conditions import conjuncts, earlier_columns, of_other_events
from spark_pace.core.plan.fold import StateMachine
from spark_pace.core.plan.members import names_of
from spark_pace.core.plan.row_pattern import Computed, MatchNumber, Navigation, RowPattern, Slot
from spark_pace.core.plan.rule import Absence, PredicateSpan, Rule
from spark_pace.reasons.answer import ROWS_UNTOLD, ComponentTest, ConditionTest, Why, iso, plain
from spark_pace.reasons.rule_stream import OfKey
from spark_pace.reasons.stretch import columns_of

_SLOT = re.compile(r"`@(\d+)`")
Beside = tuple[Stream, int, int]  # a stream with all attributes; an event's row; where stream or span begin


def filter_tests(rule: Rule, event: pa.Table) -> tuple[ConditionTest, ...]:
    """The tests against the parts of the filter; `event` has one row with the schema's attributes."""
    return () if rule.filter is None else tuple(_tests(rule.filter, EventColumns(event), known=False))


def filter_tests_beside(rule: Rule, beside: Beside) -> tuple[ConditionTest, ...]:
    """The same tests of an event in its key's stream before the filter."""
    assert rule.filter is not None
    return tuple(_tests(rule.filter, _columns(beside, [rule.filter]), known=True))


def component_tests(rule: Rule, event: pa.Table) -> tuple[ComponentTest, ...]:
    """The tests against each component, and against the `open` and `close` of a span."""
    return tuple(_components(rule, EventColumns(event), None))


def tests_beside(rule: Rule, beside: Beside) -> dict[str, ComponentTest]:
    """The tests against components whose conditions also read other events, by component."""
    named = {name for name, _, condition in _conditions(rule) if of_other_events(condition)}
    named |= {name for name, until in _ends(rule).items() if of_other_events(until)}
    conditions = [*(condition for _, _, condition in _conditions(rule)), *_ends(rule).values()]
    tests = _components(rule, _columns(beside, conditions), beside)
    return {one.component: one for one in tests if one.component in named | _behind_absences(rule)}


def passing(rule: Rule, events: pa.Table) -> dict[str, int]:
    """How many of the events pass the filter and each component, but negated ones.

    Components whose conditions read other events are left out.
    """
    columns, filtered = EventColumns(events), [] if rule.filter is None else conjuncts(rule.filter)
    of_filter = [part for part in filtered if not of_other_events(part)]
    return {
        name: int(np.count_nonzero(evaluate_mask(conjunction([*of_filter, condition]), columns)))
        for name, negated, condition in _conditions(rule)
        if not negated and not of_other_events(condition)
    }


def _columns(beside: Beside, conditions: Sequence[Expr]) -> SpanColumns:
    stream, row, first = beside
    return SpanColumns(stream, earlier_columns(conditions), np.array([row]), np.array([first]))


def _components(rule: Rule, columns: Columns, beside: Beside | None) -> Iterator[ComponentTest]:
    """The tests against each component; `beside` is None if the other events are not known."""
    ends, behind = _ends(rule), _behind_absences(rule)
    for name, negated, condition in _conditions(rule):
        tests = list(_tests(condition, columns, known=beside is not None))
        if name in ends:
            parts = list(_tests(ends[name], columns, known=beside is not None))
            ended = _all(parts)
            values = {read: value for one in parts for read, value in one.values.items()}
            text = f"not until {canonical_text(ends[name])}"
            tests.append(ConditionTest(text, None if ended is None else not ended, values))
        if name in behind and rule.pattern is not None:
            first = rule.pattern.components[0].name
            tests += [_absence(one, first, beside) for one in rule.pattern.absences]
        yield ComponentTest(name, negated, _all(tests), tuple(tests))


def _all(tests: Sequence[ConditionTest]) -> bool | None:
    """Whether all hold; None if none fails but some are not known."""
    holds = [one.holds for one in tests]
    return False if False in holds else None if None in holds else True


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
        closes = conjunction([*conjuncts(rule.span.close), *rule.span.close_where])
        told += [("span opens", False, rule.span.open), ("span closes", False, closes)]
    return told


def _ends(rule: Rule) -> dict[str, Expr]:
    """The condition at which the group of a component ends, by the component's name."""
    components = () if rule.pattern is None else rule.pattern.components
    return {one.name: one.until.predicate for one in components if one.until is not None}


def _behind_absences(rule: Rule) -> set[str]:
    """The component behind negated ones in first place, and its members; none if there are none of those."""
    there = rule.pattern is not None and rule.pattern.absences
    return {*names_of(rule.pattern.components[0])} if rule.pattern is not None and there else set()


def move_names(machine: StateMachine) -> list[str]:
    """A name for each move: its number, and the states that it leads from and to."""
    names = []
    for number, move in enumerate(machine.moves, 1):
        every = len(move.sources) == len(machine.states)
        sources = "any" if every else " or ".join(machine.states[source] for source in move.sources)
        names.append(f"move {number}, from {sources} to {machine.states[move.target]}")
    return names


def _tests(condition: Expr, columns: Columns, *, known: bool) -> Iterator[ConditionTest]:
    """Test each part; `known` is True if the other events that it reads are known."""
    for part in conjuncts(condition):
        knows = known or not of_other_events(part)
        nodes = [node for node in walk(part) if isinstance(node, Column | Previous)]
        read = {canonical_text(node): node for node in nodes if knows or not of_other_events(node)}
        values = {name: plain(evaluate(node, columns)[0].as_py()) for name, node in read.items()}
        holds = bool(evaluate_mask(part, columns)[0]) if knows else None
        yield ConditionTest(canonical_text(part), holds, values)


# ---------------------------------------------------------------- negated components in first place


def _absence(absence: Absence, first: str, beside: Beside | None) -> ConditionTest:
    """The test that no event before forbids an event to be `first`; its value is the last one that does."""
    name = absence.component.name
    near = "" if absence.within_us is None else f" within {canonical_duration(absence.within_us)}"
    where = f" where {canonical_text(conjunction(absence.where))}" if absence.where else ""
    text = f"not {name}{near}{where}"
    if beside is None:
        return ConditionTest(text, None, {})
    stream, found = beside[0], _forbidding(absence, first, beside)
    if not len(found):
        return ConditionTest(text, True, {})
    last = int(found[-1])
    source, offset = stream.events[SOURCE][last].as_py(), stream.events[OFFSET][last].as_py()
    told = f"#{stream.seq[last]}, {source}:{offset} at {iso(stream.time[last])}"
    return ConditionTest(text, False, {name: told})


def _forbidding(absence: Absence, first: str, beside: Beside) -> Ints:
    """int64[m], the rows of the events that forbid the event to stand for the component `first`."""
    stream, row, start = beside
    rows = np.arange(start, row)
    if absence.within_us is not None:
        rows = rows[stream.time[rows] >= stream.time[row] - absence.within_us]
    predicate = absence.component.predicate
    columns = SpanColumns(stream, earlier_columns([predicate]), rows, np.full(len(rows), start))
    rows = rows[evaluate_mask(predicate, columns)]
    pairs = np.column_stack([rows, np.full_like(rows, row)])
    both = columns_of(stream, {absence.component.name: (0,), first: (1,)}, pairs, np.arange(2) + 0 * pairs)
    return rows[evaluate_mask(conjunction(absence.where), both)]


# ---------------------------------------------------------------- row patterns


def rows_told(rows: RowPattern, own: OfKey, why: Why) -> Why:
    """Add the tests of the conditions that do not read the match so far, and say what is not told."""
    known = Rows(own.stream.events, np.array([0, own.stream.rows], np.int64))
    told = []
    for name, one in zip(rows.variables, rows.conditions, strict=True):
        tests = [_of_rows(part, rows.variables, known, own.row) for part in one.fixed]
        tests += [ConditionTest(_text(part, rows.variables), None, {}) for part in one.of_match]
        told.append(ComponentTest(name, False, _all(tests), tuple(tests)))
    return replace(why, components=tuple(told), untold=(ROWS_UNTOLD,))


def _of_rows(part: Computed, names: Sequence[str], known: Rows, row: int) -> ConditionTest:
    columns, values = [], dict[str, Any]()
    for slot in part.slots:
        assert isinstance(slot, Navigation) and slot.of is not None, slot
        columns.append(known.shifted(slot.of, slot.shift))
        values[_slot_text(slot, names)] = plain(columns[-1][row].as_py())
    holds = pc.fill_null(evaluate(part.expr, SlotColumns(known.rows, columns)), False)[row].as_py()
    return ConditionTest(_text(part, names), holds, values)


def _text(part: Computed, names: Sequence[str]) -> str:
    """The condition with what slots read in place of their numbers."""
    return _SLOT.sub(lambda found: _slot_text(part.slots[int(found[1])], names), canonical_text(part.expr))


def _slot_text(slot: Slot, names: Sequence[str]) -> str:
    if isinstance(slot, MatchNumber):
        return "match_number()"
    rows = "" if slot.variables is None else "|".join(names[one] for one in slot.variables) + "."
    if not isinstance(slot, Navigation):
        return f"{slot.function}({rows}{'*' if slot.of is None else canonical_text(slot.of)})"
    text = f"classifier({rows[:-1]})" if slot.of is None else f"{rows}{canonical_text(slot.of)}"
    if slot.first or slot.back:
        text = f"{'first' if slot.first else 'last'}({text}{f', {slot.back}' if slot.back else ''})"
    if not slot.shift:
        return text
    return f"{'prev' if slot.shift < 0 else 'next'}({text}, {abs(slot.shift)})"
