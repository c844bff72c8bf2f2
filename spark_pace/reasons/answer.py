"""The answer of `why`, in values that JSON has, and as lines of text.

Field names are the keys of the JSON object. Times are ISO text in UTC.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np

from spark_pace.core.expr.time_functions import time_of
from spark_pace.core.tables import UNKNOWN_TIME
from spark_pace.errors import counted, one_line

ROWS_UNTOLD = "where the search for a row pattern went from here, and why it went back"
SHOWN_MATCHES = 5
SHOWN_EVENTS = 20  # of a candidate
_UNITS = (("d", 86_400_000_000), ("h", 3_600_000_000), ("min", 60_000_000))


@dataclass(frozen=True)
class EventRef:
    """An event of the rule's stream: its `seq` there, its time, its source and offset."""

    seq: int
    event_time: str
    source: str
    offset: int


@dataclass(frozen=True)
class Member:
    """An event with the name of its component."""

    component: str
    event: EventRef

    def __str__(self) -> str:
        """The text for an event in tables of matches, such as ``a#3``."""
        return f"{self.component}#{self.event.seq}"


@dataclass(frozen=True)
class ConditionTest:
    """The test of an event against one condition, with the values that the condition reads.

    `holds` is None if the condition also reads other events and these are not known: they depend on the span,
    or the event is not in the rule's stream.
    """

    condition: str
    holds: bool | None
    values: dict[str, Any]


@dataclass(frozen=True)
class ComponentTest:
    """The test of an event against a component, condition by condition.

    An event that passes can be the component's event; if the component is negated, it can forbid a match.
    `holds` is None if no condition fails but some are unknown. The `open` and `close` of a span are tested in
    the same way.
    """

    component: str
    negated: bool
    holds: bool | None
    conditions: tuple[ConditionTest, ...]


@dataclass(frozen=True)
class Selection:
    """A selection, or a span.

    Attributes:
        selection_id: its number.
        state: "closed" by an event, "ended" with its window, or "open" until the input ended.
        there: True if it was open at the event; False for the last selection that was over before it.
        opened_at: when it opened; for a window of a grid, the window's start.
        opened_by: the event that opened it; None for windows of a grid.
        window_ends: when its window ends; None if no length of time limits it.
        closed_by: the event that closed it, or None.
        decided_at: when its matches were decided, if a length of time limits it and that is behind the event
            that closed it; else None.
        decided_by: "window" if the end of a window decided them, "input" if only the end of the input did;
            None beside no `decided_at`.
        components: for a span that was open at the event, the tests against those components whose conditions
            read other events of the span.
    """

    selection_id: int
    state: str
    there: bool
    opened_at: str
    opened_by: EventRef | None
    window_ends: str | None
    closed_by: EventRef | None
    components: tuple[ComponentTest, ...] = ()
    decided_at: str | None = None
    decided_by: str | None = None


@dataclass(frozen=True)
class Match:
    """A match with the event; of a rule that aggregates, the match of a span that holds the event."""

    out_seq: int
    selection_id: int
    matched_at: str
    events: tuple[Member, ...]


@dataclass(frozen=True)
class LowerMatch:
    """A match of a lower rule. It is an event of the rule above, whose `offset` is the match's number."""

    rule: str
    match: Match


@dataclass(frozen=True)
class Reason:
    """Why some events are no match.

    Attributes:
        kind: "where", "within", "contiguity", "group", "forbidden", "missing", "used up", "closed", "order"
            or "not chosen".
        text: the reason in words.
        condition: what of the rule is not met, as text; None where the context decides.
        values: the values that a condition reads.
        by: the events that the reason names: those that stand between, forbid, or were taken instead; the
            ones between or after which none came; or those that opened and closed the selection.
    """

    kind: str
    text: str
    condition: str | None = None
    values: dict[str, Any] = field(default_factory=dict)
    by: tuple[Member, ...] = ()


