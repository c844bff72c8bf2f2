"""Collects the facts that the rule file states itself: pattern, span, key, side tables, fold."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

from spark_pace.core.expr import Expr, conjunction
from spark_pace.core.expr.canonical_text import canonical_duration, canonical_text
from spark_pace.core.match.contexts import context_of
from spark_pace.core.match.contexts.context import ends_by_completion, waits_for_its_window, walks
from spark_pace.core.match.method import method_of
from spark_pace.core.plan.component import Component
from spark_pace.core.plan.conditions import of_its_event, of_other_events
from spark_pace.core.plan.fold import Fold, PythonFold
from spark_pace.core.plan.meaning import used_attributes
from spark_pace.core.plan.members import as_stated
from spark_pace.core.plan.previous_tests import filters_back
from spark_pace.core.plan.rule import Absence, CountSpan, GridSpan, Pattern, Rule, SessionSpan, Span
from spark_pace.core.plan.shape import optional_last_of, sequences_of
from spark_pace.core.plan.time_units import length_in_words, show_events
from spark_pace.rules.explanation.facts import (
    CANDIDATES,
    FORBIDDING,
    IN_ORDER,
    IN_SPANS,
    INTAKE,
    ON_SPANS,
    TAKING,
    AggregateFacts,
    ComponentFacts,
    ConditionFacts,
    FoldFacts,
    KeyFacts,
    LookupFacts,
    MemberFacts,
    MoveFacts,
    PatternFacts,
    SpanFacts,
)


def pattern_facts(rule: Rule, pattern: Pattern) -> PatternFacts:
    """The facts about a rule's pattern."""
    before = (expr for absence in pattern.absences for expr in absence.where)
    where = [
        ConditionFacts(canonical_text(expr), IN_ORDER if rule.span is None else IN_SPANS) for expr in before
    ]
    for conjunct in pattern.conditions:
        negated = any(pattern.components[index].negated for index in conjunct.components)
        text = canonical_text(as_stated(conjunct))
        where.append(ConditionFacts(text, FORBIDDING if negated else CANDIDATES))
    where += [ConditionFacts(canonical_text(as_stated(one)), TAKING) for one in pattern.taking]
    return PatternFacts(
        order=pattern.order,
        components=(
            *(_absence(rule, pattern, absence) for absence in pattern.absences),
            *(_component(rule, pattern, index) for index in range(len(pattern.components))),
        ),
        where=tuple(where),
        sequences=tuple(
            tuple(pattern.components[index].name for index in one) for one in sequences_of(pattern)
        ),
        strict=_others(rule) if pattern.contiguity == "strict" else None,
        context=str(pattern.context),
        within=length_in_words(pattern.within) if pattern.within else None,
        close=pattern.close,
    )


def filter_facts(rule: Rule) -> ConditionFacts | None:
    """The fact about a rule's filter; None if it has none."""
    if rule.filter is None:
        return None
    return ConditionFacts(canonical_text(rule.filter), IN_ORDER if filters_back(rule) else INTAKE)


def aggregate_facts(rule: Rule) -> AggregateFacts | None:
    """The facts about a rule that aggregates; None for all others."""
    if any(one is not None for one in (rule.pattern, rule.operator, rule.fold, rule.rows)):
        return None
    where = None if rule.having is None else ConditionFacts(canonical_text(rule.having), ON_SPANS)
    return AggregateFacts("every event that passes the filter" if rule.filter else "every event", where)


def _absence(rule: Rule, pattern: Pattern, absence: Absence) -> ComponentFacts:
    component, first = absence.component, pattern.components[0].name
    parts = _parts(rule, component.predicate)
    near = "any time" if absence.within_us is None else f"{canonical_duration(absence.within_us)} at most"
    near += "" if rule.span is None else " and in the same span"
    return ComponentFacts(
        name=component.name,
        condition=canonical_text(component.predicate),
        decided=parts[-1].decided,
        parts=parts,
        times=None,
        negated=True,
        takes=None,
        forbids=f"an event that matches it, {near} before one that could be {first}: that one cannot",
        decided_by=None,
        follows=None,
    )


