"""The meaning of a rule as text, part by part. Comparing it tells if a state was made by the same rule.

The parts depend on the rule and the attributes that it uses, not on its description, on whether it is paused,
on other rules, or on attributes that only other rules use. Checkpoints keep the parts, so no release may
change their text; nor that of the length of a window: ``30 min``, ``1000 events``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import lru_cache

from spark_pace.core.expr import Aggregate, Column, Expr, Previous, conjunction, walk
from spark_pace.core.expr.canonical_text import canonical_duration, canonical_text
from spark_pace.core.plan.conditions import of_other_events
from spark_pace.core.plan.members import conditions_by_bit
from spark_pace.core.plan.row_pattern import (
    Alternatives,
    Computed,
    End,
    Excluded,
    MatchNumber,
    Node,
    Repetition,
    RowPattern,
    Sequence,
    Slot,
    Start,
    Summary,
    Variable,
)
from spark_pace.core.plan.rule import (
    Absence,
    Component,
    EmitField,
    EventSchema,
    Fold,
    GridSpan,
    Pattern,
    PredicateSpan,
    PythonFold,
    Rule,
    SessionSpan,
    Span,
    Within,
)
from spark_pace.core.plan.shape import sequences_of

# Rule files may use every unit of this table. Checkpoints keep lengths in the units of
# `spark_pace.core.expr.canonical_text`, which never change.
UNITS_US = {
    "us": 1,
    "ms": 1_000,
    "s": 1_000_000,
    "min": 60_000_000,
    "h": 3_600_000_000,
    "d": 86_400_000_000,
}


def show_length(within: Within) -> str:
    """The text of a window's length, such as ``30 min``. Checkpoints keep this text, so it never changes."""
    return ", ".join(_lengths(within, lambda events: f"{events} events"))


def length_in_words(within: Within) -> str:
    """The text of a window's length for people, such as ``30 min``, ``1 event`` or ``30 min and 1 event``."""
    return " and ".join(_lengths(within, show_events))


def _lengths(within: Within, show: Callable[[int], str]) -> list[str]:
    """The texts of a window's time and of its number of events, as far as it has them."""
    times = [] if within.time_us is None else [canonical_duration(within.time_us)]
    return times if within.events is None else [*times, show(within.events)]


def show_events(count: int) -> str:
    """A number of events, as a rule file would have it."""
    return "1 event" if count == 1 else f"{count} events"


def rule_parts(rule: Rule) -> dict[str, str]:
    """The parts of a rule, by their names in a rule file. Parts that the rule does not have are left out.

    An internal rule, which hands on events, has no parts but `merge`: the rule that reads it decides what it
    gives.
    """
    if rule.hands_on:
        return {"merge": rule.merge}
    parts = {"operator": rule.operator or ""} if rule.pattern is None else _pattern_parts(rule.pattern)
    if rule.fold is not None:
        parts["fold"] = fold_text(rule.fold)
    if rule.rows is not None:
        parts["match_recognize"] = row_pattern_text(rule.rows)
    if rule.having is not None:
        parts["where"] = canonical_text(rule.having)
    if rule.span is not None:
        parts["span"] = _span_text(rule.span)
    if rule.filter is not None:
        parts["filter"] = canonical_text(rule.filter)
    if rule.partition_by:
        parts["partition_by"] = ", ".join(rule.partition_by)
    if rule.forget_key_after_us is not None:
        parts["forget_key_after"] = canonical_duration(rule.forget_key_after_us)
    if rule.reads:
        parts["from"] = ", ".join(map(_read_text, rule.reads))
    parts["merge"] = rule.merge
    parts["emit"] = ", ".join(map(_emit_text, rule.emit))
    parts |= _schema_parts(rule.schema, used_attributes(rule))
    return {name: text for name, text in parts.items() if text}


def fingerprint(parts: Mapping[str, str]) -> str:
    """The SHA-256 digest of a rule's parts, in hexadecimal digits."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


@lru_cache(maxsize=4096)
def _read_text(rule: Rule) -> str:
    """A lower rule's name with a checksum of its meaning, so that the reader's meaning changes with it."""
    return "events" if rule.hands_on else f"{rule.name} {fingerprint(rule_parts(rule))[:12]}"


def used_attributes(rule: Rule) -> set[str]:
    """The attributes on which the rule's matches depend. A Python function sees all of them."""
    if rule.function is not None:
        return {field.name for field in rule.schema.fields}
    used = attributes_of([*_predicates(rule), *expressions_over_matches(rule)])
    return {rule.schema.event_time, *rule.partition_by, *rule.schema.tie_break, *used}


