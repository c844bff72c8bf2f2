"""Explains a rule: who evaluates what, what runs in parallel, what is carried, and what bounds that."""

from __future__ import annotations

from collections.abc import Sequence

from spark_pace.core.expr.render import to_text
from spark_pace.core.match.contexts import context_of
from spark_pace.core.match.contexts.context import Backwards, Forwards, OneOpen, UsingUp, Way
from spark_pace.core.match.release import must_wait
from spark_pace.core.plan.conditions import mentions_open, of_its_event, of_other_events
from spark_pace.core.plan.durations import show_duration, show_length
from spark_pace.core.plan.rule import (
    Component,
    CountSpan,
    GridSpan,
    Pattern,
    PredicateSpan,
    Rule,
    Span,
    Times,
)
from spark_pace.core.split.carry.joined import join_of


def explain(rule: Rule) -> tuple[str, ...]:
    """The plan of a rule in lines of text."""
    what = _whole_span_lines(rule) if rule.pattern is None else _pattern_lines(rule, rule.pattern)
    lines = [f"rule {rule.name}"]
    if rule.filter is not None:
        lines.append(f"  filter       {to_text(rule.filter)}  [intake, on whole columns]")
    lines += what
    lines += _span_lines(rule.span) if rule.span else []
    lines.append(f"  key          {_keys(rule)}")
    lines.append(f"  splitter     {_splitter(rule)}")
    lines.append(f"  parallel     {_parallel(rule)}")
    lines.append(f"  carried      {_carried(rule)}{_numbers(rule)}")
    lines.append(f"  bounded by   {_bound(rule)}")
    lines.append(f"  order        {_order(rule)}")
    emitted = ", ".join(f"{field.name} {field.type}" for field in rule.emit)
    lines.append(f"  emits        {emitted or 'the fixed columns only'}")
    return tuple(lines)


def _pattern_lines(rule: Rule, pattern: Pattern) -> list[str]:
    label = "sequence"
    lines = []
    for component in pattern.components:
        name = f"not {component.name}" if component.negated else component.name
        times = "" if component.times is None else f" {component.times}"
        lines.append(f"  {label:<12} {name}{times}: {_tested(component)}")
        label = ""
    lines += [line for index in range(len(pattern.components)) for line in _form_lines(rule, pattern, index)]
    for conjunct in pattern.where:
        negated = any(pattern.components[index].negated for index in conjunct.components)
        where = "on candidates and what may forbid them" if negated else "on candidates"
        lines.append(f"  where        {to_text(conjunct.expr)}  [{where}]")
    if pattern.contiguity == "strict":
        every = "every event that passes the filter" if rule.filter is not None else "every event"
        lines.append(f"  contiguity   strict: {every} counts, and none stands between two of a match")
    window = f", within {show_length(pattern.within)}" if pattern.within else ""
    close = ", close: window" if pattern.close == "window" else ""
    lines.append(f"  context      {pattern.context}{window}{close}")
    return lines


def _tested(component: Component) -> str:
    """A component's predicate, and who tests it."""
    others = of_other_events(component.predicate)
    if not any(map(mentions_open, others)):
        return f"{to_text(component.predicate)}  [intake, on whole columns]"
    inside = " and ".join(map(to_text, others))
    return f"{to_text(of_its_event(component.predicate))}  [intake]; {inside}  [operators, in each span]"


def _form_lines(rule: Rule, pattern: Pattern, index: int) -> list[str]:
    """What a component takes as a group, or forbids."""
    component = pattern.components[index]
    before = _neighbour(pattern.components[:index][::-1], "last")
    after = _neighbour(pattern.components[index + 1 :], "first")
    if component.times is not None:
        return [
            f"  group        {component.name}: {_group(pattern, component, component.times, before, after)}"
        ]
    if not component.negated:
        return []
    if after:
        return [f"  forbids      {component.name}: an event that matches it between {before} and {after}"]
    end = "the window that starts at the first event" if pattern.within else "the span"
    if pattern.within and rule.span:
        end += " or of the span"
    return [
        f"  forbids      {component.name}: an event that matches it after {before}, to the end of {end};",
        f"               a match is decided there: {_decided_by(rule, pattern)}",
    ]


