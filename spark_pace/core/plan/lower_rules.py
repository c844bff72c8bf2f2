"""Rules that read the matches of other rules, their lower rules, as events.

Such a rule gets the events of the input as matches too: an internal rule hands them on, one match per event.
Each reader has its own internal rule, which gives only the attributes that the reader uses.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

import pyarrow as pa

from spark_pace.core.expr import (
    Call,
    Column,
    EventColumns,
    Expr,
    Literal,
    TypeName,
    conjunction,
    evaluate_mask,
)
from spark_pace.core.plan.conditions import conjuncts, mentions_previous, of_its_event, others_count
from spark_pace.core.plan.earlier_tests import filters_back, looks_back
from spark_pace.core.plan.meaning import attributes_of, used_attributes
from spark_pace.core.plan.rule import (
    Component,
    Context,
    EmitField,
    EventSchema,
    Field,
    Pattern,
    PredicateSpan,
    Rule,
    column_name,
)

EVENTS = "events"  # names the input in `from`; also the attribute `rule` of its events
RULE = "rule"  # the attribute of a match that names its rule
MATCH_FIELDS = (Field(RULE, "STRING"), Field("opened_at", "TIMESTAMP"), Field("matched_at", "TIMESTAMP"))
PLACE, NUMBER = "@place", "@number"  # the index of an event's rule in `from`; the event's `out_seq`
_HANDED_ON = "event."  # the prefix of the fields of an internal rule
_TRUE, _FALSE = Literal(True, "BOOLEAN"), Literal(False, "BOOLEAN")


def name_in_from(rule: Rule) -> str:
    """The name of a lower rule in ``from``."""
    return EVENTS if rule.hands_on else rule.name


def every_rule(rules: Iterable[Rule]) -> tuple[Rule, ...]:
    """These rules and all that they read, directly or not, each once."""
    found: dict[str, Rule] = {}
    waiting = list(rules)
    for rule in waiting:
        if rule.name not in found:
            found[rule.name] = rule
            waiting += rule.reads
    return tuple(found.values())


def input_schema(rules: Iterable[Rule]) -> EventSchema:
    """The schema of the input's events, which is the same for all these rules."""
    return next(rule.schema for rule in every_rule(rules) if not rule.reads)


def over_input(rules: Iterable[Rule], schema: EventSchema) -> tuple[Rule, ...]:
    """These rules with another schema of the input's events."""
    known: dict[str, Rule] = {}

    def over(rule: Rule) -> Rule:
        if rule.name not in known and rule.reads:
            known[rule.name] = replace(rule, reads=tuple(map(over, rule.reads)))
        elif rule.name not in known:
            known[rule.name] = replace(rule, schema=schema)
        return known[rule.name]

    return tuple(map(over, rules))


def levels_of(rules: Iterable[Rule]) -> dict[str, int]:
    """The level of each of these rules and of the rules that they read; 0 reads the events of the input."""
    levels: dict[str, int] = {}

    def level(rule: Rule) -> int:
        if rule.name not in levels:
            levels[rule.name] = max((1 + level(lower) for lower in rule.reads), default=0)
        return levels[rule.name]

    for rule in rules:
        level(rule)
    return levels


def readers_of(names: Collection[str], rules: Sequence[Rule]) -> set[str]:
    """The names of these rules, and of all rules that read them, directly or not."""
    levels = levels_of(rules)
    found = set(names)
    for rule in sorted(every_rule(rules), key=lambda rule: levels[rule.name]):
        if any(lower.name in found for lower in rule.reads):
            found.add(rule.name)
    return found


def given_by(rule: Rule) -> dict[str, TypeName]:
    """The attributes of a rule's matches besides `MATCH_FIELDS`."""
    if rule.hands_on:
        return {field.name.removeprefix(_HANDED_ON): field.type for field in rule.emit}
    types = {field.name: field.type for field in rule.schema.fields}
    keys = {column_name(name): types[name] for name in rule.partition_by}
    return keys | {field.name: field.type for field in rule.emit}


