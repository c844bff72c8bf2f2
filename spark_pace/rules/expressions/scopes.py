"""What names mean in an expression: which events, and which of their attributes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from spark_pace.core.expr import Aggregate, Column, ExprType
from spark_pace.core.plan.rule import EventSchema
from spark_pace.rules.document.report import nearest, quote
from spark_pace.rules.expressions.types import Wrong

_ONE_EVENT = "Write the attribute alone: one event is looked at here."


class Scope(Protocol):
    """Resolves names."""

    def column(self, prefix: str | None, attribute: str) -> Column | Aggregate | Wrong:
        """What ``prefix.attribute`` or ``attribute`` stands for."""

    def aggregate(self, function: str, prefix: str | None, attribute: str) -> Aggregate | Wrong:
        """What ``function(prefix.attribute)`` stands for; for ``count(x)``, x is given as the attribute."""


def find_type(schema: EventSchema, attribute: str) -> ExprType | Wrong:
    """The declared type of an attribute."""
    types = {field.name: field.type for field in schema.fields}
    if attribute in types:
        return types[attribute]
    return Wrong("must name an attribute of the events", quote(attribute), nearest(attribute, types))


def _bind(schema: EventSchema, component: str | None, attribute: str) -> Column | Wrong:
    kind = find_type(schema, attribute)
    return kind if isinstance(kind, Wrong) else Column(component, attribute, kind)


def _no_aggregate(function: str) -> Wrong:
    return Wrong(
        "must be about single events",
        f"{function}(...)",
        'Aggregates are for emit with context "all, selected".',
    )


@dataclass(frozen=True)
class EventScope:
    """One event, its attributes without a prefix: filter, component predicates, a span's open."""

    schema: EventSchema

    def column(self, prefix: str | None, attribute: str) -> Column | Wrong:
        """An attribute of this one event."""
        if prefix is not None:
            return Wrong("must be an attribute without a prefix", quote(f"{prefix}.{attribute}"), _ONE_EVENT)
        return _bind(self.schema, None, attribute)

    def aggregate(self, function: str, prefix: str | None, attribute: str) -> Wrong:
        """Refused: one event has no groups."""
        return _no_aggregate(function)


@dataclass(frozen=True)
class CloseScope:
    """A span's close: attributes of the closing event, ``open.attribute`` of the opening one."""

    schema: EventSchema

    def column(self, prefix: str | None, attribute: str) -> Column | Wrong:
        """An attribute of the closing or the opening event."""
        if prefix not in (None, "open"):
            return Wrong(
                'must be an attribute, or "open." and an attribute', quote(f"{prefix}.{attribute}"), _OPENING
            )
        return _bind(self.schema, prefix, attribute)

    def aggregate(self, function: str, prefix: str | None, attribute: str) -> Wrong:
        """Refused: one event has no groups."""
        return _no_aggregate(function)


_OPENING = "Write open.x for the opening event's x, and x for the closing event's."


@dataclass(frozen=True)
class MatchScope:
    """The events of a candidate: ``component.attribute``.

    An attribute that all of them share, one of `partition_by`, may also stand without the prefix.
    """

    schema: EventSchema
    components: tuple[str, ...]
    shared: tuple[str, ...] = ()

    def column(self, prefix: str | None, attribute: str) -> Column | Wrong:
        """An attribute of the event bound to a component."""
        if prefix is None and attribute in self.shared:
            return _bind(self.schema, self.components[0], attribute)
        wrong = _component(prefix, attribute, self.components)
        return wrong or _bind(self.schema, prefix, attribute)

    def aggregate(self, function: str, prefix: str | None, attribute: str) -> Wrong:
        """Refused: each component stands for one event."""
        return _no_aggregate(function)


@dataclass(frozen=True)
class GatheredScope:
    """The groups of events that the context "all, selected" gathers: read through aggregates only."""

    schema: EventSchema
    components: tuple[str, ...]
    shared: tuple[str, ...] = ()

    def column(self, prefix: str | None, attribute: str) -> Aggregate | Wrong:
        """Only an attribute that all events share has one value."""
        if prefix is None and attribute in self.shared:
            return self.aggregate("first", self.components[0], attribute)
        name = quote(attribute if prefix is None else f"{prefix}.{attribute}")
        return Wrong(
            "must be inside an aggregate",
            name,
            'Context "all, selected" gathers many events: use count, sum, avg, min, max, first or last.',
        )

    def aggregate(self, function: str, prefix: str | None, attribute: str) -> Aggregate | Wrong:
        """A value over the events of one component."""
        if function == "count":
            return self._count(prefix, attribute)
        if wrong := _component(prefix, attribute, self.components):
            return wrong
        kind = find_type(self.schema, attribute)
        if isinstance(kind, Wrong):
            return kind
        if function in ("sum", "avg") and kind not in ("BIGINT", "DOUBLE"):
            return Wrong(
                f"must be a number inside {function}", kind, "Name an attribute of type BIGINT or DOUBLE."
            )
        if function in ("min", "max") and kind == "BOOLEAN":
            return Wrong(
                f"must be a number, text or a time inside {function}", kind, "Name another attribute."
            )
        return Aggregate(function, str(prefix), attribute, "DOUBLE" if function == "avg" else kind)  # type: ignore[arg-type]

    def _count(self, prefix: str | None, name: str) -> Aggregate | Wrong:
        if prefix is not None or name not in self.components:
            got = quote(name if prefix is None else f"{prefix}.{name}")
            return Wrong("must be a component inside count", got, nearest(name, self.components))
        return Aggregate("count", name, None, "BIGINT")


def _component(prefix: str | None, attribute: str, components: tuple[str, ...]) -> Wrong | None:
    if prefix is None:
        example = f"{components[0]}.{attribute}" if components else f"component.{attribute}"
        return Wrong("must be written component.attribute", quote(attribute), f"Write for example {example}.")
    if prefix not in components:
        return Wrong("must name a component", quote(prefix), nearest(prefix, components))
    return None
