"""How a rule is executed, as `explain` tells it: what is decided where, what is parallel, carried and waits.

`explain_as_json` has all that is told, under the keys that docs/rules/explain.md lists. They do not change; a
release may add some. `explain` says the same in lines.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from spark_pace.core.expr import Expr, Literal, conjunction
from spark_pace.core.expr.canonical_text import canonical_duration, canonical_text
from spark_pace.core.match.contexts import context_of
from spark_pace.core.match.contexts.contexts import Backwards, Forwards, UsingUp, waits_for_its_window, walks
from spark_pace.core.match.delay import delay_us
from spark_pace.core.match.method import method_of
from spark_pace.core.match.row_patterns.match_programs import tests_of
from spark_pace.core.plan.conditions import of_its_event, of_other_events
from spark_pace.core.plan.earlier_tests import (
    AbsenceTest,
    absence_tests,
    filtering,
    filters_back,
    looking_back,
)
from spark_pace.core.plan.lower_rules import EVENTS, levels_of, name_in_from
from spark_pace.core.plan.meaning import length_in_words, show_events
from spark_pace.core.plan.members import as_stated
from spark_pace.core.plan.plan import holistic, panes_of
from spark_pace.core.plan.row_pattern import RowPattern
from spark_pace.core.plan.rule import (
    Component,
    CountSpan,
    GridSpan,
    Pattern,
    PredicateSpan,
    PythonFold,
    Rule,
    SessionSpan,
    StateMachine,
)
from spark_pace.core.plan.shape import optional_last_of, shape_of
from spark_pace.core.python_functions import MOST_STATE_BYTES
from spark_pace.core.summaries.distribution import SIZE
from spark_pace.errors import counted
from spark_pace.rules.cost import Told, cost_of
from spark_pace.rules.match_recognize import longest

INTAKE = "intake"  # decided on whole columns, before events are put in order
IN_ORDER = "splitter, in stream order"  # decided on whole columns, when events are in order
IN_SPANS = "operators, in each span"


def explain(rule: Rule, source_format: str | None = None) -> tuple[str, ...]:
    """Explain a rule in lines of text; `source_format` is that of its job's source, if it is known."""
    lines, told = [f"rule {rule.name}"], explain_as_json(rule, source_format)
    if rule.reads:
        told["parallel"] = {"why": told["parallel"]["why"]}
    for key, value in told.items():
        texts = [] if key == "rule" else _texts(value)
        lines += [f"  {'' if place else key:<12} {text}" for place, text in enumerate(texts)]
    return tuple(lines)


def explain_as_json(rule: Rule, source_format: str | None = None) -> Told:
    """Explain a rule in values that JSON has; what is not set is None."""
    splitter, operators, lanes, why = _work(rule)
    if rule.reads:
        why = "nothing is parallel: rules over rules run in the merger, on one core of the driver"
    gap_us = rule.forget_key_after_us
    return {
        "rule": rule.name,
        "levels": _levels(rule) if rule.reads else None,
        "conditions": [
            {"of": of, "condition": text, "decided": decided} for of, text, decided in _conditions(rule)
        ],
        "key": {
            "partition_by": [*rule.partition_by],
            "forget_after": None if gap_us is None else canonical_duration(gap_us),
            "join": method_of(rule).join,
        },
        "json": _json_reader(rule, source_format),
        "splitter": f"puts the events in order, {splitter}",
        "parallel": {
            "operators": operators,
            "lanes": lanes,
            "buckets": bool(rule.partition_by) and not rule.reads,
            "why": why,
        },
        "carried": _carried(rule),
        "order": {"by": rule.merge, "waits_until": [*_waits(rule)]},
        "emits": [{"name": field.name, "type": field.type} for field in rule.emit],
        "cost": cost_of(rule),
    }


def _json_reader(rule: Rule, source_format: str | None) -> str | None:
    """The reader of events in JSON, in words; None if it reads matches, or events that are no JSON."""
    form = rule.schema.form
    if rule.reads or form.regex is not None or source_format in ("csv", "parquet", "columns"):
        return None
    odd = ["timestamp_format"] * bool(form.time_formats) + ["empty: null"] * form.empty_is_null
    odd += [f"{field.name} {field.type}" for field in rule.schema.own.fields if not field.is_plain]
    if odd:
        return f"pyarrow: compiled code does not know {odd[0]}"
    return "compiled code, where much is read; records that are not plain by pyarrow"


# ---------------------------------------------------------------- where conditions are decided


