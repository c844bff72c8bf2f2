"""A conjunction over a stream, ready to be searched: its components have rows in any order.

A candidate has an event for each component, no event twice. Its first event is that of some component, and
the others stand behind it; so a conjunction of n components takes n searches, one for each component that may
come first (or last), not one for each order of all. In a search the components follow each other as
conditions join them, and each takes rows from the whole range that is left. That components of a sequence in
the conjunction come in order is a condition as others are (`spark_pace.core.plan.shape.in_turn`).
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from functools import reduce

import numpy as np

from spark_pace.core.match.search.alternatives import Alternatives
from spark_pace.core.match.search.comparison import Comparison, Sets, is_comparison
from spark_pace.core.match.search.search import Search
from spark_pace.core.match.stream import Stream
from spark_pace.core.match.window import window_start
from spark_pace.core.plan.rule import Pattern
from spark_pace.core.plan.shape import initiator_bits, rearranged, terminator_bits
from spark_pace.core.ranges import expand, pieces
from spark_pace.core.tables import Ints, has_bit


class AnyOrder(Search):
    """A conjunction over a stream. Matrices of candidates are int64[m, n]: the row of each component.

    Attributes:
        limited: whether candidates end with some terminators only.
    """

    def __init__(self, stream: Stream, pattern: Pattern) -> None:
        """Begin with all rows that match a component that may come first, or last."""
        super().__init__(stream, pattern)
        begin, end = initiator_bits(pattern), terminator_bits(pattern)
        self._firsts = self._lasts = np.flatnonzero(stream.mask & np.uint16(begin))
        if begin != end:
            self._lasts = np.flatnonzero(stream.mask & np.uint16(end))
        self._first_roles = [role for role in range(self.steps) if begin >> role & 1]
        self._last_roles = [role for role in range(self.steps) if end >> role & 1]
        self.limited = False
        self._arranged: dict[tuple[int, ...], Search] = {}

    @property
    def initiators(self) -> Ints:
        """int64[], the rows that match some component that may come first, ascending."""
        return self._firsts

    @property
    def terminators(self) -> Ints:
        """int64[], the rows that match some component that may come last, ascending."""
        return self._lasts

    def starting(self, rows: Ints) -> AnyOrder:
        """Search only for candidates whose first row, of any component, is one of these, which ascend."""
        other = copy(self)
        other._firsts = rows
        return other

    def ending(self, rows: Ints) -> AnyOrder:
        """Search only for candidates whose last row, of any component, is one of these, which ascend."""
        other = copy(self)
        other._lasts, other.limited = rows, True
        return other

    def firsts(self, matrix: Ints) -> Ints:
        """int64[m], the least row of each candidate."""
        return reduce(np.minimum, matrix.T)

    def lasts(self, matrix: Ints) -> Ints:
        """int64[m], the greatest row of each candidate."""
        return reduce(np.maximum, matrix.T)

    def production_sets(self, matrix: Ints) -> Sets:
        """The events of whole candidates, in stream order."""
        m, n = matrix.shape
        plays = np.sort(matrix * n + np.arange(n), axis=1).ravel()
        return np.arange(m + 1) * n, plays // n, (plays % n).astype(np.int8)

    def may_fit(self, firsts: Ints, lasts: Ints) -> Ints:
        """Keep the first rows of candidates that may fit some last row.

        A row is kept if, as some component, it may stand together with a last row as some other component.
        """
        if self.steps == 1:
            return firsts
        mask, fits = self.stream.mask, np.zeros(len(firsts), np.bool_)
        for first, last in self._ends():
            place = np.flatnonzero(has_bit(mask[firsts], first) & ~fits)
            ends = lasts[has_bit(mask[lasts], last)]
            holds = np.full(len(place), len(ends) > 0)
            for comparison in self._of_pair(first, last):
                holds &= comparison.may_hold(firsts[place], ends)
            fits[place] = holds
        return firsts[fits]

    def _ends(self) -> list[tuple[int, int]]:
        """The components that may come first and last, in pairs."""
        return [(first, last) for first in self._first_roles for last in self._last_roles if first != last]

    def _of_pair(self, first: int, last: int) -> list[Comparison]:
        """The comparisons of two components, seen from the first one."""
        pair = (min(first, last), max(first, last))
        compared = self.comparisons(one.expr for one in self.pattern.where if one.components == pair)
        return compared if first < last else [one.turned() for one in compared]

    def arranged(self, order: tuple[int, ...]) -> Search:
        """The sequence of the components in another order, over the same stream."""
        if order not in self._arranged:
            members = [self.members[k] for k in order]
            arranged = Search(self.stream, rearranged(self.pattern, order), members)
            exprs = [one.expr for one in self.pattern.where if is_comparison(one.expr, self.places)]
            places = np.argsort(order).tolist()
            compared = zip(exprs, self.comparisons(exprs), strict=True)
            arranged.compared = {expr: one.placed(places) for expr, one in compared}
            self._arranged[order] = arranged
        return self._arranged[order]

    def starting_with(self, rows: Ints, end: Ints) -> Iterator[Ints]:
        """All candidates that begin with each of m rows and end before row `end` (int64[m]), in pieces.

        Where candidates end with some terminators only, the search begins with these, and the rows' windows
        must end at `end`.
        """
        if self.limited:
            start = window_start(self.stream, self._lasts, self.pattern.within)
            for piece in self.ending_with(self._lasts, start):
                yield piece[np.isin(self.firsts(piece), rows)]
            return
        for role in self._first_roles:
            mine = has_bit(self.stream.mask[rows], role)
            yield from self._joined((role,), rows[mine, None], rows[mine], end[mine])

    def ending_with(self, rows: Ints, start: Ints) -> Iterator[Ints]:
        """All candidates that end with each of m rows and begin at row `start` or behind it, in pieces."""
        for role in self._last_roles:
            mine = has_bit(self.stream.mask[rows], role)
            yield from self._joined((role,), rows[mine, None], start[mine] - 1, rows[mine])

    def between_ends(self, firsts: Ints, lasts: Ints) -> Iterator[Ints]:
        """All candidates that begin and end with each of m pairs of rows, in pieces."""
        if self.steps == 1:
            yield firsts[firsts == lasts, None]
        mask = self.stream.mask
        for first, last in self._ends():
            mine = has_bit(mask[firsts], first) & has_bit(mask[lasts], last)
            after, end = firsts[mine], lasts[mine]
            yield from self._joined((first, last), np.column_stack([after, end]), after, end)

    def _joined(self, roles: tuple[int, ...], given: Ints, after: Ints, end: Ints) -> Iterator[Ints]:
        """All candidates with the rows `given` (int64[m, k]) for the components `roles`.

        Their other rows stand behind row `after` and before row `end`, both int64[m].
        """
        order = self.order_from(roles)
        sequence = self.arranged(order)
        keep = after < end
        for level in range(len(roles)):
            keep &= sequence.passes(level, given[:, : level + 1], looked_up=False)
        for level in range(len(roles), self.steps):
            keep &= sequence.following(level, after) < end
        found = self._extended(sequence, given[keep], after[keep], end[keep], len(roles))
        columns = np.argsort(order)
        for matrix in found:
            yield matrix[:, columns]

    def _extended(
        self, sequence: Search, partial: Ints, after: Ints, end: Ints, given: int
    ) -> Iterator[Ints]:
        """The candidates that begin with the partial ones: each level adds a column."""
        level = partial.shape[1]
        if level == self.steps:
            yield partial
            return
        pool, lo, hi = sequence.reach(level, partial, after, end)
        for piece in pieces(hi - lo):
            owner, index = expand(lo[piece], hi[piece])
            owner += piece.start
            grown = np.column_stack([partial[owner], pool[index]])
            keep = sequence.passes(level, grown)
            if not self.exclusive:
                for column in range(given, level):
                    keep &= grown[:, column] != grown[:, level]
            owner = owner[keep]
            yield from self._extended(sequence, grown[keep], after[owner], end[owner], given)

    def order_from(self, roles: tuple[int, ...]) -> tuple[int, ...]:
        """All components, `roles` first, then always the one that most conditions tie to those before."""
        order = list(roles)
        left = [role for role in range(self.steps) if role not in roles]

        def tied(role: int) -> int:
            known = {*order, role}
            return sum(
                role in one.components and known.issuperset(one.components) for one in self.pattern.where
            )

        while left:
            order.append(max(left, key=tied))
            left.remove(order[-1])
        return tuple(order)


def search_of(stream: Stream, pattern: Pattern) -> Search:
    """A pattern over a stream, ready to be searched."""
    if pattern.order == "disjunction":
        return Alternatives(stream, pattern)
    return AnyOrder(stream, pattern) if pattern.order == "conjunction" else Search(stream, pattern)
