"""The constraints of a pattern, each with the pattern without it, and what is said of events that fail it.

A new form of pattern is a line here: what it asks, how the pattern reads without that, which words tell it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np

from spark_pace.core.expr import Expr, Literal, evaluate_mask
from spark_pace.core.expr.canonical_text import canonical_text
from spark_pace.core.match.search.groups import FurtherEvents, in_roles, roles_by_name
from spark_pace.core.match.stream import Found, window_end
from spark_pace.core.operate.match_table import MatchColumns
from spark_pace.core.plan.meaning import length_in_words
from spark_pace.core.plan.members import as_stated, separate
from spark_pace.core.plan.rule import Component, Conjunct, Pattern
from spark_pace.core.tables import Ints
from spark_pace.errors import counted
from spark_pace.reasons.answer import Member, Reason, length
from spark_pace.reasons.rule_stream import Stretch, columns_of, in_values


@dataclass(frozen=True)
class NearMiss:
    """Events that a pattern would match without some of its constraints.

    Attributes:
        stretch: where they stand, and the pattern.
        row: that of the event that is asked about.
        rows: int64[m], their rows, ascending.
        roles: int64[m], the components that they stand for.
    """

    stretch: Stretch
    row: int
    rows: Ints
    roles: Ints

    @staticmethod
    def of(stretch: Stretch, row: int, found: Found, index: int) -> NearMiss:
        """Make it of one of the matches without those constraints."""
        own = slice(found.offsets[index], found.offsets[index + 1])
        return NearMiss(stretch, row, found.members[own], found.roles[own].astype(np.int64))

    @property
    def pattern(self) -> Pattern:
        """The pattern, with all its constraints."""
        return self.stretch.pattern

    @property
    def members(self) -> tuple[Member, ...]:
        """The events."""
        names = [component.name for component in self.pattern.components]
        pairs = zip(self.rows.tolist(), self.roles.tolist(), strict=True)
        return tuple(self.stretch.member(row, names[role]) for row, role in pairs)

    def rows_of(self, component: int) -> Ints:
        """The rows of a component's events."""
        rows: Ints = self.rows[self.roles == component]
        return rows

    def columns(self, component: int = 0, beside: Ints | None = None) -> MatchColumns:
        """What conditions read; or how that is together with each of some events of a negated component."""
        more = np.zeros((1, 0), np.int64) if beside is None else beside[:, None]
        rows = np.column_stack([np.tile(self.rows, (len(more), 1)), more])
        roles = np.column_stack([np.tile(self.roles, (len(more), 1)), np.full_like(more, component)])
        stream, pattern = self.stretch.stream, self.pattern
        found = columns_of(stream, roles_by_name(pattern), rows, roles)
        return replace(found, found=in_roles(found.found, stream, pattern))


Change: TypeAlias = Callable[[Pattern], Pattern]


@dataclass(frozen=True)
class Relaxation:
    """A constraint of a pattern.

    Attributes:
        kind: that of `Reason`.
        condition: the constraint as text.
        without: gives the pattern without it, whatever else it is already without.
        told: what is said of events that would match the pattern without it.
        stopping: where it forbids other events, int64[k], those that stand in the way of a near miss.
        milder: where there is more than one way to be without it, all of them, from `without` to the mildest.
    """

    kind: str
    condition: str
    without: Change
    told: Callable[[NearMiss], Reason]
    stopping: Callable[[NearMiss], Ints] | None = None
    milder: Sequence[Change] = ()


def relaxations(pattern: Pattern) -> list[Relaxation]:
    """All constraints of a sequence or a conjunction but which components it has and in which order."""
    negated = {index for index, one in enumerate(pattern.components) if one.negated}
    found = [_of_condition(one) for one in pattern.every_condition if negated.isdisjoint(one.components)]
    for index, component in enumerate(pattern.components):
        found += _of_component(index, component)
    if pattern.contiguity == "strict":
        found.append(_of_neighbours("contiguity: strict", partial(replace, contiguity="relaxed"), None))
    if pattern.within is not None:
        allowed = f"within {length_in_words(pattern.within)}"
        found.append(Relaxation("within", allowed, _without_window, partial(_too_late, allowed)))
    return found