def _decided_by(rule: Rule, pattern: Pattern) -> str:
    """What ends the wait for an event that may forbid."""
    if isinstance(rule.span, CountSpan) or (pattern.within is not None and pattern.within.events is not None):
        return "when so many events have come, whatever they match"
    return "by the frontier alone, so no event has to come"


def _neighbour(components: Sequence[Component], end: str) -> str:
    """The event next to a gap: that of the nearest component that is not negated, or one end of its group."""
    positive = [component for component in components if not component.negated]
    if not positive:
        return ""
    nearest, times = positive[0], positive[0].times
    if times is None:
        return nearest.name
    otherwise = f" (or {positive[1].name}, where there is none)" if times.least == 0 else ""
    return f"the {end} {nearest.name}{otherwise}"


def _group(pattern: Pattern, component: Component, times: Times, before: str, after: str) -> str:
    """Which events a group takes, and how many."""
    if before and after:
        where = f"between {before} and {after}"
    elif after:
        where = f"from the initiator on, before {after}"
    elif before:
        where = f"after {before}, up to the terminator"
    else:
        where = "from the initiator to the terminator"
    number = f"{times.least} or more" if times.most is None else f"{times.least} to {times.most}"
    if times.least == times.most:
        number = f"{times.most}"
    if not _walks(context_of(pattern).way):
        return f"every event that matches it {where}; {number}"
    soon = f"once there are {times.least}, " if times.least else ""
    end = f"; {soon}an event that can go to {after} goes there" if after else ", as few as will do"
    return f"the first events that match it {where}; {number}{end}"


def _walks(way: Way) -> bool:
    """Whether a match is what a walk takes, so that a group may leave out what matches it."""
    return way.inside is None if isinstance(way, OneOpen) else isinstance(way, Forwards) and way.in_turn


def _whole_span_lines(rule: Rule) -> list[str]:
    """What is done with the events of each span, where no pattern is sought in them."""
    if rule.operator is not None:
        return [f"  operator     {rule.operator}, called once for each span"]
    every = "every event that passes the filter" if rule.filter is not None else "every event"
    lines = [f"  aggregates   of {every} in each span  [operators, when it is closed]"]
    return lines if rule.having is None else [*lines, f"  where        {to_text(rule.having)}  [on spans]"]


def _span_lines(span: Span) -> list[str]:
    if isinstance(span, GridSpan):
        return [
            f"  span         {show_duration(span.size_us)} long, one every {show_duration(span.every_us)}"
        ]
    if isinstance(span, CountSpan):
        return [f"  span         {span.size} events long, one every {span.every} events"]
    closes = " and ".join(to_text(expr) for expr in (span.close, *span.close_where))
    return [
        f"  span         opens at {to_text(span.open)}",
        f"               closes at {closes}, or {show_duration(span.within_us)} after it opened",
    ]


def _keys(rule: Rule) -> str:
    if rule.partition_by:
        return ", ".join(rule.partition_by) + _until_forgotten(rule)
    join = join_of(rule)
    kept = "" if join is None else f"; of what is carried, a batch looks at values of {join.attribute}"
    return f"none: one stream, split into selections{kept}"


def _until_forgotten(rule: Rule) -> str:
    if rule.forget_key_after_us is None:
        return ""
    return f", each forgotten {show_duration(rule.forget_key_after_us)} after its last event"


def _numbers(rule: Rule) -> str:
    """What is known of the keys besides events."""
    if not rule.partition_by:
        return ""
    of = "key there ever was" if rule.forget_key_after_us is None else "key that is not forgotten"
    return f"; the numbers of each {of}"


def _splitter(rule: Rule) -> str:
    if rule.span is not None:
        return "puts the events in order, opens and closes the spans"
    assert rule.pattern is not None
    work = context_of(rule.pattern).way.work
    if work == "free":
        return "puts the events in order, opens a selection at every initiator"
    if work == "matched":
        return "puts the events in order and finds the matches: what one uses up decides the next"
    forms = any(component.negated or component.times for component in rule.pattern.components)
    how = ", which takes the matching kernel" if rule.pattern.where or forms else ""
    return f"puts the events in order and decides where each selection opens and closes{how}"


