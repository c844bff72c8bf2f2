"""What names mean in an expression: which events, and which of their attributes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from spark_pace.core.expr import Aggregate, Column, ExprType, decimal_digits, is_single
from spark_pace.core.plan.rule import Component, EventSchema
from spark_pace.rules.document.report import nearest, quote
from spark_pace.rules.expressions.types import MAX_DIGITS, Wrong

MORE_DIGITS = 10  # of a sum

ONE_VALUE = "Name an attribute of another type, such as user.id of a STRUCT user."
_ONE_EVENT = "Write the attribute alone: one event is looked at here."


class Scope(Protocol):
    """Resolves names."""

    @property
    def schema(self) -> EventSchema:
        """The attributes of the events."""

    def is_prefix(self, name: str) -> bool:
        """Whether a name before a dot says which event is meant, whatever the attributes are."""

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
        "Aggregates are for where and emit: they read components that stand for several events.",
    )


@dataclass(frozen=True)
class EventScope:
    """One event, its attributes without a prefix: filter, component predicates, a span's open."""

    schema: EventSchema

    def is_prefix(self, name: str) -> bool:
        """There is one event."""
        return False

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

    def is_prefix(self, name: str) -> bool:
        """The opening event."""
        return name == "open"

    def column(self, prefix: str | None, attribute: str) -> Column | Wrong:
        """An attribute of the closing or the opening event."""
        if prefix == "open" and prefix in self.schema.structs:
            return Wrong(
                "must not be both a STRUCT and the opening event", quote(prefix), "Rename the STRUCT."
            )
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
    """The events of a candidate.

    A component that stands for one event is read by ``component.attribute``, a repeated or optional one
    through aggregates. In `emit` an attribute that all events share, one of `partition_by`, may also stand
    without the prefix, and negated components do not exist.
    """

    schema: EventSchema
    components: tuple[Component, ...]
    shared: tuple[str, ...] = ()
    emits: bool = False

    def is_prefix(self, name: str) -> bool:
        """A component."""
        return any(component.name == name for component in self.components)

    def column(self, prefix: str | None, attribute: str) -> Column | Aggregate | Wrong:
        """An attribute of the event bound to a component."""
        if prefix is None and attribute in self.shared:
            first = _first(self.components)
            if first.times is not None:
                return _over_group(self.schema, "first", first.name, attribute)
            return _bind(self.schema, first.name, attribute)
        component = _component(prefix, attribute, self.components, negated=not self.emits)
        if isinstance(component, Wrong):
            return component
        if component.times is not None:
            got, do = quote(f"{prefix}.{attribute}"), f"{quote(component.name)} stands for several events"
            return Wrong("must be inside an aggregate", got, f"{do}: {_USE_AGGREGATES}")
        return _bind(self.schema, prefix, attribute)

    def aggregate(self, function: str, prefix: str | None, attribute: str) -> Aggregate | Wrong:
        """A value over the events of a repeated or optional component."""
        if function == "count":
            component = _counted(prefix, attribute, self.components, negated=not self.emits)
        else:
            component = _component(prefix, attribute, self.components, negated=not self.emits)
        if isinstance(component, Wrong):
            return component
        if component.times is None:
            got = f"{function}({attribute if prefix is None else f'{prefix}.{attribute}'})"
            why = "is negated: one event forbids" if component.negated else "stands for one event"
            do = f"{quote(component.name)} {why}; read it by {component.name}.attribute."
            return Wrong("must be about a repeated or optional component", quote(got), do)
        return _over_group(self.schema, function, component.name, None if function == "count" else attribute)


