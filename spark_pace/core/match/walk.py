"""The walk of *next*: from an initiator on, each component takes the first event that fits and keeps it.

Sources: semantics, section 4; skip-till-next-match of SASE, Flink's ``followedBy``.
"""

from __future__ import annotations

import numpy as np

from spark_pace.core.columns import Ints
from spark_pace.core.match.candidates import Search, expand

_FIRST_BLOCK_ROWS = 4


def walk(search: Search, starts: Ints, end: Ints) -> tuple[Ints, Ints]:
    """The match of each initiator that has one.

    Args:
        search: the pattern over a stream.
        starts: int64[m], the initiators' rows.
        end: int64[m], the row after the last one the walk may use.

    Returns:
        found: int64[k], indices into `starts`, ascending; matrix: int64[k, n], their matches.
    """
    found = np.arange(len(starts))
    matrix = starts[:, None]
    for level in range(1, search.steps):
        index, rows = _step(search, level, matrix, end[found])
        matrix = np.column_stack([matrix[index], rows])
        found = found[index]
    return found, matrix


def _step(search: Search, level: int, matrix: Ints, end: Ints) -> tuple[Ints, Ints]:
    """Which walks go on at `level`, and with which row. Ever larger blocks are tested until a row fits."""
    pool, lo, hi = search.reach(level, matrix, end)
    taken = np.full(len(matrix), -1, np.int64)
    waiting = np.flatnonzero(lo < hi)
    if search.looked_up(level):
        return waiting, pool[lo[waiting]]
    block = _FIRST_BLOCK_ROWS
    while len(waiting):
        stop = np.minimum(hi[waiting], lo[waiting] + block)
        owner, index = expand(lo[waiting], stop)
        grown = np.column_stack([matrix[waiting][owner], pool[index]])
        fits = np.flatnonzero(search.passes(level, grown))
        first, position = np.unique(owner[fits], return_index=True)
        taken[waiting[first]] = grown[fits[position], -1]
        lo[waiting] = stop
        waiting = waiting[(taken[waiting] < 0) & (stop < hi[waiting])]
        block *= 4
    kept = np.flatnonzero(taken >= 0)
    return kept, taken[kept]
