"""The plan: a job's rules ready to run, with numbered predicates, the columns they need, and their slots.

A plan is made once and never changes. All steps read it, also in other processes, so it can be pickled. Each
rule's buckets of partition keys are dealt out to slots: these are its places.

Panes are the pieces of a grid's time that no span begins or ends in. Spans that overlap share panes. A rule
that aggregates such spans needs of each pane and key no events, but only what aggregates are made of: numbers
of events, exact sums, least and greatest, first and last values.

Sources: Li et al., No Pane, No Gain, 2005; Mendes 2013, sections 4.5.2 and 6.2.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import pyarrow as pa

from spark_pace.core.expr import ARROW_TYPES, Aggregate, Expr, array_element, walk
from spark_pace.core.expr.canonical_text import canonical_text
from spark_pace.core.order import OrderSpec
from spark_pace.core.plan.conditions import Lookups, lookups_of, mentions_previous, of_its_event, others_count
from spark_pace.core.plan.earlier_tests import (
    AbsenceTests,
    LookingBack,
    absence_tests,
    filtering,
    filters_back,
    looking_back,
    looks_back,
)
from spark_pace.core.plan.lower_rules import every_rule, input_schema, levels_of, with_place
from spark_pace.core.plan.meaning import (
    attributes_of,
    columns_of,
    computed_of,
    expressions_over_matches,
    fingerprint,
    previous_of,
    rule_parts,
)
from spark_pace.core.plan.members import conditions_by_bit
from spark_pace.core.plan.rule import EventSchema, GridSpan, PredicateSpan, Rule
from spark_pace.core.tables import (
    BITS,
    CLOSE_BIT,
    KEYS,
    MOST_COMPONENTS,
    MOST_IN_OPENED_SPANS,
    OFFSET,
    OPEN_BIT,
    SOURCE,
)
from spark_pace.errors import ConfigError

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
            `Sums.stored`; "min", "max", "first" and "last" of them; "sketch", as `distribution.stored`.
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


@dataclass(frozen=True)
class RulePlace:
    """The slots that run a rule.

    Attributes:
        slots: the slot of each of its buckets of partition keys; empty if the rule reads matches, because the
            merger runs such rules.
        since: the first batch whose events belong to the rule's stream.
    """

    slots: tuple[int, ...]
    since: int = 0


def dealt_out(
    rules: Sequence[Rule],
    slots: int,
    buckets: int,
    kept: Mapping[str, RulePlace] | None = None,
    since: int = 0,
) -> dict[str, RulePlace]:
    """Deal all rules, lower rules included, out to slots; rules that share panes get the same place.

    Args:
        rules: the rules.
        slots: the number of slots.
        buckets: the number of buckets of each rule with `partition_by`.
        kept: the places of rules that stay where they are.
        since: the first batch whose events belong to the streams of the other rules.
    """
    rules = every_rule(rules)
    places = {rule.name: kept[rule.name] for rule in rules if rule.name in kept} if kept else {}
    load = [0] * slots
    for place in places.values():
        for slot in place.slots:
            load[slot] += 1
    shared: dict[Hashable, RulePlace] = {}
    for rule in rules:
        if rule.name in places:
            continue
        if rule.reads:
            places[rule.name] = RulePlace((), since)
            continue
        stream = sharing(rule)
        if stream is not None and stream in shared:
            places[rule.name] = shared[stream]
            continue
        taken = tuple(_least(load) for _ in range(buckets if rule.partition_by else 1))
        places[rule.name] = shared[stream] = RulePlace(taken, since)
    return places


def _least(load: list[int]) -> int:
    """The slot with the fewest units, to which one more goes."""
    slot = load.index(min(load))
    load[slot] += 1
    return slot


TieBreak = Literal["position", "columns"]
OnBad = Literal["quarantine", "fail"]  # set bad records or failed selections aside, or stop the job
OPERATOR_TIMEOUT_US = 600_000_000
MOST_BAD_RECORDS = 1_000  # a file's, reported one by one, unless the job says otherwise


@dataclass(frozen=True)
class RulePlan:
    """One rule's part of a plan.

    Attributes:
        index: place of the rule in the plan.
        rule: the rule.
        filter_bit: number of the predicate `filter`; None where the rule has none, or one that looks back.
        bits: (bit of ``@mask``, number of the predicate) for each component or condition of a move, and for
            P_s and P_c of a span. The predicate has only the conditions on the event alone.
        filtering: what a filter reads of earlier events; None if it reads no such event.
        looking_back: the conditions of components or moves on earlier events; None if there are none, or if
            they are on the events of a span.
        absent: the tests of negated components in first place; None if there are none, or if they are made
            in spans.
        takes_all: True if every event that passes the filter belongs to the rule's stream.
        panes: what is kept for each pane in place of its events; None if events are kept.
        columns: the attributes that matching, ordering and computing fields need.
        computed: what is computed of each event for aggregates, with the name of its column.
        key_column: name of the column with the text of the partition key; None without `partition_by`.
        fingerprint: a digest of the rule's meaning, equal for rules that mean the same.
        since: the first batch whose events belong to the rule's stream.
        is_read: whether other rules of the job read its matches.
    """

    index: int
    rule: Rule
    filter_bit: int | None
    filtering: LookingBack | None
    bits: tuple[tuple[int, int], ...]
    looking_back: LookingBack | None
    absent: AbsenceTests | None
    takes_all: bool
    panes: Panes | None
    columns: tuple[str, ...]
    computed: tuple[tuple[str, Expr], ...]
    key_column: str | None
    fingerprint: str
    since: int
    is_read: bool = False

    @property
    def tested(self) -> tuple[str, ...]:
        """The attributes that the conditions on earlier events read; later steps may not need them."""
        tests = (one for one in (self.filtering, self.looking_back, self.absent) if one is not None)
        return tuple(dict.fromkeys(name for one in tests for name in one.columns))

    @property
    def last_values(self) -> list[pa.Field]:
        """The columns of values that are kept of each key's last events, for conditions on earlier events."""
        return [kept for one in (self.filtering, self.looking_back) if one for kept in one.carried]

    @property
    def computed_from(self) -> tuple[str, ...]:
        """The attributes that are needed to compute what aggregates are over, and perhaps not any longer."""
        return tuple(sorted(attributes_of(expr for _, expr in self.computed)))


