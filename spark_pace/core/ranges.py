"""Functions for ranges of rows: cut them into even parts, expand them into rows, work on them in pieces."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from spark_pace import ways
from spark_pace.core.tables import Bools, Ints


def even_ranges(weights: Ints, most: int, least_weight: int) -> list[tuple[int, int]]:
    """Cut n things into neighbouring ranges of about equal weight.

    Args:
        weights: int64[n], the weight of each thing.
        most: the greatest number of ranges.
        least_weight: the least weight of a range, about.

    Returns:
        The ranges (first, last + 1), in order.
    """
    total = int(weights.sum())
    pieces = max(1, min(most, total // max(1, least_weight), len(weights)))
    if pieces == 1:
        return [(0, len(weights))] if len(weights) else []
    targets = np.arange(1, pieces) * (total / pieces)
    inner = np.searchsorted(np.cumsum(weights), targets) + 1
    bounds = np.unique(np.concatenate([[0], inner, [len(weights)]])).tolist()
    return list(itertools.pairwise(bounds))


def expand(lo: Ints, hi: Ints) -> tuple[Ints, Ints]:
    """All pairs (i, index) with index in the range lo[i]:hi[i], in order, as two int64[k]."""
    counts = hi - lo
    owner = np.repeat(np.arange(len(lo)), counts)
    first = np.cumsum(counts) - counts
    return owner, np.arange(len(owner)) - np.repeat(first - lo, counts)


def running(steps: npt.NDArray[Any]) -> Ints:
    """int64[n + 1], the sum of the integers before each place; sums above 64 bits wrap around."""
    sums = np.zeros(len(steps) + 1, np.int64)
    np.cumsum(steps, out=sums[1:])
    return sums


def folded(fold: np.ufunc, values: npt.NDArray[Any], start: Ints, end: Ints) -> npt.NDArray[Any]:
    """The least or greatest of each range of rows, `start` to the row before `end`; no range is empty.

    Ranges may overlap: time is O(n log m) for m the rows of the longest one, however many there are. In pass
    number l, row i has the fold of 2 ** l rows from i on, and a range is two of these, which may overlap too.

    Args:
        fold: ``np.minimum`` or ``np.maximum``, of rows too where `values` has several dimensions.
        values: n rows.
        start: int64[s].
        end: int64[s].
    """
    passes = np.frexp((end - start).astype(np.float64))[1] - 1
    found = np.empty((len(start), *values.shape[1:]), values.dtype)
    for number in range(int(passes.max(initial=-1)) + 1):
        here, step = np.flatnonzero(passes == number), 1 << number
        found[here] = fold(values[start[here]], values[end[here] - step])
        values = fold(values[:-step], values[step:])
    return found


def pieces(counts: Ints, rows: int | None = None) -> Iterator[slice]:
    """Cut things into slices of about `rows` rows, at most PIECE_ROWS; thing i has counts[i] rows."""
    rows = ways.PIECE_ROWS if rows is None else min(rows, ways.PIECE_ROWS)
    total = np.cumsum(counts)
    start = 0
    while start < len(counts):
        done = total[start - 1] if start else 0
        stop = max(start + 1, int(np.searchsorted(total, done + rows, "right")))
        yield slice(start, stop)
        start = stop


def reached(following: Ints, from_: Bools) -> Ints:
    """int64[m], the rows that some rows lead to, these included, in ascending order.

    The steps double in length, so a chain of n steps takes log n rounds over all rows.

    Args:
        following: int64[n], the row that each row leads to, which is greater; n: none.
        from_: bool[n], the rows to begin with.
    """
    count = len(following)
    there, steps = np.append(from_, False), np.append(following, count)
    while (steps[:-1] < count).any():
        there[steps[np.flatnonzero(there)]] = True
        steps = steps[steps]
    return np.flatnonzero(there[:-1])
