"""The conditions of components and moves on earlier events, which they name by ``prev``.

They are tested once the events are in order, because only then an event's predecessors are known.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa

from spark_pace.core.expr import ARROW_TYPES, Expr, Previous, conjunction, walk
from spark_pace.core.plan.conditions import mentions_previous, of_other_events
from spark_pace.core.plan.meaning import attributes_of, expressions_over_matches, previous_of
from spark_pace.core.plan.members import conditions_by_bit
from spark_pace.core.plan.rule import Rule


@dataclass(frozen=True)
class LookingBack:
    """The conditions and values with ``prev`` of a rule, made key by key once the events are in order.

    Attributes:
        conditions: (bit of ``@mask``, condition) for each component or move that has one with ``prev``.
        values: what conditions over several components, and fields, read by ``prev``: it is a column of each
            event.
        columns: the attributes in these conditions and values, in the schema's order.
        last: for each attribute in a ``prev`` the columns with its values in a key's last events: the last
            event, the one before it, and so on, as far back as any ``prev`` reaches.
        others_count: True if events that match no component are needed even after the test.
        before_filter: True if it is the filter that looks back, at events whether they pass it or not.
    """

    conditions: tuple[tuple[int, Expr], ...]
    values: tuple[Previous, ...]
    columns: tuple[str, ...]
    last: tuple[tuple[Previous, ...], ...]
    others_count: bool
    before_filter: bool = False

    @property
    def carried(self) -> pa.Schema:
        """The columns of `last`, as they are kept for each key."""
        every = [column for columns in self.last for column in columns]
        return pa.schema([(self.kept_as(column), ARROW_TYPES[column.type]) for column in every])

    def kept_as(self, column: Previous) -> str:
        """The name under which the values of a column of `last` are kept for each key."""
        return f"@filter {column.column}" if self.before_filter else column.column


def looks_back(rule: Rule) -> bool:
    """True if a condition or a field of a pattern, or a condition of a move, reads an earlier event."""
    return any(map(mentions_previous, (*rule.conditions, *expressions_over_matches(rule))))


def looking_back(rule: Rule, *, others_count: bool) -> LookingBack | None:
    """The conditions of the rule's components or moves on earlier events of the rule's stream.

    None if there are none, and for a rule with a span, where operators test the conditions inside each span.
    """
    if rule.span is not None or not looks_back(rule):
        return None
    tested = [(bit, of_other_events(condition)) for bit, condition in conditions_by_bit(rule)]
    conditions = tuple((bit, conjunction(parts)) for bit, parts in tested if parts)
    values = tuple(previous_of(expressions_over_matches(rule)).values())
    exprs = [*(condition for _, condition in conditions), *values]
    return LookingBack(conditions, values, _columns(rule, exprs), _last(exprs), others_count)


def filtering(rule: Rule, *, others_count: bool) -> LookingBack | None:
    """The filter, if it looks at earlier events: it is tested once the events are in order; else None."""
    if not filters_back(rule):
        return None
    assert rule.filter is not None
    exprs = [rule.filter]
    return LookingBack((), (), _columns(rule, exprs), _last(exprs), others_count, before_filter=True)


def filters_back(rule: Rule) -> bool:
    """True if the filter reads an earlier event."""
    return rule.filter is not None and mentions_previous(rule.filter)


def _columns(rule: Rule, exprs: Iterable[Expr]) -> tuple[str, ...]:
    """The attributes in these expressions, in the schema's order."""
    used = attributes_of(exprs)
    return tuple(field.name for field in rule.schema.fields if field.name in used)


def _last(exprs: Iterable[Expr]) -> tuple[tuple[Previous, ...], ...]:
    """`LookingBack.last` for these expressions."""
    found = [node for expr in exprs for node in walk(expr) if isinstance(node, Previous)]
    last = []
    for name in dict.fromkeys(node.attribute for node in found):
        of_name = [node for node in found if node.attribute == name]
        reach = max(node.back for node in of_name)
        last.append(tuple(Previous(name, back, of_name[0].type) for back in range(1, reach + 1)))
    return tuple(last)
