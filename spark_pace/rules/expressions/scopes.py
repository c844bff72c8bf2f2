"""What names mean in an expression: which events, and which of their attributes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

from spark_pace.core.expr import Aggregate, Column, Expr
from spark_pace.core.plan.component import Component
from spark_pace.core.plan.conditions import OPENING_EVENT
from spark_pace.core.plan.fold import STATE_AFTER, STATE_BEFORE, STATE_SINCE
from spark_pace.core.plan.members import nameable
from spark_pace.core.plan.rule import EventSchema
from spark_pace.rules.document.report import meant_by, nearest, quote
from spark_pace.rules.expressions.types import (
    AGGREGATES,
    USE_AGGREGATES,
    Wrong,
    find_type,
    over_group,
    use_one_of,
)

_ONE_EVENT = "Write the attribute alone: one event is looked at here; where is about several."
STATE = "state"
_OF_STATES = {
    "from": Column(None, STATE_BEFORE, "STRING"),
    "to": Column(None, STATE_AFTER, "STRING"),
    "since": Column(None, STATE_SINCE, "TIMESTAMP"),
}


class Scope(Protocol):
    """Resolves names."""

    @property
    def schema(self) -> EventSchema:
        """The attributes of the events."""

    @property
    def looks_back(self) -> bool:
        """True if ``prev`` has a meaning here."""

    def is_prefix(self, name: str) -> bool:
        """Tell whether a name before a dot says which event is meant, whatever the attributes are."""

    def column(self, prefix: str | None, attribute: str) -> Expr | Wrong:
        """What ``prefix.attribute`` or ``attribute`` stands for."""

    def aggregate(self, function: str, prefix: str | None, attribute: str) -> Aggregate | Wrong:
        """What ``function(prefix.attribute)`` stands for; for ``count(x)``, x is given as the attribute."""

    def inside(self, function: str) -> Scope | Wrong:
        """The names in what an aggregate is computed of, if that is more than a name."""


def _bind(schema: EventSchema, component: str | None, attribute: str) -> Column | Wrong:
    kind = find_type(schema, attribute)
    return kind if isinstance(kind, Wrong) else Column(component, attribute, kind)


def _misread(scope: Scope, prefix: str | None, attribute: str) -> Wrong | None:
    """Refused: an event's name without an attribute, or ``open`` misspelt; None for what is neither."""
    fields = scope.schema.fields
    if prefix is None and scope.is_prefix(attribute) and all(field.name != attribute for field in fields):
        example = fields[0].name if fields else "x"  # a schema that is wrong has none
        do = f"Write for example {attribute}.{example}."
        return Wrong("must name an attribute as well", quote(attribute), do)
    misspelt = prefix is not None and not scope.is_prefix(prefix) and meant_by(prefix, (OPENING_EVENT,))
    if not misspelt or not scope.is_prefix(OPENING_EVENT):
        return None
    do = f"Did you mean {quote(f'{OPENING_EVENT}.{attribute}')}?"
    return Wrong("must name the opening event", quote(f"{prefix}.{attribute}"), do)


@dataclass(frozen=True)
class EventScope:
    """One event, its attributes without a prefix: filter, component predicates, a span's open.

    Attributes:
        schema: the attributes.
        opened: whether ``open.attribute`` is that of the event that opened the span of this one.
        looks_back: whether ``prev`` is an attribute of an event before this one.
        closes: whether this event closes the span: the scope of a span's close.
    """

    schema: EventSchema
    opened: bool = False
    looks_back: bool = False
    closes: bool = False

    def is_prefix(self, name: str) -> bool:
        """The opening event."""
        return self.opened and name == OPENING_EVENT

    def column(self, prefix: str | None, attribute: str) -> Column | Wrong:
        """An attribute of this one event, or of the opening one."""
        if self.closes and prefix == OPENING_EVENT and prefix in self.schema.structs:
            must = "must not be both a STRUCT and the opening event"
            return Wrong(must, quote(prefix), "Rename the STRUCT.")
        if prefix == OPENING_EVENT:
            return _of_opening(self.schema, attribute, opened=self.opened)
        if wrong := _misread(self, prefix, attribute):
            return wrong
        if prefix is not None and self.opened:
            this = "the closing event's" if self.closes else "the event's own"
            return Wrong(
                'must be an attribute, or "open." and an attribute',
                quote(f"{prefix}.{attribute}"),
                f"Write open.x for the opening event's x, and x for {this}.",
            )
        if prefix is not None:
            return Wrong("must be an attribute without a prefix", quote(f"{prefix}.{attribute}"), _ONE_EVENT)
        return _bind(self.schema, None, attribute)

    def aggregate(self, function: str, prefix: str | None, attribute: str) -> Wrong:
        """Refused: one event has no groups."""
        return Wrong(
            "must be about single events",
            f"{function}(...)",
            "Aggregates are for where and emit, and for when of a component with times: "
            "they read several events.",
        )

    def inside(self, function: str) -> Wrong:
        """Refused likewise."""
        return self.aggregate(function, None, "")


