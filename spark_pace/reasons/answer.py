"""What `why` answers, as values that JSON has. The names of the fields are the keys of the JSON object.

A time is ISO text in UTC.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from spark_pace.errors import one_line


@dataclass(frozen=True)
class EventRef:
    """An event of the rule's stream: its `seq` there, its time, and where it came from."""

    seq: int
    event_time: str
    source: str
    offset: int


@dataclass(frozen=True)
class Member:
    """An event, and the name of the component that it stands for."""

    component: str
    event: EventRef

    def __str__(self) -> str:
        """The event's name in tables of matches."""
        return f"{self.component}#{self.event.seq}"


@dataclass(frozen=True)
class ConditionTest:
    """A condition on the event, whether it holds, and the values it reads.

    `holds` is None where the condition reads other events as well and it is not known which: that depends on
    the span, or the event is not in the rule's stream.
    """

    condition: str
    holds: bool | None
    values: dict[str, Any]


@dataclass(frozen=True)
class ComponentTest:
    """The test of an event against a component, with a test of each of the component's conditions.

    An event that passes may stand for the component or, if that is negated, forbid. `holds` is None if no
    condition fails, but one cannot be told. What opens and closes a span is tested like a component.
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
        state: what became of it: "closed" by an event, "ended" with its window, or "open" to the last.
        there: whether it was open at the event; else it is the last one that was over before.
        opened_at: when it opened; for a window of a grid, the window's start.
        opened_by: the event that opened it; None for windows of a grid.
        window_ends: when its window ends; None without a window of time.
        closed_by: the event that closed it; None where none did.
        components: for a span that was open at the event, the event's tests against those components whose
            conditions read other events of the span.
    """

    selection_id: int
    state: str
    there: bool
    opened_at: str
    opened_by: EventRef | None
    window_ends: str | None
    closed_by: EventRef | None
    components: tuple[ComponentTest, ...] = ()


@dataclass(frozen=True)
class Match:
    """A match that the event is part of; if the rule aggregates, the match of a span that holds the event."""

    out_seq: int
    selection_id: int
    matched_at: str
    events: tuple[Member, ...]


@dataclass(frozen=True)
class LowerMatch:
    """A match of a lower rule, which is an event of the rule above: its number there is the `offset`."""

    rule: str
    match: Match


@dataclass(frozen=True)
class Candidate:
    """The furthest that a candidate with the event came from one initiator, and what stopped it.

    Attributes:
        selection_id: its selection.
        events: what it had; nothing where the rule aggregates all events of the span.
        tried: the event that came next and was not taken; None where there was none.
        status: "failed", or "unfinished" where the missing event could still have come.
        kind: "where", "within", "contiguity", "group", "forbidden", "missing", "used up", "closed", "order"
            or "not chosen".
        condition: the condition that is false; None where it is not one of the rule's.
        values: what the condition reads: each side of a comparison, or each attribute.
        by: the events that the reason is about: those that stood between, forbade, or were taken instead;
            those between which, or the one behind which, no event came; those that opened and closed the
            selection.
        text: all that in words.
    """

    selection_id: int
    events: tuple[Member, ...]
    tried: Member | None
    status: str
    kind: str
    condition: str | None
    values: dict[str, Any]
    by: tuple[Member, ...]
    text: str


@dataclass(frozen=True)
class FoldStep:
    """What a fold does at an event. All fields are None if it is a Python function, which is not called.

    Attributes:
        before: the state before the event.
        since: when the key entered that state; None where it begins in it.
        after: the state behind the event.
        move: the number of the move that the event takes, from 1 on; None where none fits.
    """

    before: str | None = None
    since: str | None = None
    after: str | None = None
    move: int | None = None


@dataclass(frozen=True)
class Why:
    """Why an event is part of matches of a rule, or of none.

    Attributes:
        rule: the rule.
        key: the text of the event's key; None without `partition_by`.
        source, offset, event_time: where it came from, and its time; no time if the record is no event.
        seq: its place in the rule's stream; None where it does not belong to that stream.
        not_in_stream: why it does not belong there; None where it does.
        attributes: its attributes.
        filter: the event's tests against the parts of the rule's filter.
        components: its tests against each component; of a fold, against each move that leaves the state
            before the event.
        matches: those that the event is part of, and how many `more_matches` there are.
        selections: those that were open at the event, or the last one before; and how many more there are.
        candidates: those that failed, and how many more there are, initiators that were not looked at
            included.
        untold: what of the rule is not explained here.
        fold: what a fold does at the event; None for other rules, and for an event not in the stream.
        made_of: of a rule over rules, the matches of lower rules that the event and `matches` are made of,
            level by level down to the events of the input.
        lower: of an event of the input that such a rule does not read: what its lower rules say of it;
        upper: and what the rule says of the first of their matches that have it.

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
        from spark_pace.reasons.answer_lines import lines_of

        return "\n".join(map(one_line, lines_of(self)))
