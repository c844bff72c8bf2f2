"""What names mean in ``emit`` of a fold with states and moves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from spark_pace.core.expr import Column
from spark_pace.core.plan.fold import STATE_AFTER, STATE_BEFORE, STATE_SINCE
from spark_pace.core.plan.rule import EventSchema
from spark_pace.rules.document.report import nearest, quote
from spark_pace.rules.expressions.attributes import find_type
from spark_pace.rules.expressions.types import Wrong

STATE = "state"
_OF_STATES = {
    "from": Column(None, STATE_BEFORE, "STRING"),
    "to": Column(None, STATE_AFTER, "STRING"),
    "since": Column(None, STATE_SINCE, "TIMESTAMP"),
}


@dataclass(frozen=True)
class MoveScope:
    """An event that moves its key: its attributes stand alone, ``state.from`` is the state that it leaves."""

    schema: EventSchema
    looks_back: ClassVar[bool] = False

    def is_prefix(self, name: str) -> bool:
        """The states."""
        return name == STATE

    def column(self, prefix: str | None, attribute: str) -> Column | Wrong:
        """An attribute of the event, or one of the two states."""
        if prefix == STATE:
            found = _OF_STATES.get(attribute)
            names = [f"{STATE}.{name}" for name in _OF_STATES]
            got = f"{STATE}.{attribute}"
            return found or Wrong("must be one of its states", quote(got), nearest(got, names))
        if prefix is not None:
            do = f"Write {attribute} for the event's, or state.from, state.to or state.since."
            return Wrong("must be an attribute without a prefix", quote(f"{prefix}.{attribute}"), do)
        kind = find_type(self.schema, attribute)
        return kind if isinstance(kind, Wrong) else Column(None, attribute, kind)

    def aggregate(self, function: str, prefix: str | None, attribute: str) -> Wrong:
        """Refused: one event has no groups."""
        do = "A move is about one event: write its attributes, or state.from, state.to or state.since."
        return Wrong("must be about single events", f"{function}(...)", do)

    def inside(self, function: str) -> Wrong:
        """Refused likewise."""
        return self.aggregate(function, None, "")