@dataclass(frozen=True)
class Unit:
    """One rule's bucket of partition keys, which a slot splits independently of its other units."""

    rule_index: int
    bucket: int


@dataclass(frozen=True)
class Level:
    """The rules that read the matches of the same lower rules.

    Attributes:
        reads: the lower rules, in the order of ``from``.
        plan: the plan of the readers, over these matches.
    """

    reads: tuple[Rule, ...]
    plan: Plan


@dataclass(frozen=True)
class Plan:
    """All rules of a job, ready to run.

    Attributes:
        schema: what an event looks like.
        rules: the rules that read events, in the order of the files; behind them those that only other rules
            read.
        predicates: distinct predicates over one event.
        bit_names: the meaning of each bit of the columns ``@bits``: first a bit for each predicate, then one
            for the stream of each rule. Number n is bit ``n % 64`` of column ``@bits{n // 64}``.
        partition_keys: the attributes of each distinct `partition_by`.
        units: the units of each slot.
        buckets: the number of buckets that a rule's partition keys are spread over.
        lanes: the most lanes that a unit's work of one batch is cut into.
        least_lane_rows: the fewest events of a lane; smaller lanes cost more than they gain.
        latency_bound_us: the longest predicted time that operators may take for a lane; lanes are then as few
            as this allows, of any size. None: there is no bound.
        order: how the frontier follows the sources.
        source_column: the attribute that names an event's source; None: the event's position does.
        heartbeat: the predicate of records that only say how far their source has come; None: there are no
            such records.
        ties: the attributes that order events of the same event time, before source and offset.
        on_operator_error: what to do with a selection that a Python operator fails on.
        operator_timeout_us: the longest time that a Python operator may take for one selection; only a job
            enforces it, where operators run in a process of their own.
        lookups: the predicates that are evaluated by looking values up.
        levels: the rules that read matches, each level behind the ones that it reads.
        shown: the rules whose matches are the output, in the order of the files.
    """

    schema: EventSchema
    rules: tuple[RulePlan, ...]
    predicates: tuple[Expr, ...]
    bit_names: tuple[str, ...]
    partition_keys: tuple[tuple[str, ...], ...]
    units: tuple[tuple[Unit, ...], ...]
    buckets: int
    lanes: int
    least_lane_rows: int
    order: OrderSpec
    source_column: str | None
    heartbeat: Expr | None
    ties: tuple[str, ...]
    on_operator_error: OnBad
    operator_timeout_us: int
    latency_bound_us: int | None
    lookups: Lookups
    levels: tuple[Level, ...]
    shown: tuple[Rule, ...]

    @property
    def slots(self) -> int:
        """The number of slots."""
        return len(self.units)

    @property
    def tie_columns(self) -> tuple[str, ...]:
        """All columns that order events of the same event time."""
        return (*self.ties, SOURCE, OFFSET)

    def member_bit(self, planned: RulePlan) -> int:
        """The number of the bit that says whether an event belongs to the rule's stream."""
        return len(self.predicates) + planned.index


