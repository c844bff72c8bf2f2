"""Rules made ready to run: numbered predicates, needed columns, and which slot does what.

A plan is made once, never changes, and is shared by every part; it pickles.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from spark_pace.core.columns import BITS, KEYS, OFFSET, SOURCE
from spark_pace.core.expr import Aggregate, Column, Expr, walk
from spark_pace.core.rule import CountSpan, EventSchema, PredicateSpan, Rule
from spark_pace.core.spans import CLOSE_BIT, OPEN_BIT

TieBreak = Literal["position", "columns"]


@dataclass(frozen=True)
class RulePlan:
    """One rule's part of a plan.

    Attributes:
        index: place of the rule in the plan.
        rule: the rule.
        filter_bit: number of the predicate `filter`; None without.
        bits: (bit of ``@mask``, number of the predicate) of each component, P_s and P_c.
        takes_all: every event that passes the filter belongs to the rule's stream.
        columns: the attributes that matching, ordering and computing fields need.
        key_column: name of the column with the key's text; None without `partition_by`.
    """

    index: int
    rule: Rule
    filter_bit: int | None
    bits: tuple[tuple[int, int], ...]
    takes_all: bool
    columns: tuple[str, ...]
    key_column: str | None


@dataclass(frozen=True)
class Unit:
    """One rule's key bucket: what one splitter works on."""

    rule: int
    bucket: int


@dataclass(frozen=True)
class Plan:
    """All rules of a job, ready to run.

    Attributes:
        schema: what an event looks like.
        rules: the rules, in the order of the files.
        predicates: distinct predicates over one event; number p is bit ``p % 64`` of column ``@bits{p // 64}``.
        keys: distinct `partition_by`; number i is column ``@key{i}``.
        units: for each slot its units.
        buckets: into how many buckets a rule's keys go.
        lanes: into how many lanes a unit's work of a batch is cut at the most.
        lane_rows: lanes of fewer events are not cut: they cost more than they gain.
        delay_us: how far behind the greatest event time the frontier stays.
        ties: the columns that order events of one event time, before source and offset.
        on_operator_error: what becomes of a selection that a Python operator fails on.
    """

    schema: EventSchema
    rules: tuple[RulePlan, ...]
    predicates: tuple[Expr, ...]
    keys: tuple[tuple[str, ...], ...]
    units: tuple[tuple[Unit, ...], ...]
    buckets: int
    lanes: int
    lane_rows: int
    delay_us: int
    ties: tuple[str, ...]
    on_operator_error: Literal["quarantine", "fail"]

    @property
    def slots(self) -> int:
        """How many slots there are."""
        return len(self.units)

    @property
    def tie_columns(self) -> tuple[str, ...]:
        """All columns that order events of one event time."""
        return (*self.ties, SOURCE, OFFSET)


def build_plan(
    rules: Iterable[Rule],
    *,
    delay_us: int,
    slots: int = 1,
    buckets: int = 1,
    lanes: int = 1,
    lane_rows: int = 4096,
    on_operator_error: Literal["quarantine", "fail"] = "quarantine",
    tie_break: TieBreak = "position",
) -> Plan:
    """Make rules ready to run.

    Args:
        rules: checked rules over one event schema.
        delay_us: allowed lateness in microseconds.
        slots: groups of the stateful stage.
        buckets: key buckets of each rule with `partition_by`.
        lanes: the most lanes one unit's work of a batch is cut into.
        lane_rows: how many events a lane should have at the least.
        on_operator_error: quarantine a selection that a Python operator fails on, or stop.
        tie_break: what orders events of one event time where the schema has no `tie_break`:
            their position (source, offset), or all their columns.

    Returns:
        The plan.
    """
    rules = tuple(rules)
    schema = rules[0].schema
    predicates: dict[Expr, int] = {}
    keys: dict[tuple[str, ...], int] = {}
    ties = schema.tie_break
    if not ties and tie_break == "columns":
        ties = tuple(field.name for field in schema.fields)
    plans = tuple(_rule_plan(index, rule, predicates, keys, ties) for index, rule in enumerate(rules))
    units = [Unit(plan.index, b) for plan in plans for b in range(buckets if plan.key_column else 1)]
    return Plan(
        schema, plans, tuple(predicates), tuple(keys), tuple(tuple(units[s::slots]) for s in range(slots)),
        buckets, lanes, lane_rows, delay_us, ties, on_operator_error,
    )  # fmt: skip


def _rule_plan(
    index: int, rule: Rule, predicates: dict[Expr, int], keys: dict[tuple[str, ...], int], ties: tuple[str, ...]
) -> RulePlan:
    def number(predicate: Expr) -> int:
        return predicates.setdefault(predicate, len(predicates))

    bits = []
    if rule.pattern is not None:
        bits += [(bit, number(c.predicate)) for bit, c in enumerate(rule.pattern.components)]
    if isinstance(rule.span, PredicateSpan):
        bits += [(OPEN_BIT, number(rule.span.open)), (CLOSE_BIT, number(rule.span.close))]
    key_column = None
    if rule.partition_by:
        key_column = f"{KEYS}{keys.setdefault(rule.partition_by, len(keys))}"
    filter_bit = None if rule.filter is None else number(rule.filter)
    columns = _needed(rule, ties)
    return RulePlan(index, rule, filter_bit, tuple(bits), _takes_all(rule), columns, key_column)


def _takes_all(rule: Rule) -> bool:
    """Whether the rule counts events or hands them all to a Python operator (semantics, section 1)."""
    counts = rule.pattern is not None and rule.pattern.within is not None and rule.pattern.within.events is not None
    return counts or isinstance(rule.span, CountSpan) or rule.operator is not None


def _needed(rule: Rule, ties: tuple[str, ...]) -> tuple[str, ...]:
    """The attributes a rule needs behind the intake, in the schema's order."""
    names = [field.name for field in rule.schema.fields]
    if rule.operator is not None:
        return tuple(names)
    exprs: list[Expr] = [field.expr for field in rule.emit if field.expr is not None]
    if rule.pattern is not None:
        exprs += [conjunct.expr for conjunct in rule.pattern.where]
    if isinstance(rule.span, PredicateSpan):
        exprs += rule.span.close_where
    used = {node.attribute for expr in exprs for node in walk(expr) if isinstance(node, (Column, Aggregate))}
    used.update(rule.partition_by, ties)
    return tuple(name for name in names if name in used)


def bits_column(predicate: int) -> tuple[str, int]:
    """The column and the bit of a predicate."""
    return f"{BITS}{predicate // 64}", predicate % 64


def bucket_of(key: str, buckets: int) -> int:
    """The bucket of a key's text."""
    return zlib.crc32(key.encode()) % buckets

