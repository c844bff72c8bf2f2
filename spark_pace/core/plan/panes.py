"""Panes: the pieces of a grid's time that no span begins or ends in, and what is kept of the events in one.

Spans that overlap share panes. A rule that aggregates such spans needs of each pane and key no events, but
only what aggregates are made of: numbers of events, exact sums, least and greatest, first and last values.

Sources: Li et al., No Pane, No Gain, 2005; Mendes 2013, sections 4.5.2 and 6.2.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from spark_pace.core.expr import ARROW_TYPES, Aggregate, walk
from spark_pace.core.plan.conditions import mentions_previous
from spark_pace.core.plan.meaning import computed_of, expressions_over_matches
from spark_pace.core.plan.rule import GridSpan, Rule

EVENTS = "@count"  # int64: how many events a row stands for
LAST = "@last"  # int64: the event time of the last of them, in rows of a batch
# what each aggregate over an attribute is made of
_MADE_OF = {
    "count": ("known",),
    "sum": ("known", "sum"),
    "avg": ("known", "sum"),
    "stddev": ("known", "sum", "squares"),
    "min": ("min",),
    "max": ("max",),
    "first": ("first",),
    "last": ("last",),
    "approx_count_distinct": ("sketch",),
}


def width_us(span: GridSpan) -> int:
    """The length of a pane: the greatest that divides both `every` and `size`."""
    return math.gcd(span.every_us, span.size_us)


def held_column(part: str, attribute: str) -> str:
    """The column of what is kept of an attribute."""
    return f"@{part} {attribute}"


@dataclass(frozen=True)
class Panes:
    """What a rule keeps of its panes.

    A row has ``@time`` and ``@seq``, those of its first event; `EVENTS`; `held`; and `shared`. Which events
    it stands for is said in `spark_pace.core.split.panes`.

    Attributes:
        width_us: the length of a pane.
        held: what is kept of which attribute: "known", the number of values; "sum" and "squares", as
            `Sums.stored`; "min", "max", "first" and "last" of them; "sketch", as `sketches.stored`.
        shared: the attributes that all events of a key share.
        types: the type of each attribute that is used.
    """

    width_us: int
    held: tuple[tuple[str, str], ...]
    shared: tuple[str, ...]
    types: Mapping[str, pa.DataType]

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes of events that are needed to make rows."""
        return tuple(self.types)


def sharing(rule: Rule) -> Hashable | None:
    """What is equal of rules that can share the rows of panes; None where the rule carries none."""
    panes = panes_of(rule)
    if panes is None:
        return None
    stream = (rule.reads, rule.filter, rule.partition_by, rule.forget_key_after_us, rule.merge)
    sketches = tuple(part for part in panes.held if part[0] == "sketch")  # too large for who needs none
    return (*stream, panes.width_us, sketches, panes.shared)


def united(panes: Sequence[Panes]) -> Panes:
    """What is kept for several rules that share the rows of panes: all that any of them needs."""
    held = sorted({part for one in panes for part in one.held})
    types = {name: kind for one in panes for name, kind in one.types.items()}
    return replace(panes[0], held=tuple(held), types=types)


def holistic(rule: Rule) -> list[Aggregate]:
    """The aggregates of a rule over spans that panes cannot hold, for they need all values at once."""
    nodes = (node for expr in expressions_over_matches(rule) for node in walk(expr))
    return [node for node in nodes if isinstance(node, Aggregate) and node.function not in _MADE_OF]


def panes_of(rule: Rule) -> Panes | None:
    """What the rule keeps of panes; None where it keeps events, as for functions that need all values."""
    if not isinstance(rule.span, GridSpan) or rule.pattern is not None or rule.operator is not None:
        return None
    if holistic(rule) or (rule.filter is not None and mentions_previous(rule.filter)):
        return None
    exprs = expressions_over_matches(rule)
    held = {
        (part, node.attribute)
        for node in (node for expr in exprs for node in walk(expr))
        if isinstance(node, Aggregate) and node.attribute is not None
        for part in _MADE_OF[node.function]
    }
    used = {attribute for _, attribute in held} | {*rule.partition_by}
    types = {field.name: ARROW_TYPES[field.type] for field in rule.schema.fields if field.name in used}
    types |= {name: ARROW_TYPES[expr.type] for name, expr in computed_of(exprs).items()}
    shared = tuple(name for name in types if name in rule.partition_by)
    return Panes(width_us(rule.span), tuple(sorted(held)), shared, types)
