"""What stands between the anchors of candidates: groups, runs of neighbours, and events that forbid."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from spark_pace.core.expr import Aggregate, Expr, evaluate_mask
from spark_pace.core.match.search import limits
from spark_pace.core.match.search.comparison import Sets
from spark_pace.core.match.search.groups import aggregated, further_of
from spark_pace.core.match.search.limits import begins_behind, may_begin, stands_before_begin
from spark_pace.core.match.stream import Stream, counted_before, window_end
from spark_pace.core.plan.rule import Pattern
from spark_pace.core.plan.shape import Gap, Shape, places_of, runs
from spark_pace.core.ranks import expand, pieces
from spark_pace.core.tables import Bools, Ints


class Runs:
    """The runs of neighbours among the events of a component.

    Attributes:
        stream: the stream.
        rows: int64[r], the rows that match the component, ascending.
        before: int64[rows + 1], how many of them stand before each row of the stream.
        behind: int64[r], the row behind the run that each of `rows` is in.
        from_left: whether a group begins with the row that it stands behind.
    """

    def __init__(self, stream: Stream, rows: Ints, before: Ints, *, from_left: bool) -> None:
        """Find the runs."""
        self.stream, self.rows, self.before, self.from_left = stream, rows, before, from_left
        last = np.append(np.diff(stream.seq[rows]) != 1, True)[: len(rows)]
        self.behind: Ints = rows[last][np.cumsum(last) - last] + 1

    def ended(self, left: Ints) -> Ints:
        """int64[m], the row that ends the run of neighbours behind each row `left`, or from it on."""
        first = self.before[left + (not self.from_left)]
        there = first < len(self.rows)
        first = np.where(there, first, 0)
        rows, behind = (np.append(one, 0) for one in (self.rows, self.behind))
        near = self.stream.seq[rows[first]] - self.stream.seq[left] == (not self.from_left)
        return np.where(there & near, behind[first], left + 1)


@dataclass(frozen=True)
class Forbidding:
    """A negated component.

    Attributes:
        component: its index.
        gap: the index of the gap between anchors in which its events forbid; None: behind the last anchor.
        conditions: what must hold of a candidate and an event of the component for the event to forbid.
        level: the level at which it is known whether an event forbids.
    """

    component: int
    gap: int | None
    conditions: tuple[Expr, ...]
    level: int


class Between:
    """What a pattern says of the events between its anchors, over a stream.

    Attributes:
        stream: the stream.
        pattern: the pattern.
        shape: its shape.
        places: the level of each component that stands for one event, by its name; negated ones behind all.
        rows_of: the rows that match each repeated and each negated component, by its index.
        before: how many of these stand before each row: int64[rows + 1].
        ending: by the index of a component that has `until` the rows that may end its group.
        runs: by the index of a group whose events directly follow each other the runs of such events.
        ends: the indices of the components in `ending` or `runs`.
        further: by the index of a component whose further events must meet a condition its groups.
        forbidding: the negated components.
    """

    def __init__(self, stream: Stream, pattern: Pattern, shape: Shape) -> None:
        """Count the events that belong to groups or may forbid."""
        self.stream, self.pattern, self.shape = stream, pattern, shape
        components = pattern.components
        self.places = places_of(pattern)
        watched = [index for index, c in enumerate(components) if c.times is not None or c.negated]
        self.rows_of = {index: stream.matching(index) for index in watched}
        self.before: dict[int, Ints] = {
            index: counted_before(rows, stream.rows).astype(np.int64) for index, rows in self.rows_of.items()
        }
        ends = {index: components[index].until for index in watched}
        self.ending = {index: stream.matching(one.bit) for index, one in ends.items() if one is not None}
        self.further = further_of(stream, pattern, self.rows_of)
        self._others: dict[int, Ints] = {}
        self._gaps = {gap.group: place for place, gap in enumerate(shape.gaps) if gap.group is not None}
        self.runs = {index: self._runs_of(index) for index in watched if runs(pattern, index)}
        self.ends = {*self.ending, *self.runs}
        self.forbidding = [self._read(index) for index in watched if components[index].negated]

    def _runs_of(self, component: int) -> Runs:
        from_left = component in self._gaps and self.shape.gaps[self._gaps[component]].from_left
        return Runs(self.stream, self.rows_of[component], self.before[component], from_left=from_left)

    def _read(self, component: int) -> Forbidding:
        conjuncts = [one for one in self.pattern.where if component in one.components]
        level = max([self.shape.complete[component], *map(self.shape.level, conjuncts)])
        gaps = (g for g, gap in enumerate(self.shape.gaps) if component in (*gap.before, *gap.behind))
        return Forbidding(component, next(gaps, None), tuple(one.expr for one in conjuncts), level)

    def group(self, component: int, matrix: Ints, *, capped: bool) -> tuple[Ints, Ints]:
        """The group of a component in each candidate: a range of its `members`, as two int64[m].

        That of an optional component in last place has the first events that come, as far as they have come.
        """
        if component == self.shape.optional_last:
            gap, left, capped = Gap(component, limits.times_of(self, component)), matrix[:, -1], True
            until = limits.ends(self, matrix)
        else:
            gap = self.shape.gaps[self._gaps[component]]
            left, right = (matrix[:, self._gaps[component] + side] for side in (0, 1))
            until = right + gap.to_right
        lo, hi = self.ranged(gap, left, until)
        if capped and gap.times.most is not None and not gap.to_right:
            hi = np.minimum(hi, lo + gap.times.most)
        return lo, hi

    def ranged(self, gap: Gap, left: Ints, until: Ints) -> tuple[Ints, Ints]:
        """The events that the group of a gap has behind the rows `left` and before the rows `until`.

        They are a range of its `members`, as two int64[m].
        """
        assert gap.group is not None
        before, component = self.before[gap.group], gap.group
        lo = before[left + (not gap.from_left)]
        if component in self.ends:
            until = np.minimum(until, self.ended(component, left))
        hi = np.maximum(lo, before[until])
        if component in self.further:
            lo, hi = self.further[component].before(lo, hi, until)
        return lo, hi

    def members(self, component: int) -> Ints:
        """The rows of which `group` gives ranges."""
        return self.further[component].rows if component in self.further else self.rows_of[component]

    def ended(self, component: int, left: Ints) -> Ints:
        """int64[m], the row that ends a component's group behind each row `left`; `stream.rows` for none.

        The component is one of `ends`.
        """
        end = np.full(len(left), self.stream.rows)
        if component in self.ending:
            rows = np.append(self.ending[component], self.stream.rows)
            end = rows[np.searchsorted(rows[:-1], left, "right")]
        if component in self.runs:
            end = np.minimum(end, self.runs[component].ended(left))
        return end

    def events_of(self, component: int, matrix: Ints, *, capped: bool) -> tuple[Ints, Ints]:
        """For every event of a component's groups its candidate and its row, as two int64[k]."""
        owner, index = expand(*self.group(component, matrix, capped=capped))
        return owner, self.members(component)[index]

    def ends_of(self, component: int, lo: Ints, hi: Ints, *, first: bool) -> pa.Array:
        """int64[m], the first or the last row of each group of a component; null where the group is empty.

        `lo` and `hi` are what `group` gives.
        """
        rows = np.append(self.members(component), -1)  # an empty group may point here, but is not looked at
        return pa.array(rows[lo if first else hi - 1], mask=lo >= hi)

    def fits(self, level: int, matrix: Ints, *, capped: bool) -> Bools:
        """bool[m], whether what stands between the anchor of `level` and the one before it is as it must be.

        A group that stands there must have the right number of events, and where neighbours are asked for no
        other event may stand there, or none behind it.
        """
        if level == 0:
            return np.ones(len(matrix), np.bool_)
        gap = self.shape.gaps[level - 1]
        lo = hi = np.zeros(len(matrix), np.int64)
        if gap.group is not None:
            lo, hi = self.group(gap.group, matrix, capped=capped)
        size = hi - lo
        fits = size >= gap.times.least
        alone = (gap.first | gap.skipped) & (matrix[:, level] == matrix[:, level - 1])
        if gap.group is not None and (gap.first or gap.skipped):
            fits &= alone | may_begin(self, level - 1, matrix[:, level - 1], capped=capped)
        if gap.to_right and gap.group in self.ends:
            fits &= matrix[:, level] < self.ended(gap.group, matrix[:, level - 1])
        if gap.to_right and gap.group in self.further:  # whose group may pass over the anchor
            fits &= np.append(self.members(gap.group), -1)[hi - 1] == matrix[:, level]
        if gap.times.most is not None:
            fits &= size <= gap.times.most
        if gap.handed and not capped:
            begins = begins_behind(self, level, matrix[:, level - 1])
            before = (matrix[:, level] < begins) & stands_before_begin(self, level)
            fits &= alone | before | (matrix[:, level] == begins)
        seq = self.stream.seq
        if gap.closed:
            taken = size + 1 - gap.from_left - gap.to_right
            fits &= seq[matrix[:, level]] - seq[matrix[:, level - 1]] == taken
        elif gap.adjoined and gap.group is not None:
            last = self._last_before(level - 1, matrix, capped=capped)
            fits &= (gap.first & alone) | (seq[matrix[:, level]] - seq[last] == 1)
        return fits

    def _last_before(self, place: int, matrix: Ints, *, capped: bool) -> Ints:
        """int64[m], the last row of each candidate before the right anchor of a gap."""
        gap, left = self.shape.gaps[place], matrix[:, place]
        if gap.group is None:
            return left
        if gap.skipped:
            left = self._last_before(place - 1, matrix, capped=capped)
        lo, hi = self.group(gap.group, matrix, capped=capped)
        rows = np.append(self.members(gap.group), -1)  # an empty group may point here, but is not looked at
        return np.where(lo < hi, rows[hi - 1], left)

    def strangers(self, group: int) -> Ints:
        """The rows that do not match the component of a group, and `stream.rows` behind them."""
        if group not in self._others:
            here = np.ones(self.stream.rows + 1, np.bool_)
            here[self.rows_of[group]] = False
            self._others[group] = np.flatnonzero(here)
        return self._others[group]

    def allowed(self, level: int | None, matrix: Ints, *, capped: bool, trailing: bool) -> Bools:
        """bool[m], which candidates no event forbids.

        Args:
            level: test only the negated components of this level; None: all of them, for whole candidates.
            matrix: the candidates.
            capped: whether groups end with the most events that `times` allows.
            trailing: whether events behind the last anchor are tested, too, as far as they have come.
        """
        allowed = np.ones(len(matrix), np.bool_)
        for one in self.forbidding:
            if level in (None, one.level) and (trailing or one.gap is not None):
                index = np.flatnonzero(allowed)
                allowed[index] = ~self._forbidden(one, matrix[index], capped=capped)
        return allowed

    def _forbidden(self, one: Forbidding, matrix: Ints, *, capped: bool) -> Bools:
        after, until = self._region(one, matrix, capped=capped)
        before = self.before[one.component]
        lo = before[after + 1]
        hi = np.maximum(lo, before[until])
        if not one.conditions:
            return hi > lo
        forbidden = np.zeros(len(matrix), np.bool_)
        name = self.pattern.components[one.component].name
        for piece in pieces(hi - lo):
            owner, index = expand(lo[piece], hi[piece])
            owner += piece.start
            rows = self.rows_of[one.component][index]
            columns = CandidateColumns(self, matrix[owner], capped, {name: rows})
            forbids = np.ones(len(owner), np.bool_)
            for condition in one.conditions:
                forbids &= evaluate_mask(condition, columns)
            forbidden[owner[forbids]] = True
        return forbidden

    def _region(self, one: Forbidding, matrix: Ints, *, capped: bool) -> tuple[Ints, Ints]:
        """The rows between which a component forbids, both excluded, as two int64[m]."""
        if one.gap is None:
            return matrix[:, -1], window_end(self.stream, matrix[:, 0], self.pattern.within)
        gap: Gap = self.shape.gaps[one.gap]
        left, right = matrix[:, one.gap], matrix[:, one.gap + 1]
        if gap.group is None:
            return left, right
        if one.component in gap.behind:
            return self._last_before(one.gap, matrix, capped=capped), right
        lo, hi = self.group(gap.group, matrix, capped=capped)
        rows = np.append(self.members(gap.group), -1)  # see `_last_before`
        return left, np.where(lo < hi, rows[lo], right)

    def production_sets(self, matrix: Ints, *, capped: bool) -> Sets:
        """The events of whole candidates, in stream order."""
        count, parts = len(matrix), list[tuple[int, Ints, Ints]]()
        for component in range(len(self.pattern.components)):
            if component in self._gaps:
                parts.append((component, *self.events_of(component, matrix, capped=capped)))
            elif component in self.shape.anchors:
                level = self.shape.anchors.index(component)
                parts.append((component, np.arange(count), matrix[:, level]))
        owner = np.concatenate([own for _, own, _ in parts])
        members = np.concatenate([rows for _, _, rows in parts])
        roles = np.concatenate([np.full(len(own), component, np.int8) for component, own, _ in parts])
        order = np.argsort(owner, kind="stable")  # components are in stream order already
        offsets = np.append(0, np.cumsum(np.bincount(owner, minlength=count)))
        return offsets, members[order], roles[order]