def _conditions(rule: Rule) -> Iterator[tuple[str, str | None, str]]:
    """(what it is of, the condition, where it is decided); no condition for one of a row pattern."""
    if rule.filter is not None:
        yield "filter", canonical_text(rule.filter), IN_ORDER if filters_back(rule) else INTAKE
    if isinstance(rule.span, PredicateSpan):
        yield "open", canonical_text(rule.span.open), INTAKE
        yield "close", canonical_text(rule.span.close), INTAKE
        yield from (("close", canonical_text(one), IN_ORDER) for one in rule.span.close_where)
    if rule.pattern is not None:
        yield from _of_pattern(rule, rule.pattern)
    if isinstance(rule.fold, StateMachine):
        for one in rule.fold.conditions:
            yield "move", canonical_text(one), IN_ORDER if of_other_events(one) else INTAKE
    if rule.having is not None:
        yield "where", canonical_text(rule.having), "spans"
    if rule.rows is not None:
        yield from _of_rows(rule.rows)


def _of_pattern(rule: Rule, pattern: Pattern) -> Iterator[tuple[str, str, str]]:
    later = IN_ORDER if rule.span is None else IN_SPANS
    for component in pattern.every:
        name = f"not {component.name}" if component.negated else component.name
        for own, predicate in _predicates(name, component):
            alone, others = of_its_event(predicate), of_other_events(predicate)
            if not others or alone != conjunction([]):
                yield own, canonical_text(alone), INTAKE
            if others:
                yield own, " and ".join(map(canonical_text, others)), later
        if component.further is not None:
            yield name, canonical_text(component.further), "candidates"
    for absence in pattern.absences:
        yield from (("where", canonical_text(expr), later) for expr in absence.where)
    for one in (*pattern.conditions, *pattern.taking):
        decided = "events behind a match" if one in pattern.taking else "candidates"
        negated = any(pattern.components[index].negated for index in one.components)
        yield "where", canonical_text(as_stated(one)), f"{decided}{' and what may forbid them' * negated}"


def _predicates(name: str, component: Component) -> Iterator[tuple[str, Expr]]:
    """(what it is of, the condition) for each condition that a component asks of single events."""
    yield from ((f"{name}: {one.name}", one.predicate) for one in component.members)
    if not component.members:
        yield name, component.predicate
    if component.until is not None:
        yield f"{name} until", component.until.predicate


def _of_rows(rows: RowPattern) -> Iterator[tuple[str, None, str]]:
    by_python = {one.variable for one in tests_of(rows) if not one.is_program}
    for place, (name, one) in enumerate(zip(rows.variables, rows.conditions, strict=True)):
        if one.of_match:
            how = "event by event, beside the match so far" + ", by Python" * (place in by_python)
            yield name, None, f"splitter, {how}"
        elif one.fixed:
            yield name, None, "splitter, for all events at once"


# ---------------------------------------------------------------- who does what


def _work(rule: Rule) -> tuple[str, str, str, str]:
    """What the splitter does besides the order, what operators do, on lanes of what, and why so, in words."""
    keys = bool(rule.partition_by) and not rule.reads
    if rule.fold is not None:
        moves = "moves the state of each key from event to event"
        does = "while a process beside it calls the function" if isinstance(rule.fold, PythonFold) else moves
        why = "the state behind an event decides about the next one, so a key's are taken one after the other"
        return does, "compute fields", "matches", why
    if rule.rows is not None:
        why = "a match decides where the next one of its key is sought, so they are found one after the other"
        return "finds the matches of each key and computes their fields", "make rows", "matches", why
    if rule.span is not None:
        why = "events alone open and close a span, whatever is found in others"
        return "opens and closes the spans", "work on spans", "spans", why
    assert rule.pattern is not None
    pattern, way = rule.pattern, context_of(rule.pattern).way
    if way.work == "free":
        why = "nothing is used up, so no match decides about another"
        return "opens a selection at every initiator", "match", "keys" if keys else "selections", why
    if way.work == "closed":
        forms = any(component.negated or component.times for component in pattern.components)
        how = ", which takes the matching kernel" if pattern.where or forms else ""
        why = "what closes a selection decides where the next one opens; the matches inside decide nothing"
        return f"decides where each selection opens and closes{how}", "enumerate", "closed selections", why
    used = "its events" if isinstance(way, UsingUp) else "all events up to its last one"
    why = f"a match uses up {used}, so the matches of a key are found one after the other"
    does = "finds the matches: what one uses up decides the next"
    if pattern.strategy == "merger_filter":
        does = "makes candidates and filters them, in one instance for each key"
    return does, "compute fields", "matches", why