def _component(rule: Rule, pattern: Pattern, index: int) -> ComponentFacts:
    component = pattern.components[index]
    before = _neighbour(pattern.components[:index][::-1], "last")
    after = _neighbour(pattern.components[index + 1 :], "first")
    takes = forbids = decided_by = None
    parts = _parts(rule, component.predicate)
    if index == optional_last_of(pattern):
        takes = _group(pattern, component, before, f"to the end of {_end(rule, pattern)}")
        decided_by = _decided_by(rule, pattern)
        if component.times is not None and not waits_for_its_window(pattern, context_of(pattern).way):
            full = "; sooner at the event after which it takes no more"
            decided_by += "" if component.times.most is None else full
    elif component.times is not None:
        takes = _group(pattern, component, before, after)
    elif component.negated and after:
        forbids = f"an event that matches it between {before} and {after}"
    elif component.negated:
        forbids = f"an event that matches it after {before}, to the end of {_end(rule, pattern)}"
        decided_by = _decided_by(rule, pattern)
    return ComponentFacts(
        name=component.name,
        condition=canonical_text(component.predicate),
        decided=parts[-1].decided,
        parts=parts,
        times=None if component.times is None else str(component.times),
        negated=component.negated,
        takes=takes,
        forbids=forbids,
        decided_by=decided_by,
        follows=_follows(rule, pattern, index),
        until=None if component.until is None else canonical_text(component.until.predicate),
        further=None if component.further is None else canonical_text(component.further),
        members=tuple(MemberFacts(one.name, _parts(rule, one.predicate)) for one in component.members),
    )


def _end(rule: Rule, pattern: Pattern) -> str:
    """What ends the wait for what may come behind the last component, in words."""
    if pattern.within is None:
        return "the span"
    return f"the window that starts at the first event{' or of the span' if rule.span else ''}"


def _follows(rule: Rule, pattern: Pattern, index: int) -> str | None:
    """What stands before the component's events, in words; None if any other event may."""
    component = pattern.components[index]
    if component.follows != "strict":
        return None
    before = _neighbour(pattern.components[:index][::-1], "last")
    where = f"right behind {before}" if before else ""
    if component.runs:
        where = f"{where + ', and ' if where else ''}its events right behind each other"
    return f"{where}; {_others(rule)} counts"


def _others(rule: Rule) -> str:
    """Which events count as neighbours, in words."""
    return "every event that passes the filter" if rule.filter is not None else "every event"


def _parts(rule: Rule, predicate: Expr) -> tuple[ConditionFacts, ...]:
    """Split a component's condition into the part about the event alone and the part about other events."""
    alone, others = of_its_event(predicate), of_other_events(predicate)
    found = [ConditionFacts(canonical_text(alone), INTAKE)] if not others or alone != conjunction([]) else []
    if others:
        text = " and ".join(map(canonical_text, others))
        found.append(ConditionFacts(text, IN_ORDER if rule.span is None else IN_SPANS))
    return tuple(found)


def _decided_by(rule: Rule, pattern: Pattern) -> str:
    """The end of the wait for an event that may forbid, in words."""
    if isinstance(rule.span, CountSpan) or (pattern.within is not None and pattern.within.events is not None):
        timed = rule.span is None and pattern.within is not None and pattern.within.time_us is not None
        return f"when so many events have come, whatever they match{', or by the frontier' if timed else ''}"
    return "by the frontier alone, so no event has to come"


def _neighbour(components: Sequence[Component], end: str) -> str:
    """The event next to a gap, in words: of the nearest component not negated, or one end of its group.

    Behind optional ones, whose groups may be empty, follow those that may stand there in their place.
    """
    optional, nearest = _may_be_next(components)
    names = [f"the {end} {one.name}" for one in optional]
    names += [] if nearest is None else [f"the {end} {nearest.name}" if nearest.times else nearest.name]
    if nearest is None and names:
        names[-1] += " (if there is one)" if len(names) == 1 else ", if there is one"
    if len(names) < 3:
        return " (or ".join(names) + (", where there is none)" if len(names) == 2 else "")
    return f"{names[0]} (else {', else '.join(names[1:])})"


def _may_be_next(components: Sequence[Component]) -> tuple[list[Component], Component | None]:
    """The optional components that stand next to a gap, and the one behind them that is not."""
    positive = [component for component in components if not component.negated]
    optional = [*takewhile(lambda one: one.times is not None and one.times.least == 0, positive)]
    return optional, next(iter(positive[len(optional) :]), None)


