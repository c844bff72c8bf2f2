"""What an answer of `why` is made of, in values that JSON has. Field names are the keys of the JSON object.

Times are ISO text in UTC.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


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
class Candidate:
    """The longest candidate with the event that begins at one initiator, and what stopped it.

    Attributes:
        selection_id: its selection.
        events: its events, each once, without `tried`; empty if the rule aggregates all events of the span.
        tried: the next event, which did not fit; None if there was none. It may be in the group that is told.
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