def build_plan(
    rules: Iterable[Rule],
    *,
    order: OrderSpec,
    source_column: str | None = None,
    heartbeat: Expr | None = None,
    slots: int = 1,
    buckets: int = 1,
    lanes: int = 1,
    least_lane_rows: int = 4096,
    latency_bound_us: int | None = None,
    on_operator_error: OnBad = "quarantine",
    operator_timeout_us: int = OPERATOR_TIMEOUT_US,
    tie_break: TieBreak = "position",
    places: Mapping[str, RulePlace] | None = None,
) -> Plan:
    """Build the plan of checked rules over one event schema and of the lower rules that they read.

    `slots` is the number of groups of the stateful stage. `places` gives by rule name the slots that run the
    rule; a rule without a place does not run. Without `places` all rules are dealt out to the slots.
    `tie_break` says what orders events of the same event time if the schema does not: their position (source
    and offset), or all their columns. The other arguments are as in `Plan`.
    """
    listed = tuple(rules)
    every = every_rule(listed)
    schema = input_schema(every)
    ties = schema.tie_break or _tie_columns(schema, tie_break)
    places = places if places is not None else dealt_out(every, slots, buckets)
    every = tuple(rule for rule in every if rule.name in places)
    of_events = [rule for rule in every if not rule.reads]
    predicates: dict[Expr, int] = {}
    made = [_rule_plan(n, one, predicates, ties, places[one.name].since) for n, one in enumerate(of_events)]
    plans = _with_readers(made, every)
    keys = tuple(dict.fromkeys(rule.partition_by for rule in of_events if rule.partition_by))
    return Plan(
        schema, plans, tuple(predicates), _bit_names(predicates, plans), keys, _units(plans, places, slots),
        buckets, lanes, least_lane_rows, order, source_column, heartbeat, ties, on_operator_error,
        operator_timeout_us, latency_bound_us, lookups_of(tuple(predicates)),
        _levels(every, places, on_operator_error), tuple(rule for rule in listed if rule.name in places),
    )  # fmt: skip


def _bit_names(predicates: Iterable[Expr], plans: Iterable[RulePlan]) -> tuple[str, ...]:
    streams = (f"rule {planned.rule.name} since {planned.since}" for planned in plans)
    return (*map(canonical_text, predicates), *streams)


def _with_readers(plans: Iterable[RulePlan], rules: Sequence[Rule]) -> tuple[RulePlan, ...]:
    """The plans of some rules, which know whether any of `rules` reads their matches."""
    read = {lower.name for rule in rules for lower in rule.reads}
    return tuple(replace(planned, is_read=planned.rule.name in read) for planned in plans)


