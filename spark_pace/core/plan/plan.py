"""Rules made ready to run: numbered predicates, needed columns, and which slot does what.

A plan is made once, never changes, and is shared by every part; it pickles.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from spark_pace.core.columns import BITS, CLOSE_BIT, KEYS, OFFSET, OPEN_BIT, SOURCE
from spark_pace.core.expr import Expr
from spark_pace.core.expr.canonical import canonical_text
from spark_pace.core.order.order import OrderSpec
from spark_pace.core.plan.meaning import attributes_of, expressions_over_matches, fingerprint, rule_parts
from spark_pace.core.plan.rule import CountSpan, EventSchema, PredicateSpan, Rule

TieBreak = Literal["position", "columns"]
OnBad = Literal["quarantine", "fail"]  # what is bad is kept apart, or stops the job
OPERATOR_TIMEOUT_US = 600_000_000


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
        fingerprint: of what the rule means.
        since: the batch whose events were the first of the rule's stream.
    """

    index: int
    rule: Rule
    filter_bit: int | None
    bits: tuple[tuple[int, int], ...]
    takes_all: bool
    columns: tuple[str, ...]
    key_column: str | None
    fingerprint: str
    since: int


@dataclass(frozen=True)
class Place:
    """Where a rule is worked on.

    Attributes:
        slots: the slot of each of its key buckets.
        since: the batch whose events were the first of the rule's stream.
    """

    slots: tuple[int, ...]
    since: int = 0


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
        predicates: distinct predicates over one event.
        bit_names: what each bit of the words ``@bits`` stands for: every predicate, then every rule's stream;
            number n is bit ``n % 64`` of column ``@bits{n // 64}``.
        keys: distinct `partition_by`.
        units: for each slot its units.
        buckets: into how many buckets a rule's keys go.
        lanes: into how many lanes a unit's work of a batch is cut at the most.
        lane_rows: lanes of fewer events are not cut: they cost more than they gain.
        order: how the frontier follows the sources.
        source_column: the attribute that names an event's source there; None: its position does.
        heartbeat: what holds for records that only tell how far their source is; None: there are none.
        ties: the columns that order events of one event time, before source and offset.
        on_operator_error: what becomes of a selection that a Python operator fails on.
        operator_timeout_us: how long a Python operator may take for a selection where it runs in a process of its own.
    """

    schema: EventSchema
    rules: tuple[RulePlan, ...]
    predicates: tuple[Expr, ...]
    bit_names: tuple[str, ...]
    keys: tuple[tuple[str, ...], ...]
    units: tuple[tuple[Unit, ...], ...]
    buckets: int
    lanes: int
    lane_rows: int
    order: OrderSpec
    source_column: str | None
    heartbeat: Expr | None
    ties: tuple[str, ...]
    on_operator_error: OnBad
    operator_timeout_us: int

    @property
    def slots(self) -> int:
        """How many slots there are."""
        return len(self.units)

    @property
    def tie_columns(self) -> tuple[str, ...]:
        """All columns that order events of one event time."""
        return (*self.ties, SOURCE, OFFSET)

    def member_bit(self, rule: RulePlan) -> int:
        """The number of the bit that says whether an event belongs to the rule's stream."""
        return len(self.predicates) + rule.index


def build_plan(
    rules: Iterable[Rule],
    *,
    order: OrderSpec,
    source_column: str | None = None,
    heartbeat: Expr | None = None,
    slots: int = 1,
    buckets: int = 1,
    lanes: int = 1,
    lane_rows: int = 4096,
    on_operator_error: OnBad = "quarantine",
    operator_timeout_us: int = OPERATOR_TIMEOUT_US,
    tie_break: TieBreak = "position",
    places: Mapping[str, Place] | None = None,
) -> Plan:
    """Make rules ready to run.

    `rules` are checked and over one event schema, `slots` is the number of groups of the stateful stage; without `places` the
    rules are dealt out to them, with it those run that have one. `tie_break` says what orders events of one event time where the schema does not: their
    position (source, offset), or all their columns. The rest is as in `Plan`.
    """
    rules = tuple(rules)
    schema = rules[0].schema
    every = tuple(field.name for field in schema.fields) if tie_break == "columns" else ()
    ties = schema.tie_break or every
    places = places if places is not None else dealt_out(rules, slots, buckets)
    rules = tuple(rule for rule in rules if rule.name in places)
    predicates: dict[Expr, int] = {}
    plans = tuple(
        _rule_plan(index, rule, predicates, ties, places[rule.name].since) for index, rule in enumerate(rules)
    )
    names = (
        *map(canonical_text, predicates),
        *(f"rule {plan.rule.name} since {plan.since}" for plan in plans),
    )
    keys = tuple(dict.fromkeys(rule.partition_by for rule in rules if rule.partition_by))
    return Plan(
        schema, plans, tuple(predicates), names, keys, _units(plans, places, slots),
        buckets, lanes, lane_rows, order, source_column, heartbeat, ties, on_operator_error, operator_timeout_us,
    )  # fmt: skip


def _units(
    plans: Sequence[RulePlan], places: Mapping[str, Place], slots: int
) -> tuple[tuple[Unit, ...], ...]:
    units: list[list[Unit]] = [[] for _ in range(slots)]
    for plan in plans:
        for bucket, slot in enumerate(places[plan.rule.name].slots):
            units[slot].append(Unit(plan.index, bucket))
    return tuple(map(tuple, units))


def dealt_out(
    rules: Sequence[Rule], slots: int, buckets: int, kept: Mapping[str, Place] | None = None, since: int = 0
) -> dict[str, Place]:
    """A place for every rule: the units of each go to the slots that have the fewest.

    Args:
        rules: the rules.
        slots: how many slots there are.
        buckets: key buckets of each rule with `partition_by`.
        kept: places that are taken; their rules stay where they are.
        since: the batch whose events are the first of those that have no place yet.
    """
    places = {rule.name: kept[rule.name] for rule in rules if rule.name in kept} if kept else {}
    load = [0] * slots
    for place in places.values():
        for slot in place.slots:
            load[slot] += 1
    for rule in rules:
        if rule.name not in places:
            taken = []
            for _ in range(buckets if rule.partition_by else 1):
                taken.append(load.index(min(load)))
                load[taken[-1]] += 1
            places[rule.name] = Place(tuple(taken), since)
    return places


def _rule_plan(
    index: int, rule: Rule, predicates: dict[Expr, int], ties: tuple[str, ...], since: int
) -> RulePlan:
    def number(predicate: Expr) -> int:
        return predicates.setdefault(predicate, len(predicates))

    bits = []
    if rule.pattern is not None:
        bits += [(bit, number(c.predicate)) for bit, c in enumerate(rule.pattern.components)]
    if isinstance(rule.span, PredicateSpan):
        bits += [(OPEN_BIT, number(rule.span.open)), (CLOSE_BIT, number(rule.span.close))]
    key_column = key_column_of(rule.partition_by) if rule.partition_by else None
    filter_bit = None if rule.filter is None else number(rule.filter)
    columns = _needed(rule, ties)
    meaning = fingerprint(rule_parts(rule) | {"tie_break": ", ".join(ties)})
    return RulePlan(
        index, rule, filter_bit, tuple(bits), _takes_all(rule), columns, key_column, meaning, since
    )


def key_column_of(names: Sequence[str]) -> str:
    """The column with the text of the key that these attributes make: the same in every plan."""
    return KEYS + ",".join(name.replace("%", "%25").replace(",", "%2C") for name in names)


def _takes_all(rule: Rule) -> bool:
    """Whether the rule counts events or hands them all to a Python operator (semantics, section 1)."""
    counts = (
        rule.pattern is not None
        and rule.pattern.within is not None
        and rule.pattern.within.events is not None
    )
    return counts or isinstance(rule.span, CountSpan) or rule.operator is not None


def _needed(rule: Rule, ties: tuple[str, ...]) -> tuple[str, ...]:
    """The attributes a rule needs behind the intake, in the schema's order."""
    names = [field.name for field in rule.schema.fields]
    if rule.operator is not None:
        return tuple(names)
    used = {*attributes_of(expressions_over_matches(rule)), *rule.partition_by, *ties}
    return tuple(name for name in names if name in used)


def bits_column(number: int) -> tuple[str, int]:
    """The column and the bit in its words of what has this number in `Plan.bit_names`."""
    return f"{BITS}{number // 64}", number % 64


def bucket_of(key: str, buckets: int) -> int:
    """The bucket of a key's text."""
    return zlib.crc32(key.encode()) % buckets
