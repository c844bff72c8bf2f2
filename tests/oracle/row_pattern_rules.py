"""The matches of a rule with a row pattern, by plain backtracking: the frozen pattern as terms of the oracle.

Only what golden cases use is read: comparisons, sums, ``and`` and ``or``, and nothing of rows behind.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

from spark_pace.core.expr import Call, Column, Expr, Literal
from spark_pace.core.plan.row_pattern import (
    Alternatives,
    Computed,
    Excluded,
    MatchNumber,
    Node,
    Repetition,
    RowPattern,
    Slot,
    Start,
    Summary,
    Variable,
)
from spark_pace.core.plan.row_pattern import Sequence as Parts
from spark_pace.core.plan.rule import Rule
from tests.oracle.row_patterns import Case, Term, decisions, matches_of, value
from tests.oracle.stream import Placed, Position

_TURNED = {">": "<", ">=": "<="}


@dataclass(frozen=True)
class Found:
    """A match.

    `told` are the `seq` of its last event, the time of its first one, its own time, and its fields. An empty
    match has the event at which it was sought as both. `events` are its events by their variables.
    """

    told: tuple[int, int, int, dict[str, Any]]
    events: list[tuple[str, Placed]]
    decided: Position


def found_rows(rule: Rule, stream: Sequence[Placed], end: Position, greatest: int) -> Iterator[Found]:
    """The matches of a key's stream.

    Args:
        rule: a rule with a row pattern.
        stream: the stream.
        end: where it ends.
        greatest: the greatest event time of the input.
    """
    assert rule.rows is not None
    case = case_of(rule.rows)
    partition = [{**placed.row, "t": placed.time} for placed in stream]
    known = decisions(case, partition)
    for match, (time, phase, row) in zip(matches_of(case, partition), known, strict=True):
        fields = {name: value(match, term, len(match.path) - 1) for name, term in case.measures}
        rows = stream[match.start : match.start + max(1, len(match.path))]
        shown = [
            (name, placed) for placed, (name, hidden) in zip(rows, match.path, strict=False) if not hidden
        ]
        at: Position = stream[row].position if not phase else end if time == inf else (time, phase, 0)
        told = greatest if at[0] == inf else int(at[0]) + (phase == 1 and time < inf)
        yield Found((rows[-1].seq, rows[0].time, told, fields), shown, at)


def case_of(pattern: RowPattern) -> Case:
    """A row pattern as a case of the oracle."""
    terms = _Terms(pattern.variables)
    conditions = {
        name: [part for one in (*condition.fixed, *condition.of_match) for part in terms.parts(one)]
        for name, condition in zip(pattern.variables, pattern.conditions, strict=True)
    }
    measures = [(one.name, terms.of(one.value.expr, one.value)) for one in pattern.measures]
    skip_to = terms.union(pattern.skip_variables) or ""
    node = _node(pattern.pattern, pattern.variables)
    within = pattern.within_us
    return Case(node, conditions, measures, "one", pattern.skip, skip_to, terms.unions, within)


def _node(node: Node, names: Sequence[str]) -> Term:
    if isinstance(node, Variable):
        return "var", names[node.number]
    if isinstance(node, Parts | Alternatives):
        parts = node.parts if isinstance(node, Parts) else node.choices
        return "seq" if isinstance(node, Parts) else "alt", [_node(part, names) for part in parts]
    if isinstance(node, Repetition):
        return "repeat", _node(node.part, names), node.least, node.most, node.greedy
    if isinstance(node, Excluded):
        return "exclude", _node(node.part, names)
    return ("start",) if isinstance(node, Start) else ("empty",)


class _Terms:
    """Makes terms of expressions, and unions of what they name."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = names
        self.unions: dict[str, list[str]] = {}

    def union(self, variables: tuple[int, ...] | None) -> str | None:
        if not variables:
            return None
        members = [self.names[one] for one in variables]
        if len(members) > 1:
            self.unions["|".join(members)] = members
        return "|".join(members)

    def parts(self, computed: Computed) -> list[Term]:
        expr = computed.expr
        split = isinstance(expr, Call) and expr.function == "and"
        return [self.of(part, computed) for part in (expr.arguments if split else [expr])]  # type: ignore[union-attr]

    def of(self, expr: Expr, computed: Computed) -> Term:
        if isinstance(expr, Literal):
            return "const", expr.value
        if isinstance(expr, Column):
            return self.slot(computed.slots[int(expr.attribute[1:])])
        assert isinstance(expr, Call), expr
        if expr.function == "cast":
            return self.of(expr.arguments[0], computed)
        left, right = (self.of(one, computed) for one in expr.arguments)
        if expr.function in _TURNED:
            return _TURNED[expr.function], right, left
        return expr.function, left, right

    def slot(self, slot: Slot) -> Term:
        if isinstance(slot, MatchNumber):
            return ("number",)
        name, of = self.union(slot.variables), None if slot.of is None else _of(slot.of)
        if isinstance(slot, Summary):
            return "agg", slot.final, name, slot.function, of
        kind = "classifier" if of is None else "nav"
        return kind, slot.final, name, slot.first, slot.back, slot.shift, of


def _of(expr: Expr) -> Any:
    assert isinstance(expr, Column), expr
    return expr.attribute
