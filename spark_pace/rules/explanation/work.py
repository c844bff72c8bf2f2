"""Collects the facts about the work for a rule: splitter, operators, what is carried, what waits."""

from __future__ import annotations

from spark_pace.core.expr.canonical_text import canonical_duration, canonical_text
from spark_pace.core.functions.python_fold import MOST_STATE_BYTES
from spark_pace.core.match.contexts import context_of
from spark_pace.core.match.contexts.context import Backwards, Forwards, UsingUp, waits_for_its_window, walks
from spark_pace.core.match.method import method_of
from spark_pace.core.plan.absence_tests import AbsenceTest, absence_tests
from spark_pace.core.plan.fold import PythonFold
from spark_pace.core.plan.panes import holistic, panes_of
from spark_pace.core.plan.previous_tests import filtering, looking_back
from spark_pace.core.plan.rule import (
    CountSpan,
    GridSpan,
    Pattern,
    PredicateSpan,
    Rule,
    SessionSpan,
)
from spark_pace.core.plan.shape import optional_last_of, shape_of
from spark_pace.core.plan.time_units import length_in_words, show_events
from spark_pace.core.summaries.sketches import SIZE
from spark_pace.errors import counted
from spark_pace.rules.explanation.facts import CarriedFacts, OrderFacts, ParallelFacts
from spark_pace.rules.explanation.row_pattern_facts import bound_of_rows, kept_rows


def json_reader(rule: Rule, source_format: str | None) -> str | None:
    """The reader of events in JSON, in words; None if it reads matches, or events that are no JSON."""
    form = rule.schema.form
    if rule.reads or form.regex is not None or source_format in ("csv", "parquet", "columns"):
        return None
    for key, is_set in (("timestamp_format", form.time_formats), ("empty: null", form.empty_is_null)):
        if is_set:
            return f"pyarrow: compiled code does not know {key}"
    for field in rule.schema.own.fields:
        if not field.is_plain:
            return f"pyarrow: compiled code does not know {field.name} {field.type}"
    return "compiled code, where much is read; records that are not plain by pyarrow"


def splitter(rule: Rule) -> str:
    """The decisions of the splitter, in words."""
    if isinstance(rule.fold, PythonFold):
        return "puts the events in order; a process beside it calls the function"
    if rule.fold is not None:
        return "puts the events in order and moves the state of each key from event to event"
    if rule.rows is not None:
        return "puts the events in order, finds the matches of each key and computes their fields"
    if rule.span is not None:
        return "puts the events in order, opens and closes the spans"
    assert rule.pattern is not None
    work = context_of(rule.pattern).way.work
    if work == "free":
        return "puts the events in order, opens a selection at every initiator"
    if work == "matched" and rule.pattern.strategy == "merger_filter":
        return "puts the events in order, makes candidates and filters them, in one instance for each key"
    if work == "matched":
        return "puts the events in order and finds the matches: what one uses up decides the next"
    forms = any(component.negated or component.times for component in rule.pattern.components)
    how = ", which takes the matching kernel" if rule.pattern.where or forms else ""
    return f"puts the events in order and decides where each selection opens and closes{how}"


def parallel(rule: Rule) -> ParallelFacts:
    """The work that operators do in parallel, and why, in words."""
    keys = bool(rule.partition_by) and not rule.reads
    if rule.fold is not None:
        why = "the state behind an event decides about the next one, so a key's are taken one after the other"
        return ParallelFacts("compute fields", "matches", keys, why)
    if rule.rows is not None:
        why = "a match decides where the next one of its key is sought, so they are found one after the other"
        return ParallelFacts("make rows", "matches", keys, why)
    if rule.span is not None:
        why = "events alone open and close a span, whatever is found in others"
        return ParallelFacts("work on spans", "spans", keys, why)
    assert rule.pattern is not None
    way = context_of(rule.pattern).way
    if way.work == "free":
        why = "nothing is used up, so no match decides about another"
        return ParallelFacts("match", "keys" if keys else "selections", keys, why)
    if way.work == "closed":
        why = "what closes a selection decides where the next one opens; the matches inside decide nothing"
        return ParallelFacts("enumerate", "closed selections", keys, why)
    used = "its events" if isinstance(way, UsingUp) else "all events up to its last one"
    why = f"a match uses up {used}, so the matches of a key are found one after the other"
    return ParallelFacts("compute fields", "matches", keys, why)