def _group(pattern: Pattern, component: Component, before: str, after: str) -> str:
    """The events that a group takes, and their number, in words.

    Behind an optional component in last place stands no other: `after` is up to where it goes.
    """
    times, until, further = component.times, component.until, component.further
    assert times is not None
    is_behind = optional_last_of(pattern) is not None and component == pattern.components[-1]
    if is_behind:
        where = f"after {before}, {after}"
    elif before and after:
        where = f"between {before} and {after}"
    elif after:
        where = (
            f"from the initiator on, before {after}{'' if times.least else ', unless that is the initiator'}"
        )
    elif before:
        where = f"after {before}, up to the terminator"
    else:
        where = "from the initiator to the terminator"
    if until is not None:
        where += f", up to the first event there with {canonical_text(until.predicate)} and without it"
    if further is not None:
        where += f", those behind the first only with {canonical_text(further)} of the events so far"
    if component.runs:
        where += ", as long as no other event stands between"
    number = f"{times.least} or more" if times.most is None else f"{times.least} to {times.most}"
    if times.least == times.most:
        number = f"{times.most}"
    if is_behind and pattern.taking:
        where += f", only with {' and '.join(canonical_text(as_stated(one)) for one in pattern.taking)}"
    if is_behind:
        return f"the first events that match it {where}; {number}"
    if not walks(context_of(pattern).way):
        few = not after and times.most != times.least and ends_by_completion(context_of(pattern).way)
        end = ", as few as will do: the first event that completes a match ends it" if few else ""
        return f"every event that matches it {where}{_begin(pattern, component)}; {number}{end}"
    soon = f"once there are {times.least}, " if times.least else ""
    end = f"; {soon}{_goes(pattern, component)}" if after else ", as few as will do"
    return f"the first events that match it {where}; {number}{end}"


def _goes(pattern: Pattern, component: Component) -> str:
    """To which components the walk of *next* can go on from a group, in words."""
    optional, nearest = _may_be_next(pattern.components[pattern.components.index(component) + 1 :])
    names = [one.name for one in (*optional, nearest) if one is not None]
    if len(names) == 1:
        return f"an event that can go to {names[0]} goes there"
    return (
        f"an event that can go to {', '.join(names[:-1])} or {names[-1]} goes to the last of them that it can"
    )


def _begin(pattern: Pattern, component: Component) -> str:
    """Where a group begins that directly follows another one, in words."""
    positive = [one for one in pattern.components if not one.negated]
    before = [*takewhile(lambda one: one.times, positive[positive.index(component) - 1 :: -1])]
    if component == positive[0] or not before:
        return ""
    enough = (
        f" once there are {one.times.least} {one.name}" for one in before if one.times and one.times.least
    )
    return f", beginning with the first one{next(enough, '')}"


def span_facts(span: Span) -> SpanFacts:
    """The facts about a span."""
    if isinstance(span, GridSpan):
        return SpanFacts("time", canonical_duration(span.every_us), canonical_duration(span.size_us))
    if isinstance(span, CountSpan):
        return SpanFacts("events", show_events(span.every), show_events(span.size))
    if isinstance(span, SessionSpan):
        within = None if span.within_us is None else canonical_duration(span.within_us)
        return SpanFacts("sessions", gap=canonical_duration(span.gap_us), within=within)
    closes = " and ".join(canonical_text(expr) for expr in (span.close, *span.close_where))
    within = canonical_duration(span.within_us)
    return SpanFacts("between events", open=canonical_text(span.open), close=closes, within=within)


def lookup_facts(rule: Rule) -> tuple[LookupFacts, ...]:
    """The side tables that a rule uses; also for events of the input that it reads besides matches."""
    used = used_attributes(rule)
    schemas = [one.schema for one in (rule, *rule.reads) if one is rule or one.hands_on]
    facts = []
    for side in (side for schema in schemas for side in schema.side_tables):
        names = tuple(field.name for field in side.fields if field.name in used)
        if names:
            on = tuple(attribute for attribute, _ in side.on)
            facts.append(LookupFacts(side.name, side.path, on, names))
    return tuple(facts)


def fold_facts(fold: Fold) -> FoldFacts:
    """The facts about a fold."""
    if isinstance(fold, PythonFold):
        return FoldFacts(fold.function, fold.version, None, ())
    moves = []
    for move in fold.moves:
        sources = tuple(fold.states[source] for source in move.sources)
        condition = None if move.condition is None else _of_move(fold.conditions[move.condition])
        moves.append(MoveFacts(sources, condition, fold.states[move.target], move.emits))
    return FoldFacts(None, None, fold.states[0], tuple(moves))


def _of_move(condition: Expr) -> ConditionFacts:
    return ConditionFacts(canonical_text(condition), IN_ORDER if of_other_events(condition) else INTAKE)


def key_facts(rule: Rule) -> KeyFacts:
    """The facts about a rule's keys."""
    gap_us = rule.forget_key_after_us
    forget = None if gap_us is None else canonical_duration(gap_us)
    return KeyFacts(rule.partition_by, forget, method_of(rule).join)