@dataclass(frozen=True)
class CandidateColumns:
    """The attributes of candidates, by component name: what an expression over components sees.

    Attributes:
        between: groups and single components of the stream.
        matrix: the candidates.
        capped: whether groups end with the most events that `times` allows.
        forbidding: by the name of a negated component, int64[m]: for each candidate the row of an event that
            may forbid it.
    """

    between: Between
    matrix: Ints
    capped: bool
    forbidding: Mapping[str | None, Ints]

    @property
    def rows(self) -> int:
        """How many candidates there are."""
        return len(self.matrix)

    def column(self, component: str | None, attribute: str) -> pa.Array:
        """One attribute of one component of each candidate."""
        rows = self.forbidding.get(component)
        if rows is None:  # the opening event's attributes stand beside every event: any row will do
            rows = self.matrix[:, self.between.places.get(component, 0)]
        return self.between.stream.attribute(attribute).take(pa.array(rows))

    def aggregate(self, one: Aggregate) -> pa.Array:
        """An aggregate over the group of a component of each candidate, made in pieces."""
        between, matrix = self.between, self.matrix
        if one.component in between.places:  # of the event of an optional component in last place
            rows = pa.array(matrix[:, between.places[one.component]])
            values = None if one.attribute is None else between.stream.attribute(one.attribute).take(rows)
            return aggregated(one, values, np.arange(len(matrix)), len(matrix))
        index = next(k for k, c in enumerate(between.pattern.components) if c.name == one.component)
        lo, hi = between.group(index, matrix, capped=self.capped)
        if one.attribute is None:
            return pa.array(hi - lo)
        values = between.stream.attribute(one.attribute)
        if one.function in ("first", "last"):
            return values.take(between.ends_of(index, lo, hi, first=one.function == "first"))
        found = [aggregated(one, values.slice(0, 0), np.zeros(0, np.int64), 0)]
        for piece in pieces(hi - lo):
            owner, rows = between.events_of(index, matrix[piece], capped=self.capped)
            found.append(aggregated(one, values.take(pa.array(rows)), owner, piece.stop - piece.start))
        return pa.concat_arrays(found)