def carried(rule: Rule) -> CarriedFacts:
    """The carried events, and the bound on them, in words."""
    bounded = rule.span is not None or rule.pattern is None or _is_bounded(rule, rule.pattern)
    bounded &= not (isinstance(rule.span, SessionSpan) and rule.span.within_us is None)
    return CarriedFacts(
        _events(rule), _numbers(rule), _last_values(rule), bounded, _bound(rule), _forbidding(rule)
    )


def order(rule: Rule) -> OrderFacts:
    """The order of matches, and what they wait for."""
    until = [] if rule.rows is None else ["no event that may still come can change it"]
    until += ["every earlier selection is resolved"] if method_of(rule).waits else []
    until += [_end_of_wait(rule)] if _waits_for_its_window(rule) else []
    in_order = rule.span is not None and rule.merge == "selection"
    if in_order and rule.pattern is not None and shape_of(rule.pattern).trailing:
        until.append("its span has ended")
    return OrderFacts(rule.merge, tuple(until))


def _end_of_wait(rule: Rule) -> str:
    """Until when a match waits for what may come behind its last event, in words."""
    assert rule.pattern is not None
    component = optional_last_of(rule.pattern)
    times = None if component is None else rule.pattern.components[component].times
    later = waits_for_its_window(rule.pattern, context_of(rule.pattern).way)
    if component is None or times is None or times.most is None or later:
        return "its window has ended"
    return f"its window has ended, or it takes no more {rule.pattern.components[component].name}"


def _numbers(rule: Rule) -> str | None:
    """The values carried for keys besides events, in words; None if there are none."""
    state = "the state" if rule.fold is not None else None
    if not rule.partition_by:
        return state
    of = "key there ever was" if rule.forget_key_after_us is None else "key that is not forgotten"
    return f"{'the numbers' if state is None else f'{state} and the numbers'} of each {of}"


def _last_values(rule: Rule) -> tuple[str, ...]:
    """The values of the last events that are kept for ``prev``, in words."""
    told = list[str]()
    for back in (filtering(rule, others_count=False), looking_back(rule, others_count=False)):
        which = "" if back is None or not back.before_filter else " before the filter"
        for columns in () if back is None else back.last:
            events = f"{len(columns)} events" if len(columns) > 1 else "event"
            told.append(f"{columns[0].attribute} of the last {events}{which}{_per_key(rule)}")
    return tuple(told)


def _forbidding(rule: Rule) -> tuple[str, ...]:
    """What is kept of the events of negated components in first place, in words."""
    absent = absence_tests(rule, others_count=False)
    if rule.pattern is None or absent is None or rule.span is not None:
        return ()
    return tuple(
        f"{absence.component.name}: {_kept(test)}{_per_key(rule)}{_compared(rule.pattern, test)}"
        for absence, test in zip(rule.pattern.absences, absent.tests, strict=True)
    )


def _compared(pattern: Pattern, test: AbsenceTest) -> str:
    """What is done with the events that are kept, in words; nothing where only the last time is."""
    if test.steps is None:
        return ""
    equal = ", if the values of both are equal" if test.equal else ""
    return f"; each that could be {pattern.components[0].name} is compared with them{equal}"


def _kept(test: AbsenceTest) -> str:
    """What is kept of a test's events, in words."""
    near = "" if test.within_us is None else f" of {canonical_duration(test.within_us)}"
    if test.steps is not None:
        return f"the events{near}"
    of = ", ".join(canonical_text(negated) for negated, _ in test.equal)
    return f"the time of the last event{near}" + (f" with each value of {of}" if of else "")


