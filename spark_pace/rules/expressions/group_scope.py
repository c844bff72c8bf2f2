"""What names mean inside an aggregate, in what is computed of each event."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

from spark_pace.core.expr import Column
from spark_pace.core.plan.rule import EventSchema
from spark_pace.rules.expressions.types import Wrong


class Around(Protocol):
    """The scope in which the aggregate stands."""

    @property
    def schema(self) -> EventSchema:
        """The attributes of the events."""

    def is_prefix(self, name: str) -> bool:
        """Tell whether a name before a dot says which event is meant."""

    def of_group(self, function: str, prefix: str | None, attribute: str) -> Column | Wrong:
        """An attribute of each event that is aggregated."""


@dataclass(frozen=True)
class GroupScope:
    """Each event of a group by itself: what an aggregate is computed of.

    Attributes:
        around: the scope of the aggregate.
        function: the aggregate's name.
    """

    around: Around
    function: str
    looks_back: ClassVar[bool] = False

    @property
    def schema(self) -> EventSchema:
        """The attributes of the events."""
        return self.around.schema

    def is_prefix(self, name: str) -> bool:
        """A component, or the opening event."""
        return self.around.is_prefix(name)

    def column(self, prefix: str | None, attribute: str) -> Column | Wrong:
        """An attribute of the event."""
        return self.around.of_group(self.function, prefix, attribute)

    def aggregate(self, function: str, prefix: str | None, attribute: str) -> Wrong:
        """Refused: one event has no groups."""
        must, do = "must not be inside an aggregate", "Give the inner one by itself, as a field or a rule."
        return Wrong(must, f"{function}(...)", do)

    def inside(self, function: str) -> Wrong:
        """Refused likewise."""
        return self.aggregate(function, None, "")