def _of_opening(schema: EventSchema, attribute: str, *, opened: bool) -> Column | Wrong:
    """An attribute of the event that opened the span, if there is one."""
    if opened:
        return _bind(schema, OPENING_EVENT, attribute)
    return Wrong(
        'must stand in a component, in where or in emit of a rule whose span has the key "open"',
        quote(f"{OPENING_EVENT}.{attribute}"),
        "Add for example span: {open: x = 1, close: x = 2, within: 10 min}, or remove the prefix.",
    )


@dataclass(frozen=True)
class MatchScope:
    """The events of a candidate.

    A component that stands for one event is read by ``component.attribute``, a repeated or optional one
    through aggregates.

    Attributes:
        schema: the attributes.
        components: the pattern's components.
        shared: attributes that all events share, those of `partition_by`: they may stand without a prefix.
        emits: whether the scope is that of `emit`, where negated components do not exist.
        opened: whether ``open.attribute`` is that of the event that opened the span.
        gathers: whether every component stands for a group, as in the context "all, selected".
        alternatives: whether there is no component of which every match has an event.
    """

    schema: EventSchema
    components: tuple[Component, ...]
    shared: tuple[str, ...] = ()
    emits: bool = False
    opened: bool = False
    gathers: bool = False
    alternatives: bool = False
    looks_back: ClassVar[bool] = True

    def is_prefix(self, name: str) -> bool:
        """A component, a member of a disjunction, or the opening event."""
        named = any(component.name == name for component in nameable(self.components))
        return named or (self.opened and name == OPENING_EVENT)

    def column(self, prefix: str | None, attribute: str) -> Column | Aggregate | Wrong:
        """An attribute of the event bound to a component."""
        if prefix is None and attribute in self.shared:
            if self.alternatives:
                return _bind(self.schema, None, attribute)
            first = _first(self.components)
            if self.gathers or first.times is not None:
                return over_group(self.schema, "first", first.name, attribute)
            return _bind(self.schema, first.name, attribute)
        if _is_opening(prefix, self.components):
            return _of_opening(self.schema, attribute, opened=self.opened)
        if wrong := _misread(self, prefix, attribute):
            return wrong
        if self.gathers:
            return Wrong(
                "must be inside an aggregate",
                quote(attribute if prefix is None else f"{prefix}.{attribute}"),
                f'Context "all, selected" gathers many events: {USE_AGGREGATES}',
            )
        component = _component(prefix, attribute, self.components, negated=not self.emits)
        if isinstance(component, Wrong):
            return component
        if component.times is not None:
            got, do = quote(f"{prefix}.{attribute}"), f"{quote(component.name)} stands for several events"
            do = f"{do}: {USE_AGGREGATES}"
            if component.times.most == 1:
                do = f"{quote(component.name)} may have no event: write first({prefix}.{attribute})."
            return Wrong("must be inside an aggregate", got, do)
        return _bind(self.schema, prefix, attribute)

    def stands_for_several(self, prefix: str | None) -> bool:
        """Tell whether a name before a dot is that of a component with several events."""
        named = [component for component in nameable(self.components) if component.name == prefix]
        return bool(named) and (self.gathers or named[0].times is not None)

    def aggregate(self, function: str, prefix: str | None, attribute: str) -> Aggregate | Wrong:
        """A value over the events of a component that stands for a group."""
        if self.opened and _is_opening(prefix, self.components):
            return _one_opening(function, attribute)
        counts = function == "count" and prefix is None
        if counts:
            component = _counted(attribute, self.components, negated=not self.emits)
        else:
            component = _component(prefix, attribute, self.components, negated=not self.emits)
        if isinstance(component, Wrong):
            return component
        if wrong := self._no_group(component, function, prefix, attribute):
            return wrong
        return over_group(self.schema, function, component.name, None if counts else attribute)

    def inside(self, function: str) -> Scope:
        """The attributes of one component that stands for a group."""
        return GroupScope(self, function)

    def of_group(self, function: str, prefix: str | None, attribute: str) -> Column | Wrong:
        """An attribute of each event of a component that stands for a group."""
        if self.opened and _is_opening(prefix, self.components):
            return _one_opening(function, attribute)
        component = _component(prefix, attribute, self.components, negated=not self.emits)
        if isinstance(component, Wrong):
            return component
        wrong = self._no_group(component, function, prefix, attribute)
        return wrong or _bind(self.schema, component.name, attribute)

    def _no_group(
        self, component: Component, function: str, prefix: str | None, attribute: str
    ) -> Wrong | None:
        """What is wrong with an aggregate of a component that stands for one event."""
        if component.times is not None or self.gathers:
            return None
        got = f"{function}({attribute if prefix is None else f'{prefix}.{attribute}'})"
        why = "is negated: one event forbids" if component.negated else "stands for one event"
        do = f"{quote(component.name)} {why}; read it by {component.name}.attribute."
        return Wrong("must be about a repeated or optional component", quote(got), do)


