"""Groups of events: aggregates over them, as ``where`` and ``emit`` read them, and conditions on them so far.

A group whose further events must meet a condition on the group so far, such as ``x > last(a.x)``, follows
from its first event: of the events behind that match the component, each is taken that meets the condition
with those taken before it. The groups that a search asks for are found once each.

Of a disjunction, columns of a stream say which member each event stands for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_pace import ways
from spark_pace.core.expr import Aggregate, Columns, evaluate_mask
from spark_pace.core.match.stream import Found, Stream, window_end
from spark_pace.core.plan.members import members_of, stands_column
from spark_pace.core.plan.rule import Pattern
from spark_pace.core.plan.shape import runs
from spark_pace.core.ranks import expand, float_orders, floats_of, pieces, segments_of
from spark_pace.core.summaries.distribution import FUNCTIONS, distributed
from spark_pace.core.summaries.sums import deviation, squares_of, sums_of
from spark_pace.core.tables import MASK, Bools, Ints, bools, has_bit, with_column


def with_members(stream: Stream, pattern: Pattern) -> Stream:
    """The stream with a column for each member of a disjunction: which events stand for it.

    A stream without masks has the columns that conditions read.
    """
    members, events = members_of(pattern), stream.events
    if (
        not members
        or MASK not in events.column_names
        or stands_column(members[0].name) in events.column_names
    ):
        return stream
    for member in members:
        events = with_column(events, stands_column(member.name), has_bit(stream.mask, member.bit))
    return Stream(events, stream.starts)


def role_names(pattern: Pattern) -> list[str]:
    """The names of the roles in matches that `in_roles` gives: components, then members."""
    members = [member.name for member in members_of(pattern)]
    return [*(component.name for component in pattern.components), *members]


def roles_by_name(pattern: Pattern) -> Mapping[str | None, tuple[int, ...]]:
    """The roles that events of each component, or of each member, have in such matches."""
    roles: dict[str | None, tuple[int, ...]] = {}
    for index, name in enumerate(role_names(pattern)):
        roles[name] = (index,)
    for component in pattern.components:
        if component.members:
            roles[component.name] = tuple(roles[member.name][0] for member in component.members)
    return roles


def in_roles(found: Found, stream: Stream, pattern: Pattern) -> Found:
    """The matches with a role for each member: those of members follow those of components."""
    members = members_of(pattern)
    if not members:
        return found
    roles, mask = found.roles.copy(), stream.mask[found.members]
    number = {member.name: len(pattern.components) + place for place, member in enumerate(members)}
    for index, component in enumerate(pattern.components):
        for member in component.members:
            roles[(found.roles == index) & has_bit(mask, member.bit)] = number[member.name]
    return replace(found, roles=roles)


_KERNELS = {"count": "count", "min": "min", "max": "max"}


def aggregated(one: Aggregate, values: pa.Array | None, owner: Ints, rows: int) -> pa.Array:
    """An aggregate over the events of each group. Nulls count for `first` and `last` only.

    Floating-point numbers are added one after the other, as compiled searches add them.

    Args:
        one: the aggregate.
        values: of n events, each group's in stream order; None for ``count(x)``, which counts events.
        owner: int64[n], ascending, the group of each event.
        rows: how many groups there are. For a group without events a count is 0, anything else null.
    """
    if values is None:
        return pa.array(np.bincount(owner, minlength=rows))
    function = one.function
    if function in FUNCTIONS:
        return distributed(one, values, owner, rows)
    if function in ("first", "last"):
        return _first_or_last(function, owner, values, rows)
    if function in ("sum", "avg", "stddev"):
        return _summed(function, values, owner, rows)
    if function in ("min", "max") and pa.types.is_floating(values.type):
        return _extreme_float(one, values, owner, rows)
    assert function in _KERNELS, function
    groups = pa.table({"group": owner, "value": values}).group_by("group", use_threads=False)
    result = groups.aggregate([("value", _KERNELS[function])])
    present = result.column("group").to_numpy()
    column = result.column(f"value_{_KERNELS[function]}").combine_chunks()
    return _scatter(column, present, rows, 0 if function == "count" else None)


def _first_or_last(function: str, owner: Ints, values: pa.Array, rows: int) -> pa.Array:
    groups, first, counts = np.unique(owner, return_index=True, return_counts=True)
    at = first if function == "first" else first + counts - 1
    return _scatter(values.take(pa.array(at)), groups, rows, None)


def _summed(function: str, values: pa.Array, owner: Ints, rows: int) -> pa.Array:
    """The sum, the mean or the standard deviation of each group."""
    count = np.bincount(owner[bools(pc.is_valid(values))], minlength=rows)
    if function != "stddev" and pa.types.is_floating(values.type):
        weights = pc.fill_null(values, 0.0).to_numpy()
        total = np.bincount(owner, weights, rows).astype(np.float64)  # of no events it gives whole numbers
        return pa.array(total / np.maximum(count, 1) if function == "avg" else total, mask=count == 0)
    end = np.cumsum(events := np.bincount(owner, minlength=rows))
    sums = sums_of(values).over(end - events, end)
    if function == "stddev":
        return deviation(sums, squares_of(values).over(end - events, end), count)
    return sums.means(count) if function == "avg" else sums.totals(values.type, count)


def _extreme_float(one: Aggregate, values: pa.Array, owner: Ints, rows: int) -> pa.Array:
    """The least or greatest number of each group; as in SQL, NaN is greater than every number."""
    null = ~bools(pc.is_valid(values))
    orders = pa.array(float_orders(pc.fill_null(values, 0.0).to_numpy()), mask=null)
    found = aggregated(one, orders, owner, rows)
    return pa.array(floats_of(pc.fill_null(found, 0).to_numpy()), mask=~bools(pc.is_valid(found)))


def _scatter(values: pa.Array, groups: Ints, rows: int, missing: int | None) -> pa.Array:
    """The values by row: `groups` says the row of each value; rows without a value get `missing`."""
    place = np.full(rows, -1, np.int64)
    place[groups] = np.arange(len(groups))
    column = values.take(pa.array(place, mask=place < 0))
    return column if missing is None else column.fill_null(missing)


class FurtherEvents:
    """The groups of one component, as far as they were asked for.

    Attributes:
        stream: the stream.
        pool: int64[p], the rows that match the component alone, ascending.
        condition: what is asked of each event behind a group's first one.
        most: a group of more events than this is not followed to its end; None: each is.
        near: whether an event of a group directly follows the one before it.
        rows: int64[k], the events of the groups that are known, one group behind the other.
    """

    def __init__(self, stream: Stream, pattern: Pattern, index: int, pool: Ints) -> None:
        """Know no group yet of the component with this index."""
        component, within = pattern.components[index], pattern.within
        assert component.further is not None and component.times is not None
        self.stream, self.pool, self.condition = stream, pool, component.further
        self.most, self.near = component.times.most, runs(pattern, index)
        self.rows = np.zeros(0, np.int64)
        self._within = within
        self._begins = np.full(len(pool), -1)  # of each group that is known, in `rows`; by its first event
        self._sizes = np.zeros(len(pool), np.int64)
        self._order = np.zeros(0, np.int64)  # the number of each row's group, then the row: ascending

    def groups(self, first: Ints) -> tuple[Ints, Ints]:
        """The groups that begin at these places of `pool`: ranges of `rows`, as two int64[m]."""
        unknown = np.unique(first[self._begins[first] < 0])
        if len(unknown):
            self._add(unknown)
        begins = self._begins[first]
        return begins, begins + self._sizes[first]

    def before(self, first: Ints, stop: Ints, until: Ints) -> tuple[Ints, Ints]:
        """The parts before the rows `until` of groups, as two int64[m]: ranges of `rows`.

        Of the events that match the component alone a group has some of those at the places
        ``first:stop`` of `pool`: the first one, and those behind it that meet the condition.
        """
        lo, hi, there = np.zeros(len(first), np.int64), np.zeros(len(first), np.int64), first < stop
        lo[there], end = self.groups(first[there])
        count = self.stream.rows + 1
        order = self._order[lo[there]] // count * count + until[there]
        hi[there] = np.minimum(end, np.searchsorted(self._order, order))
        return lo, hi

    def tested(self, group: Ints, row: int) -> Columns:
        """What the condition reads if a group, by its rows, may take one more; all match the component."""
        so_far = _SoFar(self, np.searchsorted(self.pool, group[:1]))
        for place in np.searchsorted(self.pool, group[1:]):
            so_far.add(np.zeros(1, np.int64), np.array([place]))
        one = np.zeros(1, np.int64)
        return _Tested(so_far, one, one, np.searchsorted(self.pool, [row]))

    def _add(self, first: Ints) -> None:
        """Find the groups that begin at these places of `pool`."""
        owner, place = self._found(first)
        sizes = np.bincount(owner, minlength=len(first))
        self._begins[first] = len(self.rows) + np.cumsum(sizes) - sizes
        self._sizes[first] = sizes
        known = self._order[-1] // (self.stream.rows + 1) + 1 if len(self._order) else 0
        rows = self.pool[place]
        self._order = np.append(self._order, (known + owner) * (self.stream.rows + 1) + rows)
        self.rows = np.append(self.rows, rows)

    def _found(self, first: Ints) -> tuple[Ints, Ints]:
        """(group, place in `pool`) of every event of the groups that begin at these places."""
        end = np.searchsorted(self.pool, window_end(self.stream, self.pool[first], self._within))
        so_far = _SoFar(self, first)
        going = np.arange(len(first))
        while len(going):
            taken = self._next(so_far, going, end)
            going = going[taken >= 0]
            so_far.add(going, taken[taken >= 0])
            if self.most is not None and len(so_far.owners) > self.most:
                break
        return so_far.members()

    def _next(self, so_far: _SoFar, going: Ints, end: Ints) -> Ints:
        """For each of these groups the place of its next event; -1 where it has none."""
        taken, lo, hi = np.full(len(going), -1), so_far.last[going] + 1, end[going]
        if self.near:
            seq, places = self.stream.seq, np.minimum(lo, len(self.pool) - 1)
            near = seq[self.pool[places]] == seq[self.pool[so_far.last[going]]] + 1
            hi = np.where((lo < hi) & near, lo + 1, lo)
        waiting, block = np.flatnonzero(lo < hi), ways.FIRST_ROWS
        while len(waiting):
            stop = np.minimum(hi[waiting], lo[waiting] + block)
            for piece in pieces(stop - lo[waiting]):
                owner, place = expand(lo[waiting[piece]], stop[piece])
                fits = np.flatnonzero(so_far.allows(going[waiting[piece]], owner, place))
                fits = fits[segments_of(owner[fits])]  # the first of each group
                taken[waiting[piece][owner[fits]]] = place[fits]
            lo[waiting] = stop
            waiting = waiting[(taken[waiting] < 0) & (stop < hi[waiting])]
            block *= 4
        return taken


def further_of(stream: Stream, pattern: Pattern, rows_of: Mapping[int, Ints]) -> dict[int, FurtherEvents]:
    """The groups of each component that has such a condition, by its index.

    `rows_of` has the rows that match each component alone.
    """
    asked = [index for index, one in enumerate(pattern.components) if one.further is not None]
    return {index: FurtherEvents(stream, pattern, index, rows_of[index]) for index in asked}


@dataclass
class _SoFar:
    """Some groups as far as they are found.

    Attributes:
        further: what is asked of their events.
        first: int64[g], the place of each one's first event.
        last: int64[g], of its last event so far.
        owners, places: the groups that have an n-th event, and where that stands, for each n.
    """

    further: FurtherEvents
    first: Ints
    last: Ints = field(init=False)
    owners: list[Ints] = field(init=False)
    places: list[Ints] = field(init=False)

    def __post_init__(self) -> None:
        self.last = self.first.copy()
        self.owners, self.places = [np.arange(len(self.first))], [self.first]

    def add(self, owner: Ints, place: Ints) -> None:
        """Add an event to each of these groups."""
        self.last[owner] = place
        self.owners.append(owner)
        self.places.append(place)

    def members(self, of: Ints | None = None) -> tuple[Ints, Ints]:
        """(group, place) of all events, or of those of the groups `of`, by the place of the group there."""
        owner, place = np.concatenate(self.owners), np.concatenate(self.places)
        if of is not None:
            number = np.full(len(self.first), -1)
            number[of] = np.arange(len(of))
            owner = number[owner]
            owner, place = owner[owner >= 0], place[owner >= 0]
        order = np.argsort(owner, kind="stable")
        return owner[order], place[order]

    def allows(self, groups: Ints, owner: Ints, place: Ints) -> Bools:
        """bool[n], whether groups, ``groups[owner]``, may take the events at these places."""
        return evaluate_mask(self.further.condition, _Tested(self, groups, owner, place))


@dataclass(frozen=True)
class _Tested:
    """The columns of a condition on events and what their groups have so far."""

    so_far: _SoFar
    groups: Ints
    owner: Ints
    place: Ints

    @property
    def rows(self) -> int:
        """How many events are tested."""
        return len(self.place)

    def column(self, component: str | None, attribute: str) -> pa.Array:
        """An attribute of each event; those of a span's opening event stand beside every event."""
        return self._values(attribute, self.place)

    def aggregate(self, one: Aggregate) -> pa.Array:
        """An aggregate over what the group of each event has so far."""
        if one.attribute is not None and one.function in ("first", "last"):
            ends = self.so_far.first if one.function == "first" else self.so_far.last
            return self._values(one.attribute, ends[self.groups[self.owner]])
        owner, place = self.so_far.members(self.groups)
        values = None if one.attribute is None else self._values(one.attribute, place)
        return aggregated(one, values, owner, len(self.groups)).take(pa.array(self.owner))

    def _values(self, attribute: str, place: Ints) -> pa.Array:
        further = self.so_far.further
        return further.stream.attribute(attribute).take(pa.array(further.pool[place]))
