"""A disjunction of sequences over a stream, ready to be searched: one search for each alternative.

What is sought of the disjunction is sought of each alternative by its own search, which is that of a sequence
like any other, and put together: `candidates`, `completions`, `greatest`, `least` and `walk` do so.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, reduce

import numpy as np

from spark_pace.core.match.search.comparison import Sets
from spark_pace.core.match.search.search import Search
from spark_pace.core.match.stream import Stream
from spark_pace.core.plan.rule import Pattern
from spark_pace.core.plan.shape import alternative, alternatives_of
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