def attributes_of(exprs: Iterable[Expr]) -> set[str]:
    """The attributes that expressions name."""
    exprs = list(exprs)
    computed, earlier = computed_of(exprs), previous_of(exprs)
    inside = attributes_of(computed.values()) if computed else set()
    return (columns_of(exprs) - {*computed, *earlier}) | inside | {one.attribute for one in earlier.values()}


def columns_of(exprs: Iterable[Expr]) -> set[str]:
    """The columns that expressions read: attributes, and what stands beside them.

    That is what is computed of events for aggregates, and attributes of events before those of components.
    """
    exprs = list(exprs)
    nodes = [node for expr in exprs for node in walk(expr)]
    used = {node.attribute for node in nodes if isinstance(node, Column | Aggregate)}
    used |= {node.attribute for node in nodes if isinstance(node, Previous) and node.component is None}
    return {name for name in used if name is not None} | {*previous_of(exprs)}


def previous_of(exprs: Iterable[Expr]) -> dict[str, Previous]:
    """The attributes of events before those of components, by the names of columns with their values."""
    nodes = (node for expr in exprs for node in walk(expr))
    found = (node for node in nodes if isinstance(node, Previous) and node.component is not None)
    return {node.column: replace(node, component=None) for node in found}


def computed_of(exprs: Iterable[Expr]) -> dict[str, Expr]:
    """The expressions inside aggregates, by the names of the columns into which they are computed."""
    nodes = (node for expr in exprs for node in walk(expr))
    return {
        node.attribute: node.of
        for node in nodes
        if isinstance(node, Aggregate) and node.of is not None and node.attribute is not None
    }


def expressions_over_matches(rule: Rule) -> list[Expr]:
    """The expressions that are computed after the intake: all but predicates over a single event."""
    exprs = [field.expr for field in rule.emit if field.expr is not None]
    if rule.pattern is not None:
        exprs += rule.pattern.over_several
        for _, condition in conditions_by_bit(rule) if rule.span is not None else ():
            exprs += of_other_events(condition)
        for absence in rule.pattern.absences if rule.span is not None else ():
            exprs += absence.where
    if isinstance(rule.span, PredicateSpan):
        exprs += rule.span.close_where
    exprs += [] if rule.rows is None else rule.rows.reads
    return exprs if rule.having is None else [*exprs, rule.having]


def _predicates(rule: Rule) -> list[Expr]:
    exprs = [*([] if rule.filter is None else [rule.filter]), *rule.conditions]
    exprs += [expr for absence in rule.pattern.absences for expr in absence.where] if rule.pattern else []
    if isinstance(rule.span, PredicateSpan):
        exprs += [rule.span.open, rule.span.close]
    return exprs


def _schema_parts(schema: EventSchema, used: set[str]) -> dict[str, str]:
    types = sorted(f"{field.name} {field.type}" for field in schema.fields if field.name in used)
    return {
        "schema": ", ".join(types),
        "event_time": schema.event_time + (f" in {schema.time_unit}" if schema.time_unit else ""),
        "tie_break": ", ".join(schema.tie_break),
    }


def _emit_text(field: EmitField) -> str:
    computed = "" if field.expr is None else f" = {canonical_text(field.expr)}"
    return f"{field.name} {field.type}{computed}"


def _pattern_parts(pattern: Pattern) -> dict[str, str]:
    return {
        "pattern": "; ".join(
            [*map(_absence_text, pattern.absences), *map(_component_text, pattern.components)]
        ),
        "order": _order_text(pattern),
        "where": "; ".join(
            canonical_text(one.stated or one.expr) for one in pattern.every_condition if not one.is_order
        ),
        "within": show_length(pattern.within) if pattern.within is not None else "",
        "context": f"{pattern.context.selection}, {pattern.context.consumption}",
        "close": pattern.close,
        "contiguity": pattern.contiguity if pattern.contiguity != "relaxed" else "",
    }


def _order_text(pattern: Pattern) -> str:
    if pattern.order == "sequence":
        return ""
    names = [component.name for component in pattern.components]
    inside = (", then ".join(names[index] for index in one) for one in sequences_of(pattern))
    return "; ".join([pattern.order, *inside])


