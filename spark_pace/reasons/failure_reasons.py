"""Finds the first reason why a candidate fails: window, neighbours, groups, `where`, forbidding events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from spark_pace.core.columns import Ints
from spark_pace.core.expr import evaluate_mask
from spark_pace.core.expr.canonical_text import canonical_text
from spark_pace.core.match.search.limits import begins_behind, stands_before_begin
from spark_pace.core.match.search.search import Search
from spark_pace.core.plan.members import as_stated, asked_where_it_stands, separate
from spark_pace.core.plan.rule import Conjunct
from spark_pace.core.plan.shape import Gap
from spark_pace.core.plan.time_units import length_in_words
from spark_pace.errors import counted
from spark_pace.reasons.answer_parts import Member
from spark_pace.reasons.stretch import (
    Stretch,
    as_matrix,
    component_at,
    events_of,
    in_values,
    is_false,
)
from spark_pace.reasons.wording import length


@dataclass(frozen=True)
class Failure:
    """The reason why a candidate stops, with the fields of `answer.Candidate`."""

    kind: str
    text: str
    condition: str | None = None
    values: dict[str, Any] = field(default_factory=dict)
    by: tuple[Member, ...] = ()
    waits: bool = False

    def names(self, seq: int) -> bool:
        """True if the event with that `seq` stops the candidate."""
        return any(member.event.seq == seq for member in self.by)


def too_late(stretch: Stretch, first: int, tried: int) -> Failure | None:
    """The failure of an event behind the window of a candidate's first event; None if it is inside."""
    within, stream = stretch.pattern.within, stretch.stream
    if within is None or tried < stretch.window_end(first):
        return None
    allowed = f"within {length_in_words(within)}"
    took = length(stream.time[tried] - stream.time[first])
    if within.events is not None and (within.time_us is None or tried - first >= within.events):
        took = counted(tried - first + 1, "event")
    return Failure("within", f"{allowed}: {took}", allowed, {"within": took})


def out_of_reach(stretch: Stretch, search: Search, rows: list[int]) -> Failure | None:
    """The failure of the last of these rows behind the window of the first one; None if it is inside.

    In a strict pattern what stands between says more than the window, which may be implied.
    """
    late = too_late(stretch, rows[0], rows[-1])
    return late and (_neighbours(stretch, search, rows) or late)


def failure_of(stretch: Stretch, search: Search, rows: list[int]) -> Failure | None:
    """Why a candidate fails at the last of these rows; None if it does not.

    Args:
        stretch: the events that it is made of.
        search: the search of the stretch, or a search without the events that are used up.
        rows: the rows of its first anchors; all but the last one have passed.
    """
    late = out_of_reach(stretch, search, rows)
    if late is not None:
        return late
    if search.levels[len(rows) - 1].bound:
        between = _neighbours(stretch, search, rows)
        if len(rows) > 1 and search.between.shape.gaps[len(rows) - 2].to_right:
            between = between or not_joined(stretch, search, rows[:-1], rows[-1])
        between = between or _count(stretch, search, rows)
        if between is not None:
            return between
    failure = false_condition(stretch, search, rows) or _forbidden(stretch, search, rows, len(rows) - 1)
    own, *behind = search.between.shape.components_at(len(rows) - 1)
    if failure is None and search.walking and behind and rows[-1] not in search.between.rows_of[own]:
        return failure_of(stretch, search, [*rows, rows[-1]])
    return failure


def forbidden_walk(stretch: Stretch, search: Search, rows: list[int]) -> Failure | None:
    """The failure of a complete walk that an event forbids, or None."""
    return _forbidden(stretch, search, rows, None)


def _neighbours(stretch: Stretch, search: Search, rows: list[int]) -> Failure | None:
    """The failure by events between the last two anchors where these must be neighbours; else None."""
    gap = search.between.shape.gaps[len(rows) - 2] if len(rows) > 1 else Gap()
    if not (gap.closed or gap.adjoined):
        return None
    own = {row for _, row in events_of(search, rows, walking=stretch.walks)}
    start = rows[-2] if gap.closed else max(row for row in own if row < rows[-1])
    others = [row for row in range(start + 1, rows[-1]) if row not in own]
    return not_strict(stretch, others) if others else None


