"""The answer of `why`, in values that JSON has. Field names are the keys of the JSON object.

Times are ISO text in UTC.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from spark_pace.errors import one_line


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
class Candidate:
    """The longest candidate with the event that begins at one initiator, and what stopped it.

    Attributes:
        selection_id: its selection.
        events: its events; empty if the rule aggregates all events of the span.
        tried: the next event, which did not fit; None if there was none.
        status: "failed", or "unfinished" if the missing event could still have come.
        kind: "where", "within", "contiguity", "group", "forbidden", "missing", "used up", "closed", "order"
            or "not chosen".
        condition: the text of the condition of the rule that is false; None for other reasons.
        values: the values that the condition reads: each side of a comparison, or each attribute.
        by: the events that the reason names: those that stood between, forbade, or were taken instead; the
            ones between or after which none came; or those that opened and closed the selection.
        text: the reason in words.
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
        matches: the matches with the event; `more_matches` counts those that are not listed.
        selections: the selections that were open at the event, or the last one before; `more_selections`
            counts the others.
        candidates: the candidates that failed; `more_candidates` counts the others, together with initiators
            that were not searched.
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