@dataclass(frozen=True)
class Candidate:
    """Events, the asked one or one that it stops among them, that would be a match but for some reasons.

    Attributes:
        selection_id: the selection that they would belong to; None if no event has opened one.
        events: the events; where some are missing, those that are there; none if the rule aggregates all
            events of the span.
        status: "failed", or "unfinished" if what is missing could still have come.
        reasons: without what these say, and no fewer, the events would be a match.
    """

    selection_id: int | None
    events: tuple[Member, ...]
    status: str
    reasons: tuple[Reason, ...]

    def __str__(self) -> str:
        """The selection, the events and the reasons in a line."""
        of = "" if self.selection_id is None else f"selection {self.selection_id}"
        named = [str(member) for member in self.events]
        if len(named) > SHOWN_EVENTS:
            named[SHOWN_EVENTS // 2 : -SHOWN_EVENTS // 2] = [f"… {len(named) - SHOWN_EVENTS} more …"]
        had = " ".join(named)
        why = "; ".join(one.text for one in self.reasons)
        return f"{of}{', ' if of and had else ''}{had}: {why}"


@dataclass(frozen=True)
class FoldStep:
    """The move of a fold at an event. All fields are None for a Python function, which `why` does not call.

    Attributes:
        before: the state before the event.
        since: when the key entered that state; None if it began in it.
        after: the state after the event.
        move: the number of the move that is taken, from 1 on; None if no move fits.
    """

    before: str | None = None
    since: str | None = None
    after: str | None = None
    move: int | None = None


@dataclass(frozen=True)
class Why:
    """The answer: why an event is part of matches of a rule, or of none.

    Attributes:
        rule: the rule.
        key: the text of the event's key; None without `partition_by`.
        source, offset, event_time: its position and its time; no time if the record is no event.
        seq: its position in the rule's stream; None if it is not in that stream.
        not_in_stream: the reason why it is not there; None if it is.
        attributes: its attributes.
        filter: the tests of the event against the parts of the rule's filter.
        components: the tests against each component; of a fold, against each move that leaves the state
            before the event.
        passing: for each component that is not negated and whose conditions read no other events, how many
            events of the input pass them and the filter, of `of_events` that are not late.
        matches: the matches with the event; `more_matches` counts those that are not listed.
        selections: the selections that were open at the event, or the last one before; `more_selections`
            counts the others.
        candidates: what would be matches but for some reasons; `more_candidates` counts the others, together
            with spans that were not searched.
        untold: the parts of the rule that `why` cannot explain.
        fold: the step of a fold at the event; None for other rules, and for an event not in the stream.
        made_of: for a rule over rules: the matches of lower rules that make up the event and `matches`, level
            by level down to the input.
        lower: for an event of the input and a rule over rules: the answers of its lower rules.
        upper: for such an event: the answers of the rule for the first lower matches that have it.

    Example:
        >>> import spark_pace
        >>> rules = '''
        ... events: {schema: "time TIMESTAMP, x DOUBLE", event_time: time}
        ... rules: [{name: rise, pattern: {sequence: [a: x < 5, b: x > 5]}, within: 1 h}]
        ... '''
        >>> events = [{"time": "2024-01-01T00:00:00Z", "x": 1.0}, {"time": "2024-01-01T00:00:10Z", "x": 9.0}]
        >>> answer = spark_pace.why(rules, events, rule="rise", at=1)
        >>> answer.matches[0].out_seq, [member.component for member in answer.matches[0].events]
        (0, ['a', 'b'])
        >>> [test.holds for test in answer.components]
        [False, True]
    """

    rule: str
    key: str | None
    source: str
    offset: int
    event_time: str | None
    seq: int | None
    not_in_stream: str | None
    attributes: dict[str, Any]
    filter: tuple[ConditionTest, ...] = ()
    components: tuple[ComponentTest, ...] = ()
    passing: dict[str, int] = field(default_factory=dict)
    of_events: int = 0
    matches: tuple[Match, ...] = ()
    more_matches: int = 0
    selections: tuple[Selection, ...] = ()
    more_selections: int = 0
    candidates: tuple[Candidate, ...] = ()
    more_candidates: int = 0
    untold: tuple[str, ...] = field(default=())
    fold: FoldStep | None = None
    made_of: tuple[LowerMatch, ...] = ()
    lower: tuple[Why, ...] = ()
    upper: tuple[Why, ...] = ()

    def __str__(self) -> str:
        """All of it in lines of text, as the command prints it."""
        return "\n".join(map(one_line, lines_of(self)))


def lines_of(answer: Why) -> Iterator[str]:
    """The answer as lines of text; a line that belongs to the one before it is indented further."""
    seq = "" if answer.seq is None else f", #{answer.seq} of its stream"
    key = "" if answer.key is None else f" of {answer.key}"
    at = "" if answer.event_time is None else f" at {answer.event_time}"
    yield f"rule {answer.rule}, {answer.source}:{answer.offset}{at}{seq}{key}"
    if answer.attributes:
        attributes = ", ".join(f"{name} = {shown(value)}" for name, value in answer.attributes.items())
        yield f"  {'event':<12} {attributes}"
    yield from _labelled("filter", [_test(test) for test in answer.filter])
    if answer.fold is not None and answer.fold.before is not None:
        yield f"  {'state':<12} {_step(answer.fold)}"
    yield from _labelled("can be" if answer.fold is None else "moves", list(_components(answer.components)))
    never = [name for name, count in answer.passing.items() if not count]
    yield from _labelled(
        "never", [f"{name}: true for 0 of {counted(answer.of_events, 'event')}" for name in never]
    )
    if answer.not_in_stream is not None:
        yield f"  not in the rule's stream: {answer.not_in_stream}"
        yield from _labelled("made of", [_lower(lower) for lower in answer.made_of])
    else:
        yield from _in_stream(answer)
    for other in (*answer.lower, *answer.upper):
        yield from (f"  {line}" for line in lines_of(other))


def _in_stream(answer: Why) -> Iterator[str]:
    """The lines about an event that is in the rule's stream."""
    if answer.fold is None and ROWS_UNTOLD not in answer.untold:
        yield from _labelled("selections", list(_selections(answer)))
    yield from _labelled("matches", list(_matches(answer)))
    yield from _labelled("made of", [_lower(lower) for lower in answer.made_of])
    yield from _labelled("stopped", _candidates(answer, "failed"))
    yield from _labelled("unfinished", _candidates(answer, "unfinished"))
    if answer.more_candidates:
        yield f"               and {answer.more_candidates:,} more"
    yield from _labelled("not told", list(answer.untold))


def _labelled(label: str, texts: Sequence[str]) -> Iterator[str]:
    for place, text in enumerate(texts):
        yield f"  {'' if place else label:<12} {text}"


def _test(test: ConditionTest) -> str:
    values = ", ".join(f"{name} = {shown(value)}" for name, value in test.values.items())
    holds = "depends on other events" if test.holds is None else "holds" if test.holds else "does not hold"
    return f"{test.condition} {holds}{': ' if values else ''}{values}"


def _step(step: FoldStep) -> str:
    since = "from the beginning" if step.since is None else f"since {step.since}"
    taken = "no move fits" if step.move is None else f"move {step.move} takes it to {step.after}"
    return f"{step.before} {since}; {taken}"


def _components(components: Sequence[ComponentTest]) -> Iterator[str]:
    for component in components:
        name = f"not {component.component}" if component.negated else component.component
        false = [_test(test) for test in component.conditions if test.holds is False]
        unknown = [_test(test) for test in component.conditions if test.holds is None]
        verdict = "yes" if component.holds else f"no, {false[0]}" if false else "; ".join(unknown)
        yield f"{name}: {verdict}"


def _selections(answer: Why) -> Iterator[str]:
    there = [selection for selection in answer.selections if selection.there]
    if not there:
        yield "none was open there"
    for selection in answer.selections:
        yield _selection(selection)
        yield from (f"  in it {told}" for told in _components(selection.components))
    if answer.more_selections:
        yield f"and {answer.more_selections:,} more"


def _selection(selection: Selection) -> str:
    by = "" if selection.opened_by is None else f" by #{selection.opened_by.seq}"
    ends = "" if selection.window_ends is None else f", its window ends {selection.window_ends}"
    state = "open to the end of the input"
    if selection.closed_by is not None:
        state = f"closed by #{selection.closed_by.seq} at {selection.closed_by.event_time}"
        state += _decided(selection)
    elif selection.state == "ended":
        state = "ended with its window"
    before = "" if selection.there else "the last before was "
    return f"{before}{selection.selection_id}, opened{by} at {selection.opened_at}{ends}; {state}"


def _decided(selection: Selection) -> str:
    """When and by what the matches were decided; empty if the event that closed the selection did."""
    if selection.decided_at is None:
        return ""
    whose = "its" if selection.decided_at == selection.window_ends else "a"
    by = "because the input ends" if selection.decided_by == "input" else f"by the end of {whose} window"
    return f", decided at {selection.decided_at} {by}"


def _matches(answer: Why) -> Iterator[str]:
    for match in answer.matches[:SHOWN_MATCHES]:
        events = "".join(f" {member}" for member in match.events)
        of = f"{match.out_seq}, of selection {match.selection_id}, at {match.matched_at}"
        yield f"{of}:{events}" if events else of
    more = answer.more_matches + len(answer.matches[SHOWN_MATCHES:])
    if more:
        yield f"and {more:,} more"
    if not answer.matches and answer.untold in ((), (ROWS_UNTOLD,)):
        yield "none"


def _lower(lower: LowerMatch) -> str:
    events = "".join(f" {one.component} {one.event.source}:{one.event.offset}" for one in lower.match.events)
    return f"{lower.rule}:{lower.match.out_seq}, at {lower.match.matched_at}{':' if events else ''}{events}"


def _candidates(answer: Why, status: str) -> list[str]:
    return [str(candidate) for candidate in answer.candidates if candidate.status == status]


# ---------------------------------------------------------------- values, times and lengths as text


def iso(time_us: int) -> str:
    """ISO text in UTC for microseconds since 1970."""
    return iso_of(time_of(time_us))


def iso_of(moment: datetime) -> str:
    """ISO text for a moment in UTC."""
    return moment.isoformat().replace("+00:00", "Z")


def iso_or_none(time_us: int) -> str | None:
    """Return the text of `iso`; None for a time that is unknown or stands for no time."""
    known = abs(int(time_us)) < UNKNOWN_TIME // 4
    return iso(time_us) if known else None


def length(time_us: int) -> str:
    """The text of a length of time, such as ``23 min 10 s``."""
    parts, left = [], int(time_us)
    for name, unit_us in _UNITS:
        if left >= unit_us:
            parts.append(f"{left // unit_us} {name}")
            left %= unit_us
    if left or not parts:
        seconds = f"{left / 1_000_000:.6f}".rstrip("0").rstrip(".")
        parts.append(f"{seconds} s")
    return " ".join(parts)


def plain(value: Any) -> Any:
    """Convert a value to one that JSON has."""
    if isinstance(value, datetime):
        return value.isoformat() + "Z"
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, dict):
        return {name: plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    return value


def shown(value: Any) -> str:
    """The text of a plain value, nearly as in rules: quotation marks inside a text are not doubled."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"'{value}'" if isinstance(value, str) else str(value)