@dataclass(frozen=True)
class SpanScope:
    """All events of a span, in a rule that aggregates them: their attributes are read through aggregates.

    An attribute that they share, one of `partition_by`, may also stand alone. Where it is `opened`,
    ``open.attribute`` is that of the event that opened the span.
    """

    schema: EventSchema
    shared: tuple[str, ...] = ()
    opened: bool = False
    looks_back: ClassVar[bool] = False

    def is_prefix(self, name: str) -> bool:
        """The opening event."""
        return self.opened and name == OPENING_EVENT

    def column(self, prefix: str | None, attribute: str) -> Column | Wrong:
        """An attribute that all events share, or of the opening event."""
        if prefix == OPENING_EVENT:
            return _of_opening(self.schema, attribute, opened=self.opened)
        if prefix is None and attribute in self.shared:
            return _bind(self.schema, None, attribute)
        if wrong := _misread(self, prefix, attribute):
            return wrong
        if prefix is not None:
            return _no_components(f"{prefix}.{attribute}", f"avg({attribute})")
        do = f"A span holds many events: {use_one_of(AGGREGATES)}"
        return Wrong("must be inside an aggregate", quote(attribute), do)

    def aggregate(self, function: str, prefix: str | None, attribute: str) -> Aggregate | Wrong:
        """A value over the events of the span."""
        if prefix is not None:
            return _no_components(f"{function}({prefix}.{attribute})", f"{function}({attribute})")
        if function == "count" and attribute == "*":
            return Aggregate("count", None, None, "BIGINT")
        return over_group(self.schema, function, None, attribute)

    def inside(self, function: str) -> Scope:
        """The attributes of each event."""
        return GroupScope(self, function)

    def of_group(self, function: str, prefix: str | None, attribute: str) -> Column | Wrong:
        """An attribute of each event of the span."""
        if prefix is not None:
            return _no_components(f"{function}({prefix}.{attribute})", f"{function}({attribute})")
        return _bind(self.schema, None, attribute)


def _no_components(got: str, instead: str) -> Wrong:
    return Wrong(
        "must be about an attribute without a prefix",
        quote(got),
        f"A rule without a pattern has no components: write for example {instead}.",
    )


def _is_opening(prefix: str | None, components: Sequence[Component]) -> bool:
    """Tell whether a prefix means the event that opened the span: no component has that name."""
    return prefix == OPENING_EVENT and all(component.name != prefix for component in nameable(components))


def _one_opening(function: str, attribute: str) -> Wrong:
    return Wrong(
        "must be about a repeated or optional component",
        quote(f"{function}({OPENING_EVENT}.{attribute})"),
        f"One event opens a span; read it by {OPENING_EVENT}.attribute.",
    )


def _first(components: Sequence[Component]) -> Component:
    """The first component of which every match has an event."""
    there = (one for one in components if not one.negated and (one.times is None or one.times.least > 0))
    return next(there, components[0])


def _counted(name: str, components: Sequence[Component], *, negated: bool) -> Component | Wrong:
    """The component inside ``count(name)``."""
    if any(component.name == name for component in nameable(components)):
        return _component(name, "", components, negated=negated)
    return Wrong("must be a component inside count", quote(name), nearest(name, _names(components, negated)))


def _component(
    prefix: str | None, attribute: str, components: Sequence[Component], *, negated: bool
) -> Component | Wrong:
    """The component that a prefix names; `negated`: whether negated ones exist here."""
    if prefix is None:
        first = _first(nameable(components))
        example = f"{first.name}.{attribute}" if first.times is None else f"last({first.name}.{attribute})"
        return Wrong("must be written component.attribute", quote(attribute), f"Write for example {example}.")
    for component in nameable(components):
        if component.name == prefix and component.negated and not negated:
            do = "Events of a negated component are in no match: name another component."
            return Wrong("must name a component that is not negated", quote(prefix), do)
        if component.name == prefix:
            return component
    return Wrong("must name a component", quote(prefix), nearest(prefix, _names(components, negated)))


def _names(components: Sequence[Component], negated: bool) -> list[str]:
    return [component.name for component in nameable(components) if negated or not component.negated]


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
