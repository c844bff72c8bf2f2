"""The shape of a pattern: the events that a search chooses one by one, and what stands between them.

A search chooses *anchors*: the event of each component that stands for one event, the first event of a group
in first place, and the last event of a group in last place. The anchors determine a candidate, because a
group has all events that match it between its neighbours. Where a group directly follows another one, its
first event is an anchor too, because it tells where the group before ends. Where that group is optional and
empty, its anchor is the next one too: the event with which a group behind it begins, or that of the component
behind.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import pairwise, takewhile

from spark_pace.core.expr import Call, Column
from spark_pace.core.plan.rule import Component, Conjunct, Pattern, Times
from spark_pace.core.tables import SEQ

_ANY = Times(0, None)


def component_bits(pattern: Pattern) -> int:
    """The bits of ``@mask`` that mark events of components."""
    return (1 << len(pattern.components)) - 1


def without_members(pattern: Pattern) -> int:
    """All bits of ``@mask`` but those that mark events of members of disjunctions."""
    members = (1 << member.bit for one in pattern.components for member in one.members)
    return 0xFFFF & ~sum(members)


def in_turn(components: Sequence[Component], sequence: Sequence[int]) -> tuple[Conjunct, ...]:
    """The conditions of a sequence in another pattern: each component's event stands before the next one's.

    Args:
        components: the components of the whole pattern.
        sequence: the indices of those of the sequence, ascending.
    """
    places = [Column(components[index].name, SEQ, "BIGINT") for index in sequence]
    before = [Call("<", pair, "BOOLEAN") for pair in pairwise(places)]
    return tuple(Conjunct(expr, pair) for expr, pair in zip(before, pairwise(sequence), strict=True))


def sequences_of(pattern: Pattern) -> tuple[tuple[int, ...], ...]:
    """The sequences in a conjunction, or a disjunction: for each the indices of its components, ascending."""
    found: list[tuple[int, ...]] = []
    for first, second in (one.components for one in pattern.where if one.is_order):
        if found and found[-1][-1] == first:
            found[-1] = (*found[-1], second)
        else:
            found.append((first, second))
    return tuple(found)


def alternatives_of(pattern: Pattern) -> tuple[tuple[int, ...], ...]:
    """The alternatives of a disjunction: for each the indices of its components, ascending."""
    return alternatives_among(len(pattern.components), sequences_of(pattern))


def alternatives_among(count: int, sequences: Sequence[Sequence[int]]) -> tuple[tuple[int, ...], ...]:
    """The alternatives of a disjunction of so many components: its sequences, and each other one alone."""
    inside = {index for one in sequences for index in one}
    alone = ((index,) for index in range(count) if index not in inside)
    return tuple(sorted((*map(tuple, sequences), *alone)))


def alternative(pattern: Pattern, components: Sequence[int]) -> Pattern:
    """The sequence that an alternative of a disjunction is."""
    own = (one for one in pattern.conditions if set(components).issuperset(one.components))
    where = (replace(c, components=tuple(map(components.index, c.components))) for c in own)
    listed = tuple(pattern.components[index] for index in components)
    return replace(pattern, components=listed, where=tuple(where), order="sequence")


def _bits(indices: Iterable[int]) -> int:
    """The mask with these bits."""
    return sum(1 << index for index in indices)


def initiator_bits(pattern: Pattern) -> int:
    """The bits of ``@mask`` that mark initiators: an event that can open a selection has at least one."""
    if pattern.order != "sequence":
        return component_bits(pattern) & ~_bits(index for one in sequences_of(pattern) for index in one[1:])
    behind = shape_of(pattern).without_first
    return 1 if behind is None else 1 | 1 << behind


def terminator_bits(pattern: Pattern) -> int:
    """The bits of ``@mask`` that mark terminators: an event that can end a candidate has at least one."""
    if pattern.order != "sequence":
        return component_bits(pattern) & ~_bits(index for one in sequences_of(pattern) for index in one[:-1])
    shape = shape_of(pattern)
    behind = 0 if shape.optional_last is None else 1 << shape.optional_last
    return 1 << shape.anchors[-1] | behind


@dataclass(frozen=True)
class Gap:
    """The group and the negated components between two neighbouring anchors.

    Attributes:
        group: the component whose group stands in the gap; None if there is none.
        times: the number of events in the group.
        from_left: True if the left anchor is the group's first event.
        to_right: True if the right anchor is the group's last event.
        before: the negated components between the left anchor and the group; without a group, all of the gap.
        behind: the negated components between the group and the right anchor.
        closed: True if no event but those of the group may stand between the anchors.
        adjoined: True if no event may stand between the group, or the left anchor if it is empty, and the
            right anchor.
        first: True if the group is optional and in first place: where it is empty, both anchors are the event
            of the component behind it.
        handed: True if the right anchor is the first event of a group that directly follows this one: the
            first that matches, once this group has its least number.
        skipped: True if the group is optional and directly follows another one: where it is empty, both
            anchors are one event, with which a group behind it begins, or of the component behind it.
    """

    group: int | None = None
    times: Times = _ANY
    from_left: bool = False
    to_right: bool = False
    before: tuple[int, ...] = ()
    behind: tuple[int, ...] = ()
    closed: bool = False
    adjoined: bool = False
    first: bool = False
    handed: bool = False
    skipped: bool = False


@dataclass(frozen=True)
class Shape:
    """The anchors and gaps of a pattern. Level k of a search adds anchor k.

    Attributes:
        anchors: the component of each anchor.
        gaps: the gaps; gap k lies between the anchors k and k + 1.
        trailing: the components behind the last anchor: negated ones, or an optional one in last place.
        complete: for each component the level at which its events are known; for a negated one, the level at
            which the events on both of its sides are known.
        optional_last: the optional component in last place; None if there is none.
    """

    anchors: tuple[int, ...]
    gaps: tuple[Gap, ...]
    trailing: tuple[int, ...]
    complete: tuple[int, ...]
    optional_last: int | None = None

    @property
    def simple(self) -> bool:
        """True if any events may stand between the anchors, and behind them."""
        return not self.trailing and all(gap == Gap() for gap in self.gaps)

    @property
    def without_first(self) -> int | None:
        """The component that matches begin with if an optional one in first place has no event."""
        return self.anchors[1] if self.gaps and self.gaps[0].first else None

    def may_coincide(self, level: int) -> bool:
        """True if the anchors of `level` and of the one before may be one event.

        They are the last and the first event of one group, or the first of them stands for an optional group
        in first place, or one that directly follows another. False for level 0, before which there is none.
        """
        gap = self.gaps[level - 1] if level > 0 else Gap()
        return gap.from_left and (gap.to_right or gap.first or gap.skipped)

    def components_at(self, level: int) -> tuple[int, ...]:
        """The components of which the anchor of a level may be an event.

        They are its own; and where its group is optional and directly follows another one, those behind it,
        up to the first that is not optional.
        """
        behind = takewhile(lambda place: self.gaps[place].skipped, range(level, len(self.gaps)))
        return self.anchors[level], *(self.anchors[place + 1] for place in behind)

    def level(self, conjunct: Conjunct) -> int:
        """The level at which a conjunct can be tested."""
        return max(self.complete[component] for component in conjunct.components)


@dataclass
class _Building:
    """The parts of a shape so far; `shape_of` adds the components of a pattern from left to right."""

    pattern: Pattern
    anchors: list[int] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)
    complete: dict[int, int] = field(default_factory=dict)
    group: int | None = None
    before: list[int] = field(default_factory=list)
    behind: list[int] = field(default_factory=list)

    def stand_behind(self, component: int) -> None:
        """Add a negated component, or an optional one in last place."""
        (self.before if self.group is None else self.behind).append(component)
        self.complete[component] = len(self.anchors)

    def gather(self, component: int) -> None:
        """Add a group; `anchor` adds those of its events that are anchors."""
        self.group = component
        self.complete[component] = max(1, len(self.anchors))  # a first group goes on behind anchor 0, its own

    def anchor(self, component: int, times: Times | None, *, to_right: bool = False) -> None:
        """Add an anchor, and the gap before it; `times` says how many events the group in the gap has."""
        if self.anchors:
            from_left = self.group is not None and self.anchors[-1] == self.group
            before, behind = tuple(self.before), tuple(self.behind)
            own = self.pattern.components[component]
            follows = own.follows == "strict" and own.times is None
            closed = self.pattern.contiguity == "strict" or (follows and self.group is None)
            adjoined = follows and not closed
            optional = from_left and times is not None and times.least == 0
            first = optional and len(self.anchors) == 1
            own_gap = Gap(
                self.group, times or _ANY, from_left, to_right, before, behind, closed, adjoined, first
            )
            handed = own.times is not None and not to_right
            self.gaps.append(replace(own_gap, handed=handed, skipped=optional and not first))
        self.complete.setdefault(component, len(self.anchors))
        self.anchors.append(component)
        if len(self.anchors) > 1:  # the group of anchor 0 stands in the gap behind it, too
            self.group = None
        self.before, self.behind = [], []


@lru_cache(maxsize=4096)
def shape_of(pattern: Pattern) -> Shape:
    """The shape of a checked pattern."""
    components = pattern.components
    optional_last = optional_last_of(pattern)
    positive = [index for index, one in enumerate(components) if not one.negated and index != optional_last]
    building = _Building(pattern)

    def times() -> Times | None:
        return None if building.group is None else components[building.group].times

    for index, component in enumerate(components):
        if component.negated or index == optional_last:
            building.stand_behind(index)
            continue
        if component.times is None:
            building.anchor(index, times())
            continue
        if building.group is not None:
            building.anchor(index, times())
        building.gather(index)
        if index == positive[0]:
            building.anchor(index, None)
        if index == positive[-1]:
            building.anchor(index, times(), to_right=True)
    trailing = (*building.before, *building.behind)
    last = len(building.anchors) - 1
    complete = tuple(min(last, building.complete[index]) for index in range(len(components)))
    return Shape(tuple(building.anchors), tuple(building.gaps), trailing, complete, optional_last)


def optional_last_of(pattern: Pattern) -> int | None:
    """The optional component in last place: what it takes does not decide whether there is a match."""
    last = len(pattern.components) - 1
    times = pattern.components[last].times
    there = last > 0 and times is not None and times.least == 0 and pattern.order == "sequence"
    return last if there else None


def may_differ_behind(pattern: Pattern) -> bool:
    """True if candidates with the same first and last event may take different events behind these.

    They may if a condition that names an optional component in last place reads other events of theirs.
    """
    anchors = shape_of(pattern).anchors
    same = {one for one in (anchors[0], anchors[-1]) if pattern.components[one].times is None}
    same.add(len(pattern.components) - 1)
    return any(not same.issuperset(one.components) for one in pattern.taking)


def runs(pattern: Pattern, component: int) -> bool:
    """True for a group whose events directly follow each other, whatever its anchors say."""
    strict = component == optional_last_of(pattern) and pattern.contiguity == "strict"
    return strict or pattern.components[component].runs


def asks_for_neighbours(pattern: Pattern) -> bool:
    """True if it matters whether other events stand between those of a match, whatever these are."""
    follows = any(component.follows == "strict" for component in pattern.components)
    return pattern.contiguity == "strict" or follows


@lru_cache(maxsize=4096)
def places_of(pattern: Pattern) -> Mapping[str | None, int]:
    """The level of each component that stands for one event, by its name; negated ones behind all levels."""
    shape, components = shape_of(pattern), pattern.components
    alone = [(components[index], level) for level, index in enumerate(shape.anchors)]
    places: dict[str | None, int] = {one.name: level for one, level in alone if one.times is None}
    negated = (one.name for one in components if one.negated)
    places.update({name: level for level, name in enumerate(negated, len(shape.anchors))})
    return places


def rearranged(pattern: Pattern, order: Sequence[int]) -> Pattern:
    """The sequence of the pattern's components in another order. Searches use it; its matches differ."""
    places = {component: place for place, component in enumerate(order)}
    where = (replace(c, components=tuple(sorted(places[k] for k in c.components))) for c in pattern.where)
    components = tuple(pattern.components[k] for k in order)
    return replace(pattern, components=components, where=tuple(where), order="sequence")