def _waits(rule: Rule) -> Iterator[str]:
    """What a match waits for, in this order, in words."""
    pattern = rule.pattern
    if rule.rows is not None:
        behind = max([rule.rows.beyond, *rule.rows.ahead])
        more = f", and {counted(behind, 'event')} behind its last one {'is' if behind == 1 else 'are'} there"
        yield f"no event that may still come can change it{more if behind else ''}"
    if method_of(rule).waits:
        yield "every earlier selection is resolved"
    if pattern is None or not shape_of(pattern).trailing:
        return
    if rule.span is not None:
        yield from ["its span has ended"] * (rule.merge == "selection")
        return
    last, full = optional_last_of(pattern), ""
    times = None if last is None else pattern.components[last].times
    if last is not None and times is not None and times.most is not None:
        full = f", or it takes no more {pattern.components[last].name}"
    yield f"its window has ended{'' if waits_for_its_window(pattern, context_of(pattern).way) else full}"


# ---------------------------------------------------------------- what is carried, and what bounds it


def _carried(rule: Rule) -> Told:
    per_key = " for each key" if rule.partition_by else ""
    if rule.fold is not None:
        least = f", of {MOST_STATE_BYTES >> 20} MiB at most" if isinstance(rule.fold, PythonFold) else ""
        events, bound = "no event", f"no event: the state{' of each key' if per_key else ''}{least}"
    elif rule.rows is not None:
        events, bound = _carried_rows(rule, rule.rows, per_key)
    elif rule.span is not None:
        events, bound = _carried_of_spans(rule, per_key)
    else:
        assert rule.pattern is not None
        events, bound = _carried_of_pattern(rule, rule.pattern, per_key)
    keys = [] if rule.fold is None else ["the state"]
    keys += ["the numbers"] * bool(per_key)
    of = "key there ever was" if rule.forget_key_after_us is None else "key that is not forgotten"
    return {
        "events": events,
        "keys": None if not keys else " and ".join(keys) + (f" of each {of}" if per_key else ""),
        "last_values": [*_last_values(rule, per_key)],
        "forbidding": [*_forbidding(rule, per_key)],
        "bounded": not bound.startswith("nothing"),
        "bound": bound,
    }


def _gaps_of_keys(rule: Rule, add: str) -> str:
    assert rule.forget_key_after_us is not None
    gap = canonical_duration(rule.forget_key_after_us)
    return f"the events of a key with gaps of at most {gap}; add {add} to bound it more closely"


def _carried_rows(rule: Rule, rows: RowPattern, per_key: str) -> tuple[str, str]:
    length = longest(rows.pattern)
    before = f", and {show_events(rows.before)} before it" if rows.before else ""
    events = f"the events from the first one on at which a match may still begin{before}"
    if rows.within_us is not None:
        return events, f"the events of {canonical_duration(rows.within_us)}{per_key}"
    return events, _gaps_of_keys(rule, "WITHIN") if length is None else f"{show_events(length)}{per_key}"