def not_strict(stretch: Stretch, others: Sequence[int]) -> Failure:
    """The failure by rows that stand between the events of a candidate."""
    by = tuple(stretch.member(row) for row in others[:3])
    more = f" and {len(others) - 3} more" if len(others) > 3 else ""
    stand = "stands" if len(others) == 1 else "stand"
    setting = "contiguity" if stretch.pattern.contiguity == "strict" else "follows"
    text = f"{setting} strict: {', '.join(map(str, by))}{more} {stand} between"
    return Failure("contiguity", text, f"{setting}: strict", by=by)


def first_break(
    stretch: Stretch, own: list[tuple[str, int]], tried: int | None
) -> tuple[list[tuple[str, int]], int, Failure] | None:
    """Where a candidate of a strict pattern is broken first; None if it is not, or the pattern is relaxed.

    Args:
        stretch: the events that it is made of.
        own: (component, row) of its events, ascending.
        tried: the row that was tried behind them; None if there is none.

    Returns:
        The events before the break, the row that cannot stand behind them, and why.
    """
    if stretch.pattern.contiguity != "strict":
        return None
    most = {one.name: one.times.most for one in stretch.pattern.components if one.times is not None}
    times = {one.name: one.times for one in stretch.pattern.components}
    counts = Counter[str]()
    behind = [] if tried is None or (own and tried <= own[-1][1]) else [("", tried)]
    for place, (name, row) in enumerate([*own, *behind]):
        between = range(own[place - 1][1] + 1, row) if place else range(0)
        if between:
            return own[:place], row, not_strict(stretch, between)
        counts[name] += 1
        if counts[name] > (most.get(name) or counts[name]):
            text = f"{name} {times[name]}"
            return own[:place], row, Failure("group", f"{text}: there were {most[name]} before", text)
    return None


def _count(stretch: Stretch, search: Search, rows: list[int]) -> Failure | None:
    """The failure by a group before the last anchor with too few or too many events; else None."""
    if len(rows) < 2:
        return None
    gap = search.between.shape.gaps[len(rows) - 2]
    if gap.group is None:
        return None
    lo, hi = search.between.group(gap.group, as_matrix(rows), capped=stretch.walks)
    count, times, end = int((hi - lo)[0]), gap.times, ending_row(search, rows)
    over = end is not None and gap.to_right
    begins = _begin_of_next(stretch, search, rows)
    if times.least <= count and (times.most is None or count <= times.most) and not over and begins is None:
        return None
    name = stretch.pattern.components[gap.group].name
    if begins is not None and count >= times.least:
        return _begun(stretch, search, rows, begins)
    text = f"{name} {times}: {counted(count, 'event')}"
    if end is not None:
        by = stretch.member(end)
        return Failure("group", f"{text} before {by} ended it", f"{name} {times}", {"count": count}, (by,))
    after, strict = rows[-1] + 1, stretch.pattern.contiguity == "strict"
    if strict and gap.to_right and times.least > count and after < stretch.stream.rows:
        text += f" before {stretch.member(after)}"
    return Failure("group", text, f"{name} {times}", {"count": count})


def _begin_of_next(stretch: Stretch, search: Search, rows: list[int]) -> int | None:
    """The row with which the group begins that should begin with the last one, if that is another row."""
    level, between = len(rows) - 1, search.between
    gap = between.shape.gaps[level - 1]
    if stretch.walks or not gap.handed or (gap.skipped and rows[-1] == rows[-2]):
        return None
    begins = int(begins_behind(between, level, np.array(rows[-2:-1]))[0])
    fits = rows[-1] == begins or (rows[-1] < begins and stands_before_begin(between, level))
    return None if fits else begins


def _begun(stretch: Stretch, search: Search, rows: list[int], begins: int) -> Failure:
    """The failure of a row that comes behind the one with which its group has begun."""
    name = stretch.pattern.components[component_at(search, len(rows) - 1, begins)].name
    by = stretch.member(begins, name)
    return Failure("group", f"{name} begins with {by}", name, by=(by,))