def fold_text(fold: Fold) -> str:
    """A fold's states and moves, or its function, as text. Checkpoints keep this text."""
    if isinstance(fold, PythonFold):
        return fold.function if fold.version == 1 else f"{fold.function} version {fold.version}"
    moves = []
    for move in fold.moves:
        sources = ", ".join(fold.states[source] for source in move.sources)
        when = "true" if move.condition is None else canonical_text(fold.conditions[move.condition])
        emits = "" if move.emits else " without a match"
        moves.append(f"from {sources} when {when} to {fold.states[move.target]}{emits}")
    return "; ".join([f"initial {fold.states[0]}", *moves])


def _component_text(component: Component) -> str:
    name = f"not {component.name}" if component.negated else component.name
    times = "" if component.times is None else f" {component.times}"
    follows = f" follows {component.follows}" if component.follows != "relaxed" else ""
    listed = [f"{member.name}: {canonical_text(member.predicate)}" for member in component.members]
    either = f" as either {', or '.join(listed)}" if listed else ""
    until = "" if component.until is None else f" until {canonical_text(component.until.predicate)}"
    further = "" if component.further is None else f" and then {canonical_text(component.further)}"
    return f"{name}{times}{follows}: {canonical_text(component.predicate)}{either}{further}{until}"


def _absence_text(absence: Absence) -> str:
    within = "" if absence.within_us is None else f" within {canonical_duration(absence.within_us)}"
    where = [f" where {canonical_text(conjunction(absence.where))}"] if absence.where else []
    return "".join([_component_text(absence.component), within, *where])


def _span_text(span: Span) -> str:
    if isinstance(span, PredicateSpan):
        closing = "; ".join(canonical_text(expr) for expr in (span.close, *span.close_where))
        return (
            f"open {canonical_text(span.open)}, close {closing}, within {canonical_duration(span.within_us)}"
        )
    if isinstance(span, GridSpan):
        return f"every {canonical_duration(span.every_us)}, size {canonical_duration(span.size_us)}"
    if isinstance(span, SessionSpan):
        within = "" if span.within_us is None else f", within {canonical_duration(span.within_us)}"
        return f"gap {canonical_duration(span.gap_us)}{within}"
    return f"every {span.every} events, size {span.size} events"


def row_pattern_text(rows: RowPattern) -> str:
    """A row pattern as text. Checkpoints keep this text."""
    names = rows.variables
    skip = rows.skip + "".join(f" {names[one]}" for one in rows.skip_variables)
    within = "" if rows.within_us is None else f" within {canonical_duration(rows.within_us)}"
    defined = []
    for number, one in enumerate(rows.conditions):
        parts = (_computed_text(part, names) for part in (*one.fixed, *one.of_match))
        defined.append(f"{names[number]} as {' and '.join(parts)}")
    measures = [f"{one.name} = {_computed_text(one.value, names)}" for one in rows.measures]
    pattern = f"{node_text(rows.pattern, names)}{within}"
    return "; ".join([pattern, f"skip {skip}", *defined, *measures])


def node_text(node: Node, names: tuple[str, ...]) -> str:
    """A part of a row pattern as text; `names` are those of its variables."""
    if isinstance(node, Variable):
        return names[node.number]
    if isinstance(node, Sequence | Alternatives):
        parts = node.parts if isinstance(node, Sequence) else node.choices
        sign = " " if isinstance(node, Sequence) else " | "
        return f"({sign.join(node_text(part, names) for part in parts)})"
    if isinstance(node, Repetition):
        most, mark = "" if node.most is None else node.most, "" if node.greedy else "?"
        return f"{node_text(node.part, names)}{{{node.least},{most}}}{mark}"
    if isinstance(node, Excluded):
        return f"{{- {node_text(node.part, names)} -}}"
    return "^" if isinstance(node, Start) else "$" if isinstance(node, End) else "()"


def _computed_text(computed: Computed, names: tuple[str, ...]) -> str:
    slots = ", ".join(_slot_text(slot, names) for slot in computed.slots)
    return f"{canonical_text(computed.expr)} of [{slots}]"


def _slot_text(slot: Slot, names: tuple[str, ...]) -> str:
    if isinstance(slot, MatchNumber):
        return "match number"
    of = "*" if slot.of is None else canonical_text(slot.of)
    rows = "all" if slot.variables is None else "|".join(names[one] for one in slot.variables)
    final = "final " if slot.final else ""
    if isinstance(slot, Summary):
        return f"{final}{slot.function} of {of} in {rows}"
    inside = " inside" if slot.inside else ""
    return f"{final}{'first' if slot.first else 'last'} {slot.back} {slot.shift:+d} of {of} in {rows}{inside}"
