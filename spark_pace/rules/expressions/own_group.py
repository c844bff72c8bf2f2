"""What names mean in the condition of a repeated or optional component, which may read its group so far."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from spark_pace.core.expr import Aggregate, Column
from spark_pace.core.plan.rule import EventSchema
from spark_pace.rules.document.report import quote
from spark_pace.rules.expressions.attributes import over_group
from spark_pace.rules.expressions.group_scope import GroupScope
from spark_pace.rules.expressions.scopes import EventScope, Scope
from spark_pace.rules.expressions.types import Wrong


@dataclass(frozen=True)
class OwnGroupScope:
    """An event that may join a group, and through aggregates what the group has before it.

    Attributes:
        event: the event by itself.
        name: the component.
    """

    event: EventScope
    name: str
    looks_back: ClassVar[bool] = True

    @property
    def schema(self) -> EventSchema:
        """The attributes of the events."""
        return self.event.schema

    def is_prefix(self, name: str) -> bool:
        """The component, or the opening event."""
        return name == self.name or self.event.is_prefix(name)

    def column(self, prefix: str | None, attribute: str) -> Column | Wrong:
        """An attribute of the event, or of the opening one."""
        if prefix == self.name:
            return Wrong(
                "must be an attribute without a prefix, or inside an aggregate",
                quote(f"{prefix}.{attribute}"),
                f"Write {attribute} for the event's own, last({prefix}.{attribute}) for that of the event "
                "that the group has before it.",
            )
        return self.event.column(prefix, attribute)

    def aggregate(self, function: str, prefix: str | None, attribute: str) -> Aggregate | Wrong:
        """A value over the events that the group has before this one."""
        if function == "count" and prefix is None and attribute == self.name:
            return over_group(self.schema, "count", self.name)
        if prefix != self.name:
            return self._of_others(function, attribute if prefix is None else f"{prefix}.{attribute}")
        return over_group(self.schema, function, self.name, attribute)

    def inside(self, function: str) -> Scope:
        """The attributes of each event of the group."""
        return GroupScope(self, function)

    def of_group(self, function: str, prefix: str | None, attribute: str) -> Column | Wrong:
        """An attribute of each event of the group."""
        if prefix != self.name:
            return self._of_others(function, attribute if prefix is None else f"{prefix}.{attribute}")
        found = self.event.column(None, attribute)
        return found if isinstance(found, Wrong) else Column(self.name, attribute, found.type)

    def _of_others(self, function: str, named: str) -> Wrong:
        """What is wrong with an aggregate of anything else."""
        return Wrong(
            "must be about the group of its own component",
            quote(f"{function}({named})"),
            f"Write for example last({self.name}.x); conditions on several components belong into where.",
        )