def _of_condition(one: Conjunct) -> Relaxation:
    def without(pattern: Pattern) -> Pattern:
        left = [tuple(other for other in each if other != one) for each in (pattern.where, pattern.taking)]
        return replace(pattern, where=left[0], taking=left[1])

    text, told = canonical_text(as_stated(one)), _out_of_order if one.is_order else _false
    return Relaxation("order" if one.is_order else "where", text, without, partial(told, one))


def _of_component(index: int, one: Component) -> Iterator[Relaxation]:
    if one.negated:
        yield _of_stopping(
            "forbidden", f"not {one.name}", partial(_permitting, index), partial(_forbidding, index)
        )
    if one.times is not None:
        asked, number = f"{one.name} {one.times}", partial(_number, index)
        if one.times.least > 1:
            fewer = [_times(index, least=least) for least in range(1, one.times.least)]
            yield Relaxation("group", asked, fewer[0], number, milder=fewer)
        if one.times.most is not None:
            yield Relaxation("group", asked, _times(index, most=None), number)
    if one.until is not None:
        until = f"{one.name} until {canonical_text(one.until.predicate)}"
        yield Relaxation("group", until, _component(index, until=None), partial(_ended, index, until))
    if one.further is not None:
        text = canonical_text(one.further)
        yield Relaxation(
            "group", text, _component(index, further=None), partial(_not_joined, index, one.further)
        )
    if one.follows == "strict":
        yield _of_neighbours(f"{one.name} follows: strict", _component(index, follows="relaxed"), index)


def _of_neighbours(setting: str, without: Change, component: int | None) -> Relaxation:
    return _of_stopping("contiguity", setting, without, partial(_between, component))


def _of_stopping(kind: str, asked: str, without: Change, stopping: Callable[[NearMiss], Ints]) -> Relaxation:
    return Relaxation(kind, asked, without, partial(_stopped, kind, asked, stopping), stopping)


# ---------------------------------------------------------------- the pattern without a constraint


def _component(index: int, **values: Any) -> Change:
    def changed(pattern: Pattern) -> Pattern:
        components = [*pattern.components]
        components[index] = replace(components[index], **values)
        return replace(pattern, components=tuple(components))

    return changed


def _times(index: int, **values: Any) -> Change:
    def changed(pattern: Pattern) -> Pattern:
        times = pattern.components[index].times
        assert times is not None
        return _component(index, times=replace(times, **values))(pattern)

    return changed


def _permitting(index: int, pattern: Pattern) -> Pattern:
    return replace(pattern, where=(*pattern.where, Conjunct(Literal(False, "BOOLEAN"), (index,))))


def _without_window(pattern: Pattern) -> Pattern:
    """What negated components in last place forbid ends with the window, so they go with it."""
    last = max(index for index, one in enumerate(pattern.components) if not one.negated)
    behind = range(last + 1, len(pattern.components))
    return reduce(lambda one, index: _permitting(index, one), behind, replace(pattern, within=None))


# ---------------------------------------------------------------- what is said of events that fail it


def _false(one: Conjunct, miss: NearMiss) -> Reason:
    columns, components = miss.columns(), miss.pattern.components
    parts = separate(one, components)
    part = next((each for each in parts if not evaluate_mask(each.expr, columns)[0]), parts[0])
    text, values = in_values(columns, as_stated(part))
    return Reason("where", text, canonical_text(as_stated(part)), values)


def _out_of_order(one: Conjunct, miss: NearMiss) -> Reason:
    names = [miss.pattern.components[index].name for index in one.components]
    rows = (int(miss.rows_of(index)[0]) for index in one.components)
    first, second = (miss.stretch.member(row, name) for row, name in zip(rows, names, strict=True))
    order = ", then ".join(names)
    return Reason("order", f"{order}: {second} came before {first}", order, by=(second, first))


