"""What names mean in an expression: which events, and which of their attributes.

Each function makes the scope of one place of a rule: a table of the names that may stand before a dot.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TypeAlias

from sqlglot import exp

from spark_pace.core.expr import Aggregate, Column, Expr
from spark_pace.core.plan.conditions import OPENING_EVENT
from spark_pace.core.plan.members import nameable
from spark_pace.core.plan.rule import STATE_AFTER, STATE_BEFORE, STATE_SINCE, Component, EventSchema, Times
from spark_pace.rules.document import nearest, quote
from spark_pace.rules.expressions.types import (
    AGGREGATES,
    USE_AGGREGATES,
    Wrong,
    find_type,
    over_group,
    use_one_of,
)

STATE = "state"
_OF_STATES = {
    "from": Column(None, STATE_BEFORE, "STRING"),
    "to": Column(None, STATE_AFTER, "STRING"),
    "since": Column(None, STATE_SINCE, "TIMESTAMP"),
}
_ONE_EVENT = "Write the attribute alone: one event is looked at here; where is about several."
_NOT_BACK = "Use it in filter, or in a pattern: in a component's condition, in where or in emit."
Compile: TypeAlias = "Callable[[exp.Expr, Scope], Expr | None]"  # None: it is reported as wrong
Called: TypeAlias = Callable[[exp.Anonymous, Compile], "Expr | Wrong | None"]  # what a call stands for
Of: TypeAlias = Callable[[str], "Expr | Wrong"]  # what an attribute stands for
# what an aggregate stands for, and an attribute in what it is computed of; by its name and that before a dot
Aggregated: TypeAlias = Callable[[str, "str | None", str], "Aggregate | Wrong"]
Inside: TypeAlias = Callable[[str, "str | None", str], "Column | Wrong"]


@dataclass(frozen=True)
class Scope:
    """What names mean.

    Attributes:
        schema: the attributes of the events.
        names: what may stand before a dot, each with what an attribute of it is.
        alone: what an attribute with nothing before it is.
        other: what is wrong with an attribute of any other name.
        aggregate: what ``function(name.attribute)`` stands for; of ``count(x)``, x is given as the attribute.
        of_each: what an attribute is in what an aggregate is computed of; None where none may be computed.
        several: the names of components that stand for several events; None where there are no components.
        not_back: why ``prev`` has no meaning; None where it has one.
        calls: what a call stands for, if it has a meaning of its own here; None for the others.
    """

    schema: EventSchema
    names: Mapping[str, Of]
    alone: Of
    other: Callable[[str, str], Wrong]
    aggregate: Aggregated
    of_each: Inside | None = None
    several: frozenset[str] | None = None
    not_back: str | None = field(default=_NOT_BACK, kw_only=True)
    calls: Callable[[exp.Anonymous], Called | None] = field(default=lambda _: None, kw_only=True)

    def column(self, prefix: str | None, attribute: str) -> Expr | Wrong:
        """What ``prefix.attribute`` or ``attribute`` stands for."""
        if prefix is None:
            return self.alone(attribute)
        return self.names[prefix](attribute) if prefix in self.names else self.other(prefix, attribute)

    def inside(self, function: str) -> Scope | Wrong:
        """The names in what an aggregate is computed of, if that is more than a name."""
        of = self.of_each
        if of is None:
            found = self.aggregate(function, None, "")
            assert isinstance(found, Wrong)
            return found
        names = {name: partial(of, function, name) for name in self.names}
        not_back = "It looks before one event, not before each of several."
        other: Callable[[str, str], Wrong] = partial(of, function)  # type: ignore[assignment]
        alone = partial(of, function, None)
        return Scope(self.schema, names, alone, other, _nested, not_back=not_back)


def event_scope(
    schema: EventSchema, *, opened: bool = False, looks_back: bool = False, closes: bool = False
) -> Scope:
    """One event, its attributes without a prefix: filter, component predicates, a span's open.

    Args:
        schema: the attributes.
        opened: whether ``open.attribute`` is that of the event that opened the span of this one.
        looks_back: whether ``prev`` is an attribute of an event before this one.
        closes: whether this event closes the span: the scope of a span's close.
    """
    this = "the closing event's." if closes else "the event's own."
    both = (
        'must be an attribute, or "open." and an attribute',
        f"Write open.x for the opening event's x, and x for {this}",
    )
    must, do = both if opened else ("must be an attribute without a prefix", _ONE_EVENT)

    def opening(attribute: str) -> Column | Wrong:
        if not closes or OPENING_EVENT not in schema.structs:
            return _bind(schema, OPENING_EVENT, attribute)
        told = "must not be both a STRUCT and the opening event"
        return Wrong(told, quote(OPENING_EVENT), "Rename the STRUCT.")

    names: dict[str, Of] = {OPENING_EVENT: opening} if opened else {}

    def alone(attribute: str) -> Column | Wrong:
        return _name_alone(schema, names, attribute) or _bind(schema, None, attribute)

    def other(prefix: str, attribute: str) -> Wrong:
        return Wrong(must, quote(f"{prefix}.{attribute}"), do)

    return Scope(schema, names, alone, other, _single, not_back=None if looks_back else _NOT_BACK)


def _single(function: str, prefix: str | None, attribute: str) -> Wrong:
    do = (
        "Aggregates are for where and emit, and for when of a component with times: they read several events."
    )
    return Wrong("must be about single events", f"{function}(...)", do)


def own_group_scope(event: Scope, component: str) -> Scope:
    """An event that may join the group of a component; through aggregates what the group has before it."""

    def column(attribute: str) -> Wrong:
        got, must = (
            f"{component}.{attribute}",
            "must be an attribute without a prefix, or inside an aggregate",
        )
        before = f"last({got}) for that of the event that the group has before it"
        return Wrong(must, quote(got), f"Write {attribute} for the event's own, {before}.")

    def of_others(function: str, prefix: str | None, attribute: str) -> Wrong:
        got = quote(f"{function}({_dotted(prefix, attribute)})")
        do = f"Write for example last({component}.x); conditions on several components belong into where."
        return Wrong("must be about the group of its own component", got, do)

    def aggregate(function: str, prefix: str | None, attribute: str) -> Aggregate | Wrong:
        if function == "count" and prefix is None and attribute == component:
            return over_group(event.schema, "count", component)
        if prefix != component:
            return of_others(function, prefix, attribute)
        return over_group(event.schema, function, component, attribute)

    def of_each(function: str, prefix: str | None, attribute: str) -> Column | Wrong:
        own = prefix == component
        return _bind(event.schema, component, attribute) if own else of_others(function, prefix, attribute)

    names = {**event.names, component: column}
    return replace(event, names=names, aggregate=aggregate, of_each=of_each)


@dataclass(frozen=True)
class OfMatches:
    """The events of a candidate, to which the names of a pattern's components belong.

    A component that stands for one event is read by ``component.attribute``, a repeated or optional one
    through aggregates.

    Attributes:
        schema: the attributes.
        components: the pattern's components.
        shared: attributes that all events share, those of `partition_by`: they may stand without a prefix.
        emits: whether the names are those of `emit`, where negated components do not exist.
        opened: whether ``open.attribute`` is that of the event that opened the span.
        gathers: whether every component stands for a group, as in the context "all, selected".
        alternatives: whether there is no component of which every match has an event.
    """

    schema: EventSchema
    components: Sequence[Component]
    shared: Sequence[str] = ()
    emits: bool = False
    opened: bool = False
    gathers: bool = False
    alternatives: bool = False

    @property
    def scope(self) -> Scope:
        """What names mean."""
        several = frozenset(name for name, one in self._named.items() if one.times is not None)
        of = (self._alone, self._other, self._aggregate, self._of_each)
        return Scope(self.schema, self._names, *of, several, not_back=None)

    @cached_property
    def _named(self) -> dict[str, Component]:
        named = {component.name: component for component in nameable(self.components)}
        if self.gathers:
            return {name: replace(one, times=one.times or Times(1, None)) for name, one in named.items()}
        return named

    @cached_property
    def _names(self) -> dict[str, Of]:
        opening: dict[str, Of] = (
            {OPENING_EVENT: partial(_bind, self.schema, OPENING_EVENT)} if self.opened else {}
        )
        return {**opening, **{name: partial(self._of, name) for name in self._named}}

    def _of(self, name: str, attribute: str) -> Column | Wrong:
        """An attribute of the event bound to a component."""
        component = self._component(name, "must name a component")
        if isinstance(component, Wrong):
            return component
        if component.times is None:
            return _bind(self.schema, name, attribute)
        here = ' in the context "all, selected"' * self.gathers
        do = f"{quote(name)} stands for several events{here}: {USE_AGGREGATES}"
        if component.times.most == 1 and not self.gathers:
            do = f"{quote(name)} may have no event: write first({name}.{attribute})."
        return Wrong("must be inside an aggregate", quote(f"{name}.{attribute}"), do)

    def _alone(self, attribute: str) -> Expr | Wrong:
        if attribute in self.shared:
            first = _first(self.components)
            if (self.gathers or first.times is not None) and not self.alternatives:
                return over_group(self.schema, "first", first.name, attribute)
            return _bind(self.schema, None if self.alternatives else first.name, attribute)
        if wrong := _name_alone(self.schema, self._names, attribute):
            return wrong
        return self._unprefixed(attribute)

    def _other(self, prefix: str, attribute: str) -> Wrong:
        return self._unknown(prefix, "must name a component")

    def _aggregate(self, function: str, prefix: str | None, attribute: str) -> Aggregate | Wrong:
        """A value over the events of a component that stands for a group."""
        counts = function == "count" and prefix is None
        found = self._group(function, prefix, attribute, attribute if counts else prefix)
        if isinstance(found, Wrong):
            return found
        return over_group(self.schema, function, found.name, None if counts else attribute)

    def _of_each(self, function: str, prefix: str | None, attribute: str) -> Column | Wrong:
        """An attribute of each event of a component that stands for a group."""
        found = self._group(function, prefix, attribute, prefix)
        return found if isinstance(found, Wrong) else _bind(self.schema, found.name, attribute)

    def _group(
        self, function: str, prefix: str | None, attribute: str, name: str | None
    ) -> Component | Wrong:
        """The component of that name, if it stands for a group."""
        if prefix == OPENING_EVENT and self.opened and prefix not in self._named:
            got, do = (
                f"{function}({prefix}.{attribute})",
                f"One event opens a span; read it by {prefix}.attribute.",
            )
            return Wrong("must be about a repeated or optional component", quote(got), do)
        if name is None:
            return self._unprefixed(attribute)
        counts = prefix is None
        component = self._component(
            name, "must be a component inside count" if counts else "must name a component"
        )
        if isinstance(component, Wrong) or component.times is not None:
            return component
        why = "is negated: one event forbids" if component.negated else "stands for one event"
        got, do = (
            f"{function}({_dotted(prefix, attribute)})",
            f"{quote(name)} {why}; read it by {name}.attribute.",
        )
        return Wrong("must be about a repeated or optional component", quote(got), do)

    def _component(self, name: str, must: str) -> Component | Wrong:
        """The component of a name, if it exists here."""
        if name not in self._named:
            return self._unknown(name, must)
        if not self.emits or not self._named[name].negated:
            return self._named[name]
        do = "Events of a negated component are in no match: name another component."
        return Wrong("must name a component that is not negated", quote(name), do)

    def _unknown(self, name: str, must: str) -> Wrong:
        known = [name for name, one in self._named.items() if not (self.emits and one.negated)]
        known += [OPENING_EVENT] * (self.opened and name != OPENING_EVENT)
        return Wrong(must, quote(name), nearest(name, known))

    def _unprefixed(self, attribute: str) -> Wrong:
        first = _first([*self._named.values()])
        one = f"{first.name}.{attribute}"
        do = f"Write for example {one if first.times is None else f'last({one})'}."
        return Wrong("must be written component.attribute", quote(attribute), do)


def span_scope(schema: EventSchema, shared: Sequence[str] = (), *, opened: bool = False) -> Scope:
    """All events of a span, in a rule that aggregates them: their attributes are read through aggregates.

    An attribute that they share, one of `partition_by`, may also stand alone. Where it is `opened`,
    ``open.attribute`` is that of the event that opened the span.
    """

    def alone(attribute: str) -> Column | Wrong:
        if attribute in shared:
            return _bind(schema, None, attribute)
        do = f"A span holds many events: {use_one_of(AGGREGATES)}"
        wrong = Wrong("must be inside an aggregate", quote(attribute), do)
        return _name_alone(schema, names, attribute) or wrong

    def no_components(got: str, instead: str) -> Wrong:
        do = f"A rule without a pattern has no components: write for example {instead}."
        return Wrong("must be about an attribute without a prefix", quote(got), do)

    def other(prefix: str, attribute: str) -> Wrong:
        return no_components(f"{prefix}.{attribute}", f"avg({attribute})")

    def aggregate(function: str, prefix: str | None, attribute: str) -> Aggregate | Wrong:
        if prefix is not None:
            return no_components(f"{function}({prefix}.{attribute})", f"{function}({attribute})")
        counts = function == "count" and attribute == "*"
        return over_group(schema, function, None, None if counts else attribute)

    def of_each(function: str, prefix: str | None, attribute: str) -> Column | Wrong:
        if prefix is not None:
            return no_components(f"{function}({prefix}.{attribute})", f"{function}({attribute})")
        return _bind(schema, None, attribute)

    names: dict[str, Of] = {OPENING_EVENT: partial(_bind, schema, OPENING_EVENT)} if opened else {}
    return Scope(schema, names, alone, other, aggregate, of_each)


def move_scope(schema: EventSchema) -> Scope:
    """An event that moves its key: its attributes stand alone, ``state.from`` is the state that it leaves."""

    def of_states(attribute: str) -> Column | Wrong:
        got, names = f"{STATE}.{attribute}", [f"{STATE}.{name}" for name in _OF_STATES]
        return _OF_STATES.get(attribute) or Wrong(
            "must be one of its states", quote(got), nearest(got, names)
        )

    def other(prefix: str, attribute: str) -> Wrong:
        do = f"Write {attribute} for the event's, or state.from, state.to or state.since."
        return Wrong("must be an attribute without a prefix", quote(f"{prefix}.{attribute}"), do)

    def aggregate(function: str, prefix: str | None, attribute: str) -> Wrong:
        do = "A move is about one event: write its attributes, or state.from, state.to or state.since."
        return Wrong("must be about single events", f"{function}(...)", do)

    return Scope(schema, {STATE: of_states}, partial(_bind, schema, None), other, aggregate)


def _bind(schema: EventSchema, component: str | None, attribute: str) -> Column | Wrong:
    kind = find_type(schema, attribute)
    return kind if isinstance(kind, Wrong) else Column(component, attribute, kind)


def _dotted(prefix: str | None, attribute: str) -> str:
    return attribute if prefix is None else f"{prefix}.{attribute}"


def _name_alone(schema: EventSchema, names: Mapping[str, Of], attribute: str) -> Wrong | None:
    """What is wrong with an event's name in the place of one of its attributes; None for another name."""
    if attribute not in names or any(field.name == attribute for field in schema.fields):
        return None
    example = schema.fields[0].name if schema.fields else "x"  # a schema that is wrong has none
    do = f"Write for example {attribute}.{example}."
    return Wrong("must name an attribute as well", quote(attribute), do)


def _nested(function: str, prefix: str | None, attribute: str) -> Wrong:
    must, do = "must not be inside an aggregate", "Give the inner one by itself, as a field or a rule."
    return Wrong(must, f"{function}(...)", do)


def _first(components: Sequence[Component]) -> Component:
    """The first component of which every match has an event."""
    there = (one for one in components if not one.negated and (one.times is None or one.times.least > 0))
    return next(there, components[0])
