"""One step of a search that takes, at one level, the first row that fits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from spark_pace import ways
from spark_pace.core.columns import Ints
from spark_pace.core.ranges import expand, pieces
from spark_pace.core.ranks import segments_of

if TYPE_CHECKING:
    from spark_pace.core.match.search.search import Search


def step(search: Search, level: int, matrix: Ints, after: Ints, end: Ints) -> tuple[Ints, Ints]:
    """Which candidates go on at `level`, and with which row: the first that fits behind the rows `after`.

    Ever larger blocks are tested until one does. For the arguments see `Search.reach`.

    Returns:
        int64[k], the candidates, ascending; and int64[k], their rows.
    """
    pool, lo, hi = search.reach(level, matrix, after, end)
    taken = np.full(len(matrix), -1, np.int64)
    waiting = np.flatnonzero(lo < hi)
    if search.levels[level].looked_up:
        return waiting, pool[lo[waiting]]
    block = ways.FIRST_ROWS
    while len(waiting):
        stop = np.minimum(hi[waiting], lo[waiting] + block)
        for piece in pieces(stop - lo[waiting]):
            owner, index = expand(lo[waiting[piece]], stop[piece])
            grown = np.column_stack([matrix[waiting[piece][owner]], pool[index]])
            fits = np.flatnonzero(search.passes(level, grown))
            fits = fits[segments_of(owner[fits])]  # the first of each candidate
            taken[waiting[piece][owner[fits]]] = grown[fits, -1]
        lo[waiting] = stop
        waiting = waiting[(taken[waiting] < 0) & (stop < hi[waiting])]
        block *= 4
    kept = np.flatnonzero(taken >= 0)
    return kept, taken[kept]
