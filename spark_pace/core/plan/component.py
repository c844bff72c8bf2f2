"""The components of a pattern as frozen values: what stands for one event, for a group, or forbids."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from spark_pace.core.expr import Expr

Contiguity = Literal["relaxed", "strict"]


@dataclass(frozen=True)
class Times:
    """The number of events in a group: from `least` to `most`; no upper bound if `most` is None."""

    least: int
    most: int | None

    def __str__(self) -> str:
        """The text that a rule file has for it. Checkpoints keep this text, so it never changes."""
        if self.most is None:
            return f"{self.least}+"
        return f"{self.least}" if self.least == self.most else f"{self.least}..{self.most}"


@dataclass(frozen=True)
class Member:
    """What a disjunction lists: an event stands for the first whose `predicate` holds; its `bit` says so."""

    name: str
    predicate: Expr
    bit: int


@dataclass(frozen=True)
class Ending:
    """What ends a group: the first event whose `predicate` holds; its `bit` says so."""

    predicate: Expr
    bit: int


@dataclass(frozen=True)
class Component:
    """One named step of a pattern.

    `predicate` is over a single event, so its columns name no component. It includes every conjunct of
    `where` that names this component only, unless the component stands for a group.

    Attributes:
        name: the name.
        predicate: holds for events that may stand for it, or, if it is negated, that forbid a match.
        times: the number of events in the group of a repeated or optional component; None: the component
            stands for one event.
        negated: True if the component's events forbid a match.
        follows: "strict" if no event of the rule's stream stands between its event and the one before it in a
            match; of a group, if none stands before any of its events but its first in first place. The group
            ends before the first other event.
        members: what a disjunction lists; `predicate` holds where that of any member does.
        until: what ends the group: the first such event behind the component before is not in the group, and
            none behind it is; in first place the first one behind the initiator.
        further: what must hold of each event of the group behind its first one, or it is not in the group.
            Columns name this component and are of the event; aggregates are over the events of the group
            before it.
    """

    name: str
    predicate: Expr
    times: Times | None = None
    negated: bool = False
    follows: Contiguity = "relaxed"
    members: tuple[Member, ...] = ()
    until: Ending | None = None
    further: Expr | None = None

    @property
    def runs(self) -> bool:
        """True for a group whose events directly follow each other."""
        return self.times is not None and self.follows == "strict"