def _levels(
    rules: Sequence[Rule], places: Mapping[str, RulePlace], on_operator_error: OnBad
) -> tuple[Level, ...]:
    """The rules that read matches, grouped by the lower rules that they read. Each runs in one slot."""
    heights = levels_of(rules)
    alike: dict[tuple[str, ...], list[Rule]] = {}
    for rule in sorted(rules, key=lambda rule: heights[rule.name]):
        if rule.reads:
            alike.setdefault(tuple(lower.name for lower in rule.reads), []).append(rule)
    levels = []
    for readers in alike.values():
        here = {rule.name: RulePlace((0,), places[rule.name].since) for rule in readers}
        flat = [replace(with_place(rule), reads=()) for rule in readers]
        plan = build_plan(flat, order=OrderSpec(), places=here, on_operator_error=on_operator_error)
        plan = replace(plan, rules=_with_readers(plan.rules, rules))
        levels.append(Level(readers[0].reads, plan))
    return tuple(levels)


def _tie_columns(schema: EventSchema, tie_break: TieBreak) -> tuple[str, ...]:
    """The columns that order events of the same event time, if the schema names none."""
    if tie_break == "position":
        return ()
    fields = schema.own.fields
    if any(array_element(field.type) for field in fields):
        must, got = "must name attributes, for an ARRAY orders no events", "none"
        raise ConfigError.of("tie_break", must, got, "Add for example tie_break: [id] to events.")
    return tuple(field.name for field in fields)


def _units(
    plans: Sequence[RulePlan], places: Mapping[str, RulePlace], slots: int
) -> tuple[tuple[Unit, ...], ...]:
    units: list[list[Unit]] = [[] for _ in range(slots)]
    for planned in plans:
        for bucket, slot in enumerate(places[planned.rule.name].slots):
            units[slot].append(Unit(planned.index, bucket))
    return tuple(map(tuple, units))


def _rule_plan(
    index: int, rule: Rule, predicates: dict[Expr, int], ties: tuple[str, ...], since: int
) -> RulePlan:
    def number(predicate: Expr) -> int:
        return predicates.setdefault(predicate, len(predicates))

    opened, conditions = isinstance(rule.span, PredicateSpan), conditions_by_bit(rule)
    assert len(conditions) <= (MOST_IN_OPENED_SPANS if opened else MOST_COMPONENTS)
    bits = [(bit, number(of_its_event(condition))) for bit, condition in conditions]
    if isinstance(rule.span, PredicateSpan):
        bits += [(OPEN_BIT, number(rule.span.open)), (CLOSE_BIT, number(rule.span.close))]
    key_column = key_column_of(rule.partition_by) if rule.partition_by else None
    filter_bit = None if rule.filter is None or filters_back(rule) else number(rule.filter)
    columns = _needed(rule, ties)
    meaning = fingerprint(rule_parts(rule) | {"tie_break": ", ".join(ties)})
    counted = others_count(rule)
    needed = counted or rule.forget_key_after_us is not None
    back = looking_back(rule, others_count=needed)
    absent = None if rule.span is not None else absence_tests(rule, others_count=needed)
    takes_all = counted or looks_back(rule)
    first = filtering(rule, others_count=takes_all)
    takes_all |= first is not None
    return RulePlan(
        index, rule, filter_bit, first, tuple(bits), back, absent, takes_all, panes_of(rule), columns,
        tuple(computed_of(expressions_over_matches(rule)).items()), key_column, meaning, since,
    )  # fmt: skip


def key_column_of(names: Sequence[str]) -> str:
    """The name of the column with the text of the partition key of these attributes."""
    return KEYS + ",".join(name.replace("%", "%25").replace(",", "%2C") for name in names)


def _needed(rule: Rule, ties: tuple[str, ...]) -> tuple[str, ...]:
    """The attributes that a rule needs after the intake, in the schema's order."""
    names = [field.name for field in rule.schema.fields]
    if rule.function is not None:
        return tuple(names)
    exprs = expressions_over_matches(rule)
    used = {*columns_of(exprs), *rule.partition_by, *ties}
    if rule.span is not None:  # there ``prev`` looks at the events of each span
        used |= {one.attribute for one in previous_of(exprs).values()}
    return tuple(name for name in names if name in used)


def bits_column(number: int) -> tuple[str, int]:
    """The column, and the bit in it, of what has this number in `Plan.bit_names`."""
    return f"{BITS}{number // 64}", number % 64