def _carried_of_spans(rule: Rule, per_key: str) -> tuple[str, str]:
    span, panes = rule.span, panes_of(rule)
    if isinstance(span, PredicateSpan):
        return (
            "the events since the oldest span that is open",
            f"the events of {canonical_duration(span.within_us)}",
        )
    if isinstance(span, SessionSpan):
        endless = "nothing: a session goes on as long as events come; add within to its span"
        ends = endless if span.within_us is None else f"the events of {canonical_duration(span.within_us)}"
        return "the events of sessions that are open", ends
    if isinstance(span, GridSpan) and panes is not None:
        sketches = sum(part == "sketch" for part, _ in panes.held)
        kind = "sketch" if sketches == 1 else "sketches"
        held = f", with {sketches} {kind} of {SIZE} bytes" if sketches else ""
        pane = f"pane of {canonical_duration(panes.width_us)}{' and key' if per_key else ''}"
        rows = counted(span.size_us // panes.width_us, "row")
        events = f"a row for each {pane}{held}, in spans that are not closed"
        return events, f"about {rows}{per_key}, however many events come"
    whole = holistic(rule) if isinstance(span, GridSpan) and rule.pattern is None else []
    because = f", for {canonical_text(whole[0])} needs all values at once" if whole else ""
    events = f"the events of spans that are not closed{because}"
    if isinstance(span, GridSpan):
        return events, f"the events of {canonical_duration(span.size_us)}"
    assert isinstance(span, CountSpan)
    return events, f"{show_events(span.size)}{per_key}"


def _carried_of_pattern(rule: Rule, pattern: Pattern, per_key: str) -> tuple[str, str]:
    way, within, steps = context_of(pattern).way, pattern.within, len(pattern.components)
    backwards, waits = isinstance(way, Backwards), bool(shape_of(pattern).trailing)
    before = backwards and rule.merge == "selection"  # earlier windows decide what a match waits for
    if within is None and isinstance(way, Backwards | UsingUp):
        events = "the partial candidates that wait for their next step"
        events = "the latest partial candidate of each length" if backwards else events
    else:
        events = "the events since the oldest selection that is open"
        events += " or has a match that is not decided" * waits
        events += f", and {'two windows' if waits else 'a window'} before it" * before
        events += ", those that may forbid among them" * any(one.negated for one in pattern.components)
        events += ", but those that can only end a match" * method_of(rule).ends_go
    if within is not None:
        times = ("three times " if waits else "twice ") if before else "twice " * waits
        once = not before and (isinstance(way, Forwards) or walks(way))
        of = "the events of " if within.time_us is not None else ""
        return events, f"{of}{'' if once else times}{length_in_words(within)}{per_key}"
    if steps == 1:
        return events, "no event: every initiator completes itself"
    if backwards:
        return events, f"{show_events(steps * (steps - 1) // 2)}{per_key}"
    if rule.forget_key_after_us is not None:
        return events, _gaps_of_keys(rule, "within")
    return events, "nothing: an initiator that no terminator follows waits for ever; add within to bound it"


def _last_values(rule: Rule, per_key: str) -> Iterator[str]:
    """The values of the last events that are kept for ``prev``, in words."""
    for back in (filtering(rule, others_count=False), looking_back(rule, others_count=False)):
        for columns in () if back is None else back.last:
            events = f"{len(columns)} events" if len(columns) > 1 else "event"
            which = " before the filter" if back is not None and back.before_filter else ""
            yield f"{columns[0].attribute} of the last {events}{which}{per_key}"


def _forbidding(rule: Rule, per_key: str) -> Iterator[str]:
    """What is kept of the events of negated components in first place, in words."""
    absent = absence_tests(rule, others_count=False)
    if rule.pattern is None or absent is None or rule.span is not None:
        return
    for absence, test in zip(rule.pattern.absences, absent.tests, strict=True):
        near = "" if test.within_us is None else f" of {canonical_duration(test.within_us)}"
        yield f"{absence.component.name}: {_kept(test, near, per_key, rule.pattern.components[0].name)}"


def _kept(test: AbsenceTest, near: str, per_key: str, first: str) -> str:
    if test.steps is not None:
        equal = ", if the values of both are equal" if test.equal else ""
        return f"the events{near}{per_key}; each that could be {first} is compared with them{equal}"
    of = ", ".join(canonical_text(negated) for negated, _ in test.equal)
    return f"the time of the last event{near}{f' with each value of {of}' if of else ''}{per_key}"


# ---------------------------------------------------------------- rules over rules


def _levels(rule: Rule) -> Told:
    """The level of a rule over rules, what it reads, and how long that can wait at worst."""
    reads = [
        {"rule": name_in_from(one), "condition": _read_of_events(one), "waits": _shown(delay_us(one) or 0)}
        for one in rule.reads
    ]
    every = any(one["rule"] == EVENTS and one["condition"] is None for one in reads)
    warning = "all events of the input go to one core of the driver; read a rule of one component instead, "
    return {
        "level": levels_of([rule])[rule.name],
        "reads": reads,
        "waits": _shown(_wait_us(rule)),
        "warning": f"{warning}which picks those that are needed" if every else None,
    }


def _read_of_events(rule: Rule) -> str | None:
    """Which events of the input are read; None for all, and for matches."""
    if not rule.hands_on or rule.pattern is None:
        return None
    predicate = rule.pattern.components[0].predicate
    return None if predicate == Literal(True, "BOOLEAN") else canonical_text(predicate)


def _wait_us(rule: Rule) -> int:
    """The longest wait of a rule's event for others that can come before it, from all levels below."""
    return max((_wait_us(lower) + (delay_us(lower) or 0) for lower in rule.reads), default=0)


def _shown(time_us: int) -> str | None:
    return canonical_duration(time_us) if time_us else None


# ---------------------------------------------------------------- in lines of text


def _texts(value: Any) -> list[str]:
    """A line for each value that is set; in a list one for each item, whatever it holds."""
    if isinstance(value, dict):
        return [f"{key.replace('_', ' ')}: {text}" for key, inner in value.items() for text in _texts(inner)]
    if isinstance(value, list):
        return [", ".join(_texts(one)) for one in value]
    return [] if value is None or value is False else ["yes" if value is True else f"{value}"]