def _events(rule: Rule) -> str:
    if (panes := panes_of(rule)) is not None:
        pane = f"pane of {canonical_duration(panes.width_us)}{' and key' if rule.partition_by else ''}"
        sketches = sum(part == "sketch" for part, _ in panes.held)
        kind = "sketch" if sketches == 1 else "sketches"
        held = f", with {sketches} {kind} of {SIZE} bytes" if sketches else ""
        return f"a row for each {pane}{held}, in spans that are not closed"
    if rule.fold is not None:
        return "no event"
    if rule.rows is not None:
        return kept_rows(rule.rows)
    if isinstance(rule.span, GridSpan | CountSpan):
        whole = holistic(rule) if isinstance(rule.span, GridSpan) and rule.pattern is None else []
        because = f", for {canonical_text(whole[0])} needs all values at once" if whole else ""
        return f"the events of spans that are not closed{because}"
    if isinstance(rule.span, PredicateSpan):
        return "the events since the oldest span that is open"
    if isinstance(rule.span, SessionSpan):
        return "the events of sessions that are open"
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
    windows = "two windows" if _waits_for_its_window(rule) else "a window"
    before = f", and {windows} before it" if isinstance(way, Backwards) and rule.merge == "selection" else ""
    but = ", but those that can only end a match" if method_of(rule).ends_go else ""
    return f"the events since {oldest}{before}{', those that may forbid among them' if forbid else ''}{but}"


def _waits_for_its_window(rule: Rule) -> bool:
    """True if matches must wait after their last event: the last component is negated or optional."""
    return rule.pattern is not None and rule.span is None and bool(shape_of(rule.pattern).trailing)


def _bound(rule: Rule) -> str:
    span = rule.span
    if isinstance(span, GridSpan) and (panes := panes_of(rule)) is not None:
        rows = counted(span.size_us // panes.width_us, "row")
        return f"about {rows}{_per_key(rule)}, however many events come"
    if rule.fold is not None:
        each = " of each key" if rule.partition_by else ""
        least = f", of {MOST_STATE_BYTES >> 20} MiB at most" if isinstance(rule.fold, PythonFold) else ""
        return f"no event: the state{each}{least}"
    if rule.rows is not None:
        return bound_of_rows(rule, rule.rows)
    if isinstance(span, GridSpan):
        return f"the events of {canonical_duration(span.size_us)}"
    if isinstance(span, CountSpan):
        return show_events(span.size) + _per_key(rule)
    if isinstance(span, PredicateSpan):
        return f"the events of {canonical_duration(span.within_us)}"
    if isinstance(span, SessionSpan):
        if span.within_us is not None:
            return f"the events of {canonical_duration(span.within_us)}"
        return "nothing: a session goes on as long as events come; add within to its span"
    assert rule.pattern is not None
    if rule.pattern.within is None:
        return _without_window(rule, rule.pattern)
    windows = _windows(rule, rule.pattern)
    events = "the events of " if rule.pattern.within.time_us is not None else ""
    return f"{events}{windows}{length_in_words(rule.pattern.within)}{_per_key(rule)}"


def _windows(rule: Rule, pattern: Pattern) -> str:
    """How many windows are carried, in words that stand before their length: open ones, and those before."""
    way = context_of(pattern).way
    waits = _waits_for_its_window(rule)
    if isinstance(way, Backwards) and rule.merge == "selection":
        return "three times " if waits else "twice "
    return "twice " if waits and not (isinstance(way, Forwards) or walks(way)) else ""


def _is_bounded(rule: Rule, pattern: Pattern) -> bool:
    """True if a window, the number of components or the gaps of keys bound what is carried."""
    if pattern.within is not None or len(pattern.components) == 1:
        return True
    return isinstance(context_of(pattern).way, Backwards) or rule.forget_key_after_us is not None


def _without_window(rule: Rule, pattern: Pattern) -> str:
    if not _is_bounded(rule, pattern):
        return "nothing: an initiator that no terminator follows waits for ever; add within to bound it"
    if len(pattern.components) == 1:
        return "no event: every initiator completes itself"
    if isinstance(context_of(pattern).way, Backwards):
        steps = len(pattern.components)
        return show_events(steps * (steps - 1) // 2) + _per_key(rule)
    assert rule.forget_key_after_us is not None
    gap = canonical_duration(rule.forget_key_after_us)
    return f"the events of a key with gaps of at most {gap}; add within to bound it more closely"


def _per_key(rule: Rule) -> str:
    return " for each key" if rule.partition_by else ""
