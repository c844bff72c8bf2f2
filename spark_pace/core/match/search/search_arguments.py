"""What the compiled depth-first search is given."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spark_pace.core.columns import Bools, Ints


class Programs(NamedTuple):
    """The programs of each of n levels, over columns of the rows of a stream, and room to run them in.

    Attributes:
        lines: int64[k, 4], what to do; the level whose row is pushed before, -1 for none; the column it is
            pushed of; what a comparison accepts, see `spark_pace.core.match.search.comparison`.
        bounds: int64[n + 1], where the lines of each level begin and end.
        ints: int64[c, rows], values that are BIGINTs, BOOLEANs, or compare as others do.
        doubles: float64[c, rows], the same bits as DOUBLEs.
        nulls: bool[c, rows], where they are null.
        aggregates: int64[g, 4], the aggregates over groups that programs read: the gap of the group, what is
            done, the column of the values (-1 for `COUNT`), and the column to which the aggregate of the rows
            that are taken is written, at the row of the anchor behind the group.
        aggregate_bounds: int64[n + 1], where those of each level begin and end.
        rows: int64[m], room for the rows of a level that programs are run for together.
        places: int64[m], room for the places of these in the pools of a search.
        held: bool[m], room for what is said of them.
        int_stack: int64[depth, m].
        double_stack: float64[depth, m].
        null_stack: bool[depth, m].
    """

    lines: Ints
    bounds: Ints
    ints: Ints
    doubles: npt.NDArray[np.float64]
    nulls: Bools
    aggregates: Ints
    aggregate_bounds: Ints
    rows: Ints
    places: Ints
    held: Bools
    int_stack: Ints
    double_stack: npt.NDArray[np.float64]
    null_stack: Bools


class Levels(NamedTuple):
    """What may be taken at each of n levels. Level 0 is given; the others' parts stand one behind the other.

    Attributes:
        pools: int64[p], the rows of each level's component; those of equal rank together, each in order.
        groups: int64[], for each level where the rows of each rank begin in `pools`, and where the last ones
            end. Without an equality all rows have the rank 0.
        first_groups: int64[n], where each level begins in `groups`.
        equals: int64[n, 2], the earlier level whose rank is looked up, and the place in `ranks`; -1 for none.
        tests: int64[t, 4], the other comparisons: the earlier level, the places in `ranks` of the earlier and
            of the later side, and what is accepted.
        test_bounds: int64[n + 1], where each level begins and ends in `tests`.
        least: int64[t, blocks], the least later rank of each test in each block of `pools`.
        greatest: int64[t, blocks], the greatest one.
        ranks: int64[c, rows], see `spark_pace.core.match.search.comparison`.
        back: int64[n], the level to go back to where no row has fitted.
        block_bits: a block has 2 to the power of it rows. They are passed over at once where their ranks tell
            that none fits.
    """

    pools: Ints
    groups: Ints
    first_groups: Ints
    equals: Ints
    tests: Ints
    test_bounds: Ints
    least: Ints
    greatest: Ints
    ranks: Ints
    back: Ints
    block_bits: int


class Searches(NamedTuple):
    """Searches to be done one after the other, and how.

    Attributes:
        anchors: int64[m], the row of level 0 of each.
        after: int64[m], level 1 begins behind this row, every further one behind the row of the one before.
        bounds: int64[m, n], for each level the row after the last one that may be taken.
        used: bool[rows], the rows that may not be taken.
        second_thoughts: whether another row is tried at a level from which no candidate was reached.
        shorten: whether the search goes on for a candidate that ends before the one it has found.
        use_up: whether the rows of a candidate that was found become used.
    """

    anchors: Ints
    after: Ints
    bounds: Ints
    used: Bools
    second_thoughts: bool
    shorten: bool
    use_up: bool
