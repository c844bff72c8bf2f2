"""Candidates of a sequence, found by joins on whole columns.

A candidate has one row for each component, strictly ascending, that together satisfy every conjunct of
`where` (semantics, section 3). Matrices of candidates are int64[m, n]: m candidates, n components. A conjunct
``a.x = b.y`` is looked up by (value, row) in a sorted column; the other conjuncts are tested on what the
look-ups have found.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from spark_pace.core.columns import Bools, Ints
from spark_pace.core.expr import Call, Column, evaluate_mask
from spark_pace.core.match.stream import Stream
from spark_pace.core.plan.rule import Conjunct, Pattern

PIECE_ROWS = 1 << 20  # joins grow by at most about this many rows at a time


@dataclass(frozen=True)
class CandidateColumns:
    """The attributes of candidates, by component name: what an expression over components sees."""

    stream: Stream
    matrix: Ints
    roles: Mapping[str | None, int]

    @property
    def rows(self) -> int:
        """How many candidates there are."""
        return len(self.matrix)

    def column(self, component: str | None, attribute: str) -> pa.Array:
        """One attribute of one component of each candidate."""
        rows = self.matrix[:, self.roles[component]]
        return self.stream.attribute(attribute).take(pa.array(rows))

    def aggregate(self, function: str, component: str, attribute: str | None) -> pa.Array:
        """Never called: no component of a candidate is repeated, so conditions have no aggregates."""
        raise AssertionError(f"{function}({component}.{attribute}) has no group here")


@dataclass(frozen=True)
class _Lookup:
    """The rows of one component, in the order in which they are looked up.

    Attributes:
        pool: int64[p], the rows; ascending where `sort_keys` is None.
        sort_keys: int64[p], ascending: ``value code * rows + row`` of each row; None where nothing but the
            row is looked up.
        codes: int64[n], for each row of the stream the value code of the attribute that the earlier component
            compares; None as `sort_keys` is.
        earlier: the index of that component.
    """

    pool: Ints
    sort_keys: Ints | None = None
    codes: Ints | None = None
    earlier: int = 0


class Search:
    """A pattern over a stream, ready to be searched level by level. Level k adds the row of component k.

    Attributes:
        stream: the stream.
        steps: how many components there are.
        plain: whether the pattern has no condition over several components.
        members: int64[], for each component the rows that match it, ascending.
    """

    def __init__(self, stream: Stream, pattern: Pattern, bits: Sequence[int] = range(8)) -> None:
        """Find the members of each component; component k is bit `bits[k]` of the mask."""
        self.stream = stream
        self.steps = len(pattern.components)
        self.plain = not pattern.where
        self._roles: dict[str | None, int] = {c.name: k for k, c in enumerate(pattern.components)}
        self.members = [stream.matching(bit) for bit in bits[: self.steps]]
        self._conjuncts = [[c for c in pattern.where if c.components[-1] == k] for k in range(self.steps)]
        self._equalities = [next(filter(self._is_equality, decided), None) for decided in self._conjuncts]
        self._lookups: dict[int, _Lookup] = {}

    @staticmethod
    def _is_equality(conjunct: Conjunct) -> bool:
        """Whether it is ``a.x = b.y`` over two components."""
        expr = conjunct.expr
        return (
            isinstance(expr, Call)
            and expr.function == "="
            and len(conjunct.components) == 2
            and all(isinstance(side, Column) for side in expr.arguments)
        )

    def _lookup(self, level: int, equality: Conjunct | None) -> _Lookup:
        pool = self.members[level]
        if equality is None:
            return _Lookup(pool)
        assert isinstance(equality.expr, Call)
        sides = {self._roles[s.component]: s for s in equality.expr.arguments if isinstance(s, Column)}
        earlier = equality.components[0]
        codes, values = self.stream.codes(sides[earlier].attribute, sides[level].attribute)
        pool = pool[values[pool] >= 0]
        sort_keys = values[pool] * self.stream.rows + pool
        order = np.argsort(sort_keys)
        return _Lookup(pool[order], sort_keys[order], codes, earlier)

    def reach(self, level: int, partial: Ints, end: Ints) -> tuple[Ints, Ints, Ints]:
        """Which rows may follow each partial candidate at `level`, before row `end`.

        Args:
            level: the index of the component to be added.
            partial: int64[m, level], the rows taken so far.
            end: int64[m], the row after the last allowed one.

        Returns:
            pool, lo, hi: the rows ``pool[lo[i]:hi[i]]``, ascending, may follow ``partial[i]`` if they satisfy
                the conjuncts that `passes` tests, too.
        """
        if level not in self._lookups:
            self._lookups[level] = self._lookup(level, self._equalities[level])
        lookup = self._lookups[level]
        after, base = partial[:, -1], np.int64(0)
        if lookup.sort_keys is None or lookup.codes is None:
            lo = np.searchsorted(lookup.pool, after, "right")
            hi = np.searchsorted(lookup.pool, end, "left")
            return lookup.pool, lo, np.maximum(lo, hi)
        code = lookup.codes[partial[:, lookup.earlier]]
        base = code * self.stream.rows
        lo = np.searchsorted(lookup.sort_keys, base + after, "right")
        hi = np.searchsorted(lookup.sort_keys, base + end, "left")
        return lookup.pool, lo, np.where(code < 0, lo, np.maximum(lo, hi))

    def looked_up(self, level: int) -> bool:
        """Whether `reach` tests every conjunct that can be decided at `level`."""
        return not self._left(level)

    def _left(self, level: int) -> list[Conjunct]:
        return [conjunct for conjunct in self._conjuncts[level] if conjunct is not self._equalities[level]]

    def passes(self, level: int, matrix: Ints, *, all_conjuncts: bool = False) -> Bools:
        """bool[m], which candidates satisfy all conjuncts of `level`, or those that `reach` does not test."""
        keep = np.ones(len(matrix), np.bool_)
        columns = CandidateColumns(self.stream, matrix, self._roles)
        for conjunct in self._conjuncts[level] if all_conjuncts else self._left(level):
            keep &= evaluate_mask(conjunct.expr, columns)
        return keep

    def following(self, level: int, rows: Ints) -> Ints:
        """The first row of component `level` behind each of `rows`; `stream.rows` where there is none."""
        members = np.append(self.members[level], self.stream.rows)
        return members[np.searchsorted(self.members[level], rows, "right")]

    def preceding(self, level: int, rows: Ints) -> Ints:
        """The last row of component `level` before each of `rows`; -1 where there is none."""
        members = np.append(-1, self.members[level])
        return members[np.searchsorted(self.members[level], rows, "left")]


def expand(lo: Ints, hi: Ints) -> tuple[Ints, Ints]:
    """All pairs (i, index) with index in the range lo[i]:hi[i], in order, as two int64[k]."""
    counts = hi - lo
    owner = np.repeat(np.arange(len(lo)), counts)
    first = np.cumsum(counts) - counts
    return owner, np.arange(len(owner)) - np.repeat(first - lo, counts)


def candidates(search: Search, starts: Ints, end: Ints, last: Ints | None = None) -> Iterator[Ints]:
    """All candidates from each of `starts`, in pieces.

    Args:
        search: the pattern over a stream.
        starts: int64[m], rows that match the first component.
        end: int64[m], the row after the last one a candidate may use.
        last: int64[m], the row at which the candidate must end; None where any row will do.

    Yields:
        int64[p, n] candidates; those of one start are in ascending order.
    """
    if last is not None and search.steps == 1:
        yield starts[starts == last][:, None]
        return
    bounds = _bounds(search, end, last)
    yield from _extend(search, starts[:, None], bounds, last)


def _bounds(search: Search, end: Ints, last: Ints | None) -> list[Ints]:
    """For each level the row after the last one from which the fixed last row can still be reached."""
    bounds = [end] * search.steps
    if last is not None:
        reach = last
        for level in range(search.steps - 2, 0, -1):
            reach = search.preceding(level, reach)
            bounds[level] = np.minimum(end, reach + 1)
    return bounds


def _extend(search: Search, partial: Ints, bounds: list[Ints], last: Ints | None) -> Iterator[Ints]:
    """The candidates that begin with the partial ones, in pieces: each level adds one column."""
    level = partial.shape[1]
    if level == search.steps:
        yield partial
        return
    if last is not None and level == search.steps - 1:
        yield _close(search, partial, last)
        return
    pool, lo, hi = search.reach(level, partial, bounds[level])
    for piece in _pieces(hi - lo):
        owner, index = expand(lo[piece], hi[piece])
        grown = np.column_stack([partial[piece][owner], pool[index]])
        keep = search.passes(level, grown)
        owner = owner[keep] + piece.start
        rest = None if last is None else last[owner]
        yield from _extend(search, grown[keep], [bound[owner] for bound in bounds], rest)


def _close(search: Search, partial: Ints, last: Ints) -> Ints:
    """The candidates of the partial ones that lack nothing but their fixed last row."""
    keep = partial[:, -1] < last
    grown = np.column_stack([partial[keep], last[keep]])
    return grown[search.passes(search.steps - 1, grown, all_conjuncts=True)]


def _pieces(counts: Ints) -> Iterator[slice]:
    """Slices of partial candidates; each grows to about PIECE_ROWS where candidate i grows to counts[i]."""
    total = np.cumsum(counts)
    start = 0
    while start < len(counts):
        done = total[start - 1] if start else 0
        stop = max(start + 1, int(np.searchsorted(total, done + PIECE_ROWS, "right")))
        yield slice(start, stop)
        start = stop