def not_joined(stretch: Stretch, search: Search, rows: list[int], row: int) -> Failure | None:
    """Why a row that matches the group behind these anchors is not in it, if the group so far says so."""
    group = search.between.shape.gaps[len(rows) - 1].group
    if group is None or group not in search.between.further or row not in search.between.rows_of[group]:
        return None
    lo, hi = (
        int(one[0]) for one in search.between.group(group, as_matrix([*rows, row]), capped=stretch.walks)
    )
    before = search.between.members(group)[lo:hi]
    return not_joined_to(stretch, search, group, before[before < row], row)


def not_joined_to(stretch: Stretch, search: Search, group: int, before: Ints, row: int) -> Failure | None:
    """Why a row does not come into a group that has the rows `before`, if the group so far says so."""
    if group not in search.between.further or not len(before):
        return None
    further, told = search.between.further[group], stretch.pattern.components[group].further
    columns = further.tested(before, row)
    if told is None or evaluate_mask(further.condition, columns)[0]:
        return None
    text, values = in_values(columns, further.condition, told)
    return Failure("group", text, canonical_text(told), values, (stretch.member(int(before[-1])),))


def ending_row(search: Search, rows: list[int]) -> int | None:
    """The row that ends the group before the last anchor, if it stands at or before that; else None."""
    group = search.between.shape.gaps[len(rows) - 2].group
    if group not in search.between.ends:
        return None
    end = int(search.between.ended(group, np.array(rows[-2:-1]))[0])
    return end if end <= rows[-1] else None


def false_condition(stretch: Stretch, search: Search, rows: list[int]) -> Failure | None:
    """The failure by the first condition of `where` that is decided at the last row and is false.

    The search may be that of `for_one_event`.
    """
    pattern, shape, walking = search.pattern, search.between.shape, stretch.walks
    negated = {index for index, component in enumerate(pattern.components) if component.negated}
    for conjunct, told in zip(pattern.where, stretch.pattern.every_condition, strict=False):
        decided_here = shape.level(conjunct) == len(rows) - 1 and negated.isdisjoint(conjunct.components)
        parts = separate(conjunct, pattern.components) if decided_here else []
        for part, said in zip(parts, separate(told, stretch.pattern.components), strict=False):
            if is_false(search, part.expr, rows, walking=walking):
                if conjunct.is_order:
                    return _out_of_order(stretch, search, told, rows)
                columns = search.varied(walking=walking).columns(as_matrix(rows))
                stated = as_stated(said)
                text, values = in_values(columns, asked_where_it_stands(part), stated)
                return Failure("where", text, canonical_text(stated), values)
    return None


def _out_of_order(stretch: Stretch, search: Search, told: Conjunct, rows: list[int]) -> Failure:
    """The failure of two events of a sequence in a conjunction, of which the second came first."""
    names = [stretch.pattern.components[index].name for index in told.components]
    first, second = (stretch.member(rows[search.places[name]], name) for name in names)
    order = ", then ".join(names)
    return Failure("order", f"{order}: {second} came before {first}", order, by=(second, first))


def _forbidden(stretch: Stretch, search: Search, rows: list[int], level: int | None) -> Failure | None:
    """The failure by events that forbid the candidate, as far as `level` decides that; else None."""
    found = search.between.forbidders(level, as_matrix(rows), capped=stretch.walks)
    if not found:
        return None
    components = search.pattern.components
    by = tuple(stretch.member(row, components[component].name) for component, row in found[:3])
    more = f" and {len(found) - 3} more" if len(found) > 3 else ""
    names = ", ".join(dict.fromkeys(f"not {member.component}" for member in by))
    forbid = "forbids" if len(found) == 1 else "forbid"
    return Failure("forbidden", f"{names}: {', '.join(map(str, by))}{more} {forbid} it", names, by=by)


def passing(search: Search, rows: list[int], pool: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """bool[n]: which rows of `pool` can be the next anchor after `rows`."""
    grown = np.column_stack([np.repeat(as_matrix(rows), len(pool), 0), pool])
    return search.passes(len(rows), grown, looked_up=False)