def column_given(rule: Rule, attribute: str) -> str:
    """The name of the column with an attribute in the table of the rule's matches."""
    return _HANDED_ON + attribute if rule.hands_on else attribute


def match_schema(reads: Sequence[Rule]) -> EventSchema:
    """The schema of the matches of these rules as events."""
    types = {field.name: field.type for field in MATCH_FIELDS}
    for rule in reads:
        types |= given_by(rule)
    fields = tuple(Field(name, kind) for name, kind in types.items())
    return EventSchema(fields, "matched_at", rules=tuple(map(name_in_from, reads)))


def with_place(rule: Rule) -> Rule:
    """Order matches of the same time by the rule's place in ``from``, then by number: its `tie_break`."""
    fields = (*rule.schema.fields, Field(PLACE, "BIGINT"), Field(NUMBER, "BIGINT"))
    return replace(rule, schema=replace(rule.schema, fields=fields, tie_break=(PLACE, NUMBER)))


def handing_on(reader: str, schema: EventSchema) -> Rule:
    """Make the rule that hands all events of the input, with all attributes, to the rule named `reader`."""
    pattern = Pattern((Component("event", conjunction([])),), (), None, Context("each", "zero"))
    return Rule(
        f"{EVENTS} of {reader}",
        schema,
        None,
        (),
        pattern,
        None,
        None,
        "detection",
        tuple(_handed_on(field) for field in schema.fields),
        hands_on=True,
    )


def _handed_on(field: Field) -> EmitField:
    return EmitField(_HANDED_ON + field.name, field.type, Column("event", field.name, field.type))


def with_what_is_used(rule: Rule) -> Rule:
    """The rule, changed to read only the events and attributes of the input that it uses."""
    used = used_attributes(rule)
    kept = tuple(_narrowed(lower, used, rule) if lower.hands_on else lower for lower in rule.reads)
    return replace(rule, reads=kept)


def _narrowed(handing: Rule, used: set[str], reader: Rule) -> Rule:
    emit = tuple(field for field in handing.emit if field.name.removeprefix(_HANDED_ON) in used)
    known = {field.name for field in handing.schema.fields}
    back = filters_back(reader)  # at events whether they pass it or not
    wanted = [] if reader.filter is None or back else [_asked(reader.filter, known)]
    if not others_count(reader) and not looks_back(reader) and not back:
        wanted.append(_either([_asked(predicate, known) for predicate in _predicates(reader)]))
    conditions = [condition for condition in wanted if condition != _TRUE]
    assert handing.pattern is not None
    component = replace(handing.pattern.components[0], predicate=conjunction(conditions))
    return replace(handing, emit=emit, pattern=replace(handing.pattern, components=(component,)))


def _predicates(rule: Rule) -> list[Expr]:
    """Predicates of which at least one holds for every event of the rule's stream."""
    found = [] if rule.pattern is None else [of_its_event(one) for one in rule.pattern.predicates]
    return [*found, rule.span.open, rule.span.close] if isinstance(rule.span, PredicateSpan) else found


def _asked(condition: Expr, known: set[str]) -> Expr:
    """The part of a condition that can be tested on an event of the input; false if none can satisfy it."""
    parts = conjuncts(condition)
    if not all(_may_be_events(part) for part in parts):
        return _FALSE
    of_event = [part for part in parts if attributes_of([part]) <= known and not mentions_previous(part)]
    return conjunction([part for part in of_event if part != _TRUE])


def _may_be_events(condition: Expr) -> bool:
    """False if a condition excludes events of the input, as ``rule = 'a'`` does."""
    if attributes_of([condition]) != {RULE} or mentions_previous(condition):
        return True
    return bool(evaluate_mask(condition, EventColumns(pa.table({RULE: [EVENTS]})))[0])


def _either(conditions: Sequence[Expr]) -> Expr:
    if _TRUE in conditions:
        return _TRUE
    possible = [one for one in dict.fromkeys(conditions) if one != _FALSE]
    if not possible:
        return _FALSE
    either = possible[0]
    for one in possible[1:]:
        either = Call("or", (either, one), "BOOLEAN")
    return either