def _parallel(rule: Rule) -> str:
    keys = "; keys are spread over buckets" if rule.partition_by else ""
    if rule.span is not None:
        return f"operators work on lanes of whole spans{keys}"
    assert rule.pattern is not None
    work = context_of(rule.pattern).way.work
    if work == "free":
        whole = "whole keys" if rule.partition_by else "neighbouring selections"
        return f"operators match lanes of {whole}{keys}"
    if work == "matched":
        return f"operators compute the fields of the matches{keys}"
    return f"operators enumerate the matches inside closed selections{keys}"


def _carried(rule: Rule) -> str:
    if isinstance(rule.span, GridSpan | CountSpan):
        return "the events of spans that are not closed"
    if isinstance(rule.span, PredicateSpan):
        return "the events since the oldest span that is open"
    assert rule.pattern is not None
    way = context_of(rule.pattern).way
    if rule.pattern.within is None and isinstance(way, Backwards):
        return "the latest partial candidate of each length"
    if rule.pattern.within is None and isinstance(way, UsingUp):
        return "the partial candidates that wait for their next step"
    forbid = any(component.negated for component in rule.pattern.components)
    oldest = "the oldest selection that is open"
    if _waits_for_its_window(rule):
        oldest += " or has a match that is not decided"
    before = ", and a window before it" if isinstance(way, Backwards) and rule.merge == "selection" else ""
    return f"the events since {oldest}{before}{', those that may forbid among them' if forbid else ''}"


def _waits_for_its_window(rule: Rule) -> bool:
    """Whether a negated component in last place keeps matches undecided when their last events have come."""
    return rule.pattern is not None and rule.span is None and rule.pattern.components[-1].negated


def _bound(rule: Rule) -> str:
    span = rule.span
    if isinstance(span, GridSpan):
        return f"the events of {show_duration(span.size_us)}"
    if isinstance(span, CountSpan):
        return f"{span.size} events{_per_key(rule)}"
    if isinstance(span, PredicateSpan):
        return f"the events of {show_duration(span.within_us)}"
    assert rule.pattern is not None
    if rule.pattern.within is None:
        return _unbounded(rule, rule.pattern)
    twice = "twice " if _looks_back(rule, rule.pattern) else ""
    events = "" if rule.pattern.within.events else "the events of "
    return f"{events}{twice}{show_length(rule.pattern.within)}{_per_key(rule)}"


def _looks_back(rule: Rule, pattern: Pattern) -> bool:
    """Whether a window that starts before those that are open is needed too."""
    way = context_of(pattern).way
    if isinstance(way, Backwards) and rule.merge == "selection":
        return True
    return _waits_for_its_window(rule) and not (isinstance(way, Forwards) or _walks(way))


def _unbounded(rule: Rule, pattern: Pattern) -> str:
    if len(pattern.components) == 1:
        return "no event: every initiator completes itself"
    if isinstance(context_of(pattern).way, Backwards):
        steps = len(pattern.components)
        return f"{steps * (steps - 1) // 2} events{_per_key(rule)}"
    if rule.forget_key_after_us is not None:
        gap = show_duration(rule.forget_key_after_us)
        return f"the events of a key with gaps of at most {gap}; add within to bound it more closely"
    return "nothing: an initiator that no terminator follows waits for ever; add within to bound it"


def _per_key(rule: Rule) -> str:
    return " for each key" if rule.partition_by else ""


def _order(rule: Rule) -> str:
    by = "by the position at which a match is decided" if rule.merge == "detection" else "by selection"
    until = ["every earlier selection is resolved"] if must_wait(rule) else []
    until += ["its window has ended"] if _waits_for_its_window(rule) else []
    return f"{by}; a match waits {'until ' + ' and '.join(until) if until else 'for nothing'}"