def _too_late(allowed: str, miss: NearMiss) -> Reason:
    within, (first, *_, last) = miss.pattern.within, np.append(miss.rows, miss.rows[-1]).tolist()
    time = miss.stretch.stream.time
    took = length(time[last] - time[first])
    assert within is not None
    if within.events is not None and (within.time_us is None or last - first >= within.events):
        took = counted(last - first + 1, "event")
    return Reason("within", f"{allowed}: {took}", allowed, {"within": took})


def _number(index: int, miss: NearMiss) -> Reason:
    component, count = miss.pattern.components[index], len(miss.rows_of(index))
    asked = f"{component.name} {component.times}"
    return Reason("group", f"{asked}: {counted(count, 'event')}", asked, {"count": count})


def _ended(index: int, until: str, miss: NearMiss) -> Reason:
    component, group = miss.pattern.components[index], miss.rows_of(index)
    assert component.until is not None
    before = np.append(group[0], miss.rows[miss.roles < index])[-1]
    ends = miss.stretch.stream.matching(component.until.bit)
    by = miss.stretch.member(int(ends[ends > before][0]))
    return Reason("group", f"{component.name}: {by} ended it", until, by=(by,))


def _not_joined(index: int, stated: Expr, miss: NearMiss) -> Reason:
    """Tell of the event itself, or the first other one, that those which joined the group keep out."""
    stretch = miss.stretch
    pattern, mine = stretch.inside(miss.pattern), stretch.stream.matching(index)
    further = FurtherEvents(stretch.stream, pattern, index, mine)
    joined, refused = miss.rows_of(index)[:1], list[tuple[int, Ints]]()
    for row in miss.rows_of(index)[1:].tolist():
        if evaluate_mask(further.condition, further.tested(joined, row))[0]:
            joined = np.append(joined, row)
        else:
            refused.append((row, joined))
    row, before = next((one for one in refused if one[0] == miss.row), refused[0])
    text, values = in_values(further.tested(before, row), further.condition, stated)
    member = stretch.member(row, miss.pattern.components[index].name)
    return Reason("group", f"{member}: {text}", canonical_text(stated), values, (member,))


def _stopped(kind: str, asked: str, stopping: Callable[[NearMiss], Ints], miss: NearMiss) -> Reason:
    rows = stopping(miss)
    rows = rows[np.argsort(rows != miss.row, kind="stable")]  # the event itself is named in any case
    name = asked.removeprefix("not ") if kind == "forbidden" else ""
    by = tuple(miss.stretch.member(row, name) for row in rows[:3].tolist())
    named = ", ".join(map(str, by)) + (f" and {len(rows) - 3} more" if len(rows) > 3 else "")
    do = ("forbids it", "forbid it") if kind == "forbidden" else ("stands between", "stand between")
    return Reason(kind, f"{asked.replace(': ', ' ')}: {named} {do[len(rows) > 1]}", asked, by=by)


def _between(component: int | None, miss: NearMiss) -> Ints:
    """What stands between the events; of a component, what stands directly before its own."""
    pairs = zip(pairwise(miss.rows.tolist()), miss.roles[1:].tolist(), strict=True)
    gaps = [range(before + 1, row) for (before, row), role in pairs if component in (None, role)]
    return np.array([row for gap in gaps for row in gap], np.int64)


def _forbidding(index: int, miss: NearMiss) -> Ints:
    """The events of a negated component that forbid the others."""
    stretch, before, behind = miss.stretch, miss.rows[miss.roles < index], miss.rows[miss.roles > index]
    rows = stretch.stream.matching(index)
    if not len(before):  # an optional component in first place has no event
        return rows[:0]
    until = behind[0] if len(behind) else window_end(stretch.stream, miss.rows[:1], miss.pattern.within)[0]
    rows = rows[(rows > before[-1]) & (rows < until)]
    columns, forbids = miss.columns(index, rows), np.ones(len(rows), np.bool_)
    for one in miss.pattern.where:
        if index in one.components:
            forbids &= evaluate_mask(one.expr, columns)
    found: Ints = rows[forbids]
    return found