@dataclass(frozen=True)
class GatheredScope:
    """The groups of events that the context "all, selected" gathers: read through aggregates only."""

    schema: EventSchema
    components: tuple[Component, ...]
    shared: tuple[str, ...] = ()

    def is_prefix(self, name: str) -> bool:
        """A component."""
        return any(component.name == name for component in self.components)

    def column(self, prefix: str | None, attribute: str) -> Aggregate | Wrong:
        """Only an attribute that all events share has one value."""
        if prefix is None and attribute in self.shared:
            return _over_group(self.schema, "first", _first(self.components).name, attribute)
        return Wrong(
            "must be inside an aggregate",
            quote(attribute if prefix is None else f"{prefix}.{attribute}"),
            f'Context "all, selected" gathers many events: {_USE_AGGREGATES}',
        )

    def aggregate(self, function: str, prefix: str | None, attribute: str) -> Aggregate | Wrong:
        """A value over the events of one component."""
        if function == "count":
            counted = _counted(prefix, attribute, self.components, negated=False)
            return counted if isinstance(counted, Wrong) else _over_group(self.schema, "count", counted.name)
        component = _component(prefix, attribute, self.components, negated=False)
        if isinstance(component, Wrong):
            return component
        return _over_group(self.schema, function, component.name, attribute)


_USE_AGGREGATES = "use count, sum, avg, min, max, first or last."


def _over_group(
    schema: EventSchema, function: str, component: str | None, attribute: str | None = None
) -> Aggregate | Wrong:
    """The aggregate of an attribute, or the count of the events."""
    if attribute is None:
        return Aggregate("count", component, None, "BIGINT")
    kind = find_type(schema, attribute)
    if isinstance(kind, Wrong):
        return kind
    if not is_single(kind):
        return Wrong(f"must be of single values inside {function}", f"{quote(attribute)}, {kind}", ONE_VALUE)
    digits = decimal_digits(kind)
    if function in ("sum", "avg") and digits:
        return _decimal_over_group(function, component, attribute, digits)
    if function in ("sum", "avg") and kind not in ("BIGINT", "DOUBLE"):
        return Wrong(
            f"must be a number inside {function}", kind, "Name an attribute of type BIGINT or DOUBLE."
        )
    if function in ("min", "max") and kind == "BOOLEAN":
        return Wrong(f"must be a number, text or a time inside {function}", kind, "Name another attribute.")
    return Aggregate(function, component, attribute, "DOUBLE" if function == "avg" else kind)  # type: ignore[arg-type]


def _decimal_over_group(
    function: str, component: str | None, attribute: str, digits: tuple[int, int]
) -> Aggregate | Wrong:
    """The sum of a DECIMAL has ten digits more, as in Spark, which billions of events cannot overflow."""
    precision, scale = digits
    got = f"DECIMAL({precision},{scale})"
    if function == "avg":
        do = f"Write cast(sum({component}.{attribute}) as DOUBLE) / count({component})."
        return Wrong("must be a BIGINT or DOUBLE inside avg", got, do)
    if precision + MORE_DIGITS > MAX_DIGITS:
        must = f"must be a DECIMAL of at most {MAX_DIGITS - MORE_DIGITS} digits inside sum"
        return Wrong(must, got, "Declare fewer digits in the schema.")
    return Aggregate("sum", component, attribute, f"DECIMAL({precision + MORE_DIGITS},{scale})")


def _first(components: Sequence[Component]) -> Component:
    """The component of which every match has an event."""
    return next((component for component in components if not component.negated), components[0])


def _counted(
    prefix: str | None, name: str, components: Sequence[Component], *, negated: bool
) -> Component | Wrong:
    """The component inside ``count(name)``."""
    if prefix is None and any(component.name == name for component in components):
        return _component(name, "", components, negated=negated)
    got = quote(name if prefix is None else f"{prefix}.{name}")
    return Wrong("must be a component inside count", got, nearest(name, _names(components, negated)))


def _component(
    prefix: str | None, attribute: str, components: Sequence[Component], *, negated: bool
) -> Component | Wrong:
    """The component that a prefix names; `negated`: whether negated ones exist here."""
    if prefix is None:
        first = _first(components)
        example = f"{first.name}.{attribute}" if first.times is None else f"last({first.name}.{attribute})"
        return Wrong("must be written component.attribute", quote(attribute), f"Write for example {example}.")
    for component in components:
        if component.name == prefix and component.negated and not negated:
            do = "Events of a negated component are in no match: name another component."
            return Wrong("must name a component that is not negated", quote(prefix), do)
        if component.name == prefix:
            return component
    return Wrong("must name a component", quote(prefix), nearest(prefix, _names(components, negated)))


def _names(components: Sequence[Component], negated: bool) -> list[str]:
    return [component.name for component in components if negated or not component.negated]
