"""Searches of disjunctions of sequences, and of conjunctions, whose components have rows in any order.

What is sought of the disjunction is sought of each alternative by its own search, which is that of a sequence
like any other, and put together: `candidates`, `completions`, `greatest`, `least` and `walk` do so.

A candidate has an event for each component, no event twice. Its first event is that of some component, and
the others stand behind it; so a conjunction of n components takes n searches, one for each component that may
come first (or last), not one for each order of all. In a search the components follow each other as
conditions join them, and each takes rows from the whole range that is left. That components of a sequence in
the conjunction come in order is a condition as others are (`spark_pace.core.plan.shape.in_turn`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from functools import cached_property, reduce

import numpy as np

from spark_pace.core.match.search.comparison import Comparison, Sets, is_comparison
from spark_pace.core.match.search.search import Search
from spark_pace.core.match.stream import Stream, window_start
from spark_pace.core.plan.rule import Pattern
from spark_pace.core.plan.shape import (
    alternative,
    alternatives_of,
    initiator_bits,
    rearranged,
    terminator_bits,
)
from spark_pace.core.ranks import expand, pieces
from spark_pace.core.tables import MASK, Bools, Ints, has_bit, with_column


class Alternatives(Search):
    """A disjunction of sequences over a stream.

    Matrices of candidates are int64[m, n + 1], where n is the length of the longest alternative: the rows,
    of which a shorter candidate repeats the last one, and behind them the number of the alternative.

    Attributes:
        parts: the search of each alternative, in which bit k of the mask says what matches its component k.
        components: the components of each alternative.
    """

    def __init__(self, stream: Stream, pattern: Pattern) -> None:
        """Begin with all rows of each alternative."""
        super().__init__(stream, pattern)
        self.components = alternatives_of(pattern)
        self.parts = [
            Search(_of_components(self.stream, own), alternative(pattern, own)) for own in self.components
        ]
        self.steps = max(part.steps for part in self.parts) + 1

    @cached_property
    def initiators(self) -> Ints:
        """int64[], the rows that can be the first one of an alternative, ascending."""
        return reduce(np.union1d, (part.initiators for part in self.parts))

    @cached_property
    def terminators(self) -> Ints:
        """int64[], the rows that can be the last one of an alternative, ascending."""
        return reduce(np.union1d, (part.terminators for part in self.parts))

    def starting(self, rows: Ints) -> Search:
        """Search only for candidates that begin with one of these rows, which ascend."""
        return self._of_parts([part.starting(np.intersect1d(part.initiators, rows)) for part in self.parts])

    def ending(self, rows: Ints) -> Search:
        """Search only for candidates that end with one of these rows, which ascend."""
        return self._of_parts([part.ending(np.intersect1d(part.terminators, rows)) for part in self.parts])

    def _of_parts(self, parts: list[Search]) -> Search:
        return self._with("initiators", "terminators", parts=parts)

    @cached_property
    def fitting(self) -> list[Ints]:
        """The rows that may end a candidate, as those of the one level that there always is."""
        return [np.concatenate([part.fitting[-1] for part in self.parts])]

    @cached_property
    def apart(self) -> bool:
        """True if no event matches components of two alternatives, so that none uses up those of another."""
        masks = [np.uint16(sum(1 << index for index in own)) for own in self.components]
        return bool((sum((self.stream.mask & mask != 0).astype(np.int8) for mask in masks) < 2).all())

    def may_fit(self, firsts: Ints, lasts: Ints) -> Ints:
        """Keep the rows that may begin a candidate of an alternative that ends with one of `lasts`."""
        fits = np.zeros(len(firsts), np.bool_)
        for part in self.parts:
            ends = np.intersect1d(part.terminators, lasts)
            if len(ends):
                own = np.intersect1d(part.initiators, firsts)
                fits |= np.isin(firsts, part.may_fit(own, ends))
        return firsts[fits]

    def whole(self, number: int, matrix: Ints) -> Ints:
        """Candidates of an alternative as those of the disjunction, but for what is one of an earlier one."""
        own = [other for other in self.parts[:number] if other.steps == matrix.shape[1]]
        for other in own:
            matrix = matrix[~_are_candidates(other, matrix)]
        return self.padded(number, matrix)

    def padded(self, number: int, matrix: Ints) -> Ints:
        """Rows of an alternative's events as a matrix of the disjunction."""
        again = np.repeat(matrix[:, -1:], self.steps - 1 - matrix.shape[1], axis=1)
        return np.column_stack([matrix, again, np.full(len(matrix), number)])

    def lasts(self, matrix: Ints) -> Ints:
        """int64[m], the last row of each candidate."""
        return matrix[:, -2]

    def production_sets(self, matrix: Ints) -> Sets:
        """The events of whole candidates, in stream order."""
        roles = np.full((len(self.parts), self.steps - 1), -1, np.int8)
        for number, own in enumerate(self.components):
            roles[number, : len(own)] = own
        sizes = np.array([len(own) for own in self.components])[matrix[:, -1]]
        roles = roles[matrix[:, -1]]
        there = roles >= 0
        return np.append(0, np.cumsum(sizes)), matrix[:, :-1][there], roles[there]


def _of_components(stream: Stream, own: Sequence[int]) -> Stream:
    """The stream in which bit k of the mask says what matches component k of an alternative."""
    bits = (stream.mask >> own[0]) & np.uint16((1 << len(own)) - 1)
    return Stream(with_column(stream.events, MASK, bits), stream.starts)


def _are_candidates(part: Search, matrix: Ints) -> Bools:
    """bool[m], which rows, int64[m, n], are candidates of an alternative of n components."""
    are = np.ones(len(matrix), np.bool_)
    for level in range(part.steps):
        are &= has_bit(part.stream.mask[matrix[:, level]], level)
    for level in range(part.steps):
        are[are] = part.passes(level, matrix[are, : level + 1], looked_up=False)
    return are


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
