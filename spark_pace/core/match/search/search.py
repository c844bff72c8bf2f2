"""A pattern over a stream, ready to be searched for candidates."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import copy
from dataclasses import replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from spark_pace import ways
from spark_pace.core.expr import Expr, evaluate_mask
from spark_pace.core.match.compiled.operations import EQUAL
from spark_pace.core.match.search.between import Between, CandidateColumns
from spark_pace.core.match.search.comparison import (
    Comparison,
    Level,
    Sets,
    comparison_of,
    implied,
    is_comparison,
    is_equality,
)
from spark_pace.core.match.search.groups import with_members
from spark_pace.core.match.search.limits import (
    asked_of_one_event,
    behind,
    deciding_rows,
    may_go_on,
    narrowed,
    rows_at,
    with_events,
)
from spark_pace.core.match.search.technique import choose
from spark_pace.core.match.stream import Found, Stream, counted_before, found_of, rows_before
from spark_pace.core.plan.meaning import columns_of
from spark_pace.core.plan.rule import Conjunct, Pattern
from spark_pace.core.plan.shape import places_of, rearranged, shape_of
from spark_pace.core.tables import Bools, Ints


class Search:
    """A pattern over a stream, ready to be searched level by level: level k adds the row of anchor k.

    In a simple pattern, one that says nothing of what stands between its events, anchor k is component k.

    Attributes:
        stream: the stream.
        pattern: the pattern.
        techniques: how candidates are searched.
        places: the level of each component that stands for one event, by its name; negated ones behind all.
        steps: how many anchors there are.
        between: what the pattern says of the events between them.
        trailing: whether events behind a candidate may forbid it, or belong to it.
        simple: whether the pattern is a simple sequence.
        plain: whether nothing is said of several components, nor of what stands between.
        members: int64[], for each anchor the rows that match its component, ascending.
        walking: whether groups are those of the walk of *next*, which negated components do not steer.
        structural: whether no trailing negation is tested.
        foresees: whether rows are left out that no row of a later level may follow.
        compared: comparisons of two components that are made, by the conditions.
        tables: what compiled code takes, once it is made.
        before: for some levels int64[n + 1], how many of its members stand before each row of the stream.
    """

    def __init__(self, stream: Stream, pattern: Pattern, members: list[Ints] | None = None) -> None:
        """Begin with the members of each anchor; None: bit k of the mask says what matches component k."""
        shape = shape_of(pattern)
        self.stream = stream = with_members(stream, pattern)
        self.pattern = pattern
        self.techniques = choose(pattern)
        self.places = places_of(pattern)
        self.steps = len(shape.anchors)
        self.between = Between(stream, pattern, shape)
        self.trailing = bool(shape.trailing)
        self.simple = shape.simple and pattern.order == "sequence"
        self.plain = shape.simple and not pattern.where
        self.members = members or [rows_at(self.between, level) for level in range(self.steps)]
        if shape.without_first is not None and members is None:
            self.members[0] = np.union1d(*self.members[:2])
        self.walking, self.structural, self.foresees = False, False, True
        self.compared: dict[Expr, Comparison] = {}
        self.tables: dict[object, object] = {}
        self.before: dict[int, npt.NDArray[np.int32]] = {}

    @property
    def initiators(self) -> Ints:
        """int64[], the rows that can be the first one of a candidate, ascending."""
        return self.members[0]

    @property
    def terminators(self) -> Ints:
        """int64[], the rows that can be the last one of a candidate, ascending."""
        return self.members[-1]

    def starting(self, rows: Ints) -> Search:
        """Search only for candidates that begin with one of these rows, which ascend."""
        return self.among(0, rows)

    def ending(self, rows: Ints) -> Search:
        """Search only for candidates that end with one of these rows, which ascend."""
        return self.among(self.steps - 1, rows)

    def varied(self, *, walking: bool = False, structural: bool = False) -> Search:
        """Copy this search, with other settings."""
        return self._with("walker", walking=walking, structural=structural)

    def among(self, level: int, rows: Ints) -> Search:
        """Search with no other rows of anchor `level` than these, which ascend."""
        members = [*self.members[:level], rows, *self.members[level + 1 :]]
        return self._with("levels", "fitting", "walker", members=members, before={})

    def _with(self, *anew: str, **values: object) -> Search:
        """Copy this search with other values, and let it make anew what it has made of the old ones."""
        other = copy(self)
        for name in anew:
            vars(other).pop(name, None)
        vars(other).update(values, tables={})
        return other

    @cached_property
    def exclusive(self) -> bool:
        """True if no event matches two components."""
        mask = self.stream.mask & np.uint16((1 << len(self.pattern.components)) - 1)
        return not np.any(mask & (mask - (mask > 0)))

    @cached_property
    def levels(self) -> list[Level]:
        """What may be taken at each level."""
        return [self._level(level) for level in range(self.steps)]

    def _level(self, level: int) -> Level:
        shape = self.between.shape
        exprs = [conjunct.expr for conjunct in self._asked() if shape.level(conjunct) == level]
        compared = self.comparisons(exprs)
        others = [expr for expr in exprs if not is_comparison(expr, self.places)]
        equality = next((test for test in compared if test.accepts == EQUAL), None)
        pool = keys = self.fitting[level]
        if equality is not None:
            pool = pool[equality.later_ranks[pool] >= 0]
            keys = equality.later_ranks[pool] * self.stream.rows + pool
            order = np.argsort(keys)
            pool, keys = pool[order], keys[order]
        compared = [test for test in compared if test is not equality]
        return Level(pool, keys, equality, compared, others, not self.simple)

    def _asked(self) -> list[Conjunct]:
        """The conditions that must hold: those that name no negated component."""
        negated = {one.component for one in self.between.forbidding}
        return [conjunct for conjunct in self.pattern.where if negated.isdisjoint(conjunct.components)]

    @cached_property
    def fitting(self) -> list[Ints]:
        """For each level those of its rows that may fit rows of every other; none where one level has none.

        Conditions of order that compare two components decide, each for itself. A walk does not know what
        comes, so it is left with all rows or none.
        """
        fitting = list(self.members)
        compared = self.comparisons(one.expr for one in self._asked())
        for one in compared if all(map(len, fitting)) else []:
            if one.accepts != EQUAL:
                earlier, later = fitting[one.earlier], fitting[one.later]
                fitting[one.earlier] = earlier[one.may_hold(earlier, later)]
                fitting[one.later] = later[one.turned().may_hold(later, earlier)]
        if not all(map(len, fitting)):
            return [np.zeros(0, np.int64)] * self.steps
        return fitting if self.foresees else self.members

    @cached_property
    def walker(self) -> Search:
        """This search for walks, which take a row that fits, whatever follows."""
        return self._with("levels", "fitting", foresees=False)

    @cached_property
    def follower(self) -> Search:
        """The search that goes on to the event of an optional component in last place."""
        return Search(self.stream, asked_of_one_event(self.pattern))

    def comparisons(self, exprs: Iterable[Expr]) -> list[Comparison]:
        """The comparisons of two components among some conditions."""
        found = [expr for expr in exprs if is_comparison(expr, self.places)]
        for expr in found:
            if expr not in self.compared:
                self.compared[expr] = comparison_of(expr, self.places, self.stream)
        return [self.compared[expr] for expr in found]

    def may_fit(self, firsts: Ints, lasts: Ints) -> Ints:
        """Keep the rows of the first component that may fit some row of the last one.

        Conditions that compare these two components decide, each for itself; others are not looked at.
        """
        for comparison in self._of_ends():
            firsts = firsts[comparison.may_hold(firsts, lasts)]
        return firsts

    def may_end(self, firsts: Ints, lasts: Ints) -> Ints:
        """Keep the rows of the last component that may fit some row of the first one; see `may_fit`."""
        for comparison in self._of_ends():
            lasts = lasts[comparison.turned().may_hold(lasts, firsts)]
        return lasts

    def _of_ends(self) -> list[Comparison]:
        """The comparisons of the first and the last component."""
        ends = (self.between.shape.anchors[0], self.between.shape.anchors[-1])
        return self.comparisons(c.expr for c in self.pattern.where if c.components == ends)

    def mirrored(self) -> Search:
        """Turn the search round: on the stream in reverse, where row r is ``stream.rows - 1 - r``.

        It begins with the last component. So the first candidate that it finds is the greatest one.
        """
        last = self.stream.rows - 1
        events = self.stream.events.select(sorted(columns_of(c.expr for c in self.pattern.where)))
        stream = Stream(events.take(pa.array(np.arange(last, -1, -1))), np.zeros(min(1, last + 1), np.int64))
        members = [last - rows[::-1] for rows in reversed(self.members)]
        return Search(stream, rearranged(self.pattern, range(self.steps)[::-1]), members)

    def rotated(self) -> Search:
        """Move the last component in front of the first, to search for a given last row.

        What a chain of equalities says of the given row is looked up from the second level on.
        """
        last = self.steps - 1
        more = (c for c in implied(self.pattern) if is_equality(c.expr, self.places) and last in c.components)
        pattern = replace(self.pattern, where=(*self.pattern.where, *more))
        order = [self.steps - 1, *range(self.steps - 1)]
        return Search(self.stream, rearranged(pattern, order), [self.members[k] for k in order])

    def reach(self, level: int, partial: Ints, after: Ints, end: Ints) -> tuple[Ints, Ints, Ints]:
        """Which rows may follow each partial candidate at `level`, behind row `after` and before row `end`.

        Args:
            level: the index of the component to be added.
            partial: int64[m, level], the rows taken so far.
            after: int64[m], the row before the first allowed one.
            end: int64[m], the row after the last allowed one.

        Returns:
            pool, lo, hi: the rows ``pool[lo[i]:hi[i]]``, ascending, may follow ``partial[i]`` if they satisfy
                the conjuncts that `passes` tests, too.
        """
        pool, keys, equality = self.levels[level].pool, self.levels[level].keys, self.levels[level].equality
        rank = np.int64(0) if equality is None else equality.earlier_ranks[partial[:, equality.earlier]]
        after = after - self.between.shape.may_coincide(level)
        if self.levels[level].bound:
            after, end = narrowed(self.between, level, partial[:, -1], (after, end), capped=self.walking)
        lo = np.searchsorted(keys, rank * self.stream.rows + after, "right")
        hi = np.searchsorted(keys, rank * self.stream.rows + end, "left")
        return pool, lo, np.where(rank < 0, lo, np.maximum(lo, hi))

    def passes(self, level: int, matrix: Ints, *, looked_up: bool = True) -> Bools:
        """bool[m], which candidates satisfy what is decided at `level`; one equality may be looked up."""
        decided = self.levels[level]
        keep = np.ones(len(matrix), np.bool_)
        if decided.equality is not None and not looked_up:
            keep &= decided.equality.holds(matrix)
        for comparison in decided.comparisons:
            keep &= comparison.holds(matrix)
        if decided.bound:
            self._narrow(keep, matrix, lambda rest: self.between.fits(level, rest, capped=self.walking))
        for expr in decided.others:
            self._narrow(keep, matrix, lambda rest, expr=expr: evaluate_mask(expr, self.columns(rest)))  # type: ignore[misc]
        if decided.bound and self.walking:
            self._narrow(keep, matrix, lambda rest: may_go_on(self, level, rest))
        elif decided.bound:
            trailing, allowed = not self.structural, self.between.allowed
            self._narrow(keep, matrix, lambda rest: allowed(level, rest, capped=False, trailing=trailing))
        return keep

    def _narrow(self, keep: Bools, matrix: Ints, test: Callable[[Ints], Bools]) -> None:
        """Test only those candidates that are still kept; where all are, none is copied."""
        index = slice(None) if keep.all() else np.flatnonzero(keep)
        keep[index] = test(matrix[index])

    def columns(self, matrix: Ints) -> CandidateColumns:
        """What an expression over the components of candidates sees."""
        return CandidateColumns(self.between, matrix, self.walking, {})

    def lasting(self, matrix: Ints) -> Bools:
        """bool[m], which of whole candidates, or of walks, no event forbids, as far as events have come."""
        return self.between.allowed(None, matrix, capped=self.walking, trailing=not self.structural)

    def found(
        self,
        openings: Ints,
        closes: Ints,
        selection: Ints,
        matrix: Ints,
        deciding: Ints | None = None,
        following: Ints | None = None,
    ) -> Found:
        """The matches of a matrix of candidates. Without `deciding` their own windows decide them."""
        if self.simple:
            return found_of(openings, closes, selection, matrix)
        following = behind(self, matrix) if following is None else following
        if deciding is None and self.trailing:
            deciding = deciding_rows(self, self.firsts(matrix), following)
        offsets, members, roles = with_events(self, following, self.production_sets(matrix))
        if following is not None and len(matrix):
            closes = closes.copy()
            np.maximum.at(closes, selection, np.where(closes[selection] < 0, -1, members[offsets[1:] - 1]))
        return Found(openings, closes, selection, offsets, members, roles, deciding)

    def found_backwards(self, matrix: Ints, deciding: Ints | None) -> Found:
        """The matches of a matrix, in selections that nothing closes before their window's end."""
        openings = self.initiators
        if self.between.shape.optional_last is not None:  # its events decide the order within a selection
            deciding = self.firsts(matrix)
        closes = np.full(len(openings), -1, np.int64)
        selection = np.searchsorted(openings, self.firsts(matrix))
        return self.found(openings, closes, selection, matrix, deciding)

    def firsts(self, matrix: Ints) -> Ints:
        """int64[m], the first row of each candidate."""
        return matrix[:, 0]

    def lasts(self, matrix: Ints) -> Ints:
        """int64[m], the last row of each candidate."""
        return matrix[:, -1]

    def production_sets(self, matrix: Ints) -> Sets:
        """The events of whole candidates, or of walks, in stream order, without those that only follow."""
        return self.between.production_sets(matrix, capped=self.walking)

    def following(self, level: int, rows: Ints) -> Ints:
        """The first row of component `level` behind each of `rows`; `stream.rows` where there is none."""
        members = np.append(self.members[level], self.stream.rows)
        return members[self._counted(level, rows + 1)]

    def preceding(self, level: int, rows: Ints) -> Ints:
        """The last row of component `level` before each of `rows`; -1 where there is none."""
        members = np.append(-1, self.members[level])
        return members[self._counted(level, rows)]

    def initiators_before(self, rows: Ints) -> Ints:
        """How many initiators stand before each of `rows`."""
        return rows_before(self.initiators, rows, self.stream.rows)

    def _counted(self, level: int, rows: Ints) -> Ints:
        """How many rows of component `level` stand before each of `rows`.

        For many they are counted once for all rows, which is sooner done than to look for each.
        """
        members, count = self.members[level], self.stream.rows
        if level not in self.before:
            if not ways.is_counted(len(rows), count):
                return np.searchsorted(members, rows)
            self.before[level] = counted_before(members, count)
        before: Ints = self.before[level][np.clip(rows, 0, count)].astype(np.int64)
        return before
