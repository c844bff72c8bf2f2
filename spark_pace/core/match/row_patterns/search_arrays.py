"""What the compiled search for row patterns is given, and what it writes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spark_pace.core.columns import Ints
from spark_pace.core.match.compiled.arguments import Programs
from spark_pace.machine_code.kernel import inlined

# places in `Output.progress`
PARTITION, ROW, MATCHES, LABELS, NUMBER, STATUS, CODE, BY, ASKED, CUT, PLACES = range(11)
ENDED, NO_ROOM, NO_LABELS, NO_TARGET, NO_MOVE, NO_STEPS = range(6)  # values of its `STATUS`
PAST_LAST, TO_NEXT, TO_FIRST, TO_LAST = range(4)
BY_EVENT, BY_END = -1, -2  # values of `Output.by`, beside rows
FAR = 1 << 62  # a row that never comes
SEARCHING, FAILED, FULL, LONG, OPEN, MANY = -1, -2, -3, -4, -5, -6  # how a search from a row stands


class Input(NamedTuple):
    """The rows.

    Attributes:
        bounds: int64[partitions + 1], where the rows of each partition begin, and where the last ones end.
        holds: int64[n], a bit for each variable: its condition holds in the row.
        reach: int64[n], the first row that is too late for a match that begins in the row; `FAR` if such a
            row may still come. Or int64[0].
        first: int64[partitions], the row that is the first one of each partition; -1 if it is not there.
        start: int64[partitions + 1], the row from which matches are sought; last how many rows there are.
        open: int64[partitions], 1 if more rows may come, else 0.
        ahead: int64[variables], how many rows behind a row the condition of each variable reads.
        beyond: how many rows behind its last row the measures of a match read.
        apart: 1 if a search that fails at the end of its window says nothing of others, even if no row is
            there; else 0.
        choices: how many choices of the program are marked where they have failed.
        skip: `PAST_LAST`, `TO_NEXT`, `TO_FIRST` or `TO_LAST`.
        targets: a bit for each variable to whose rows a match is skipped.
    """

    bounds: Ints
    holds: Ints
    reach: Ints
    first: Ints
    start: Ints
    open: Ints
    ahead: Ints
    beyond: int
    apart: int
    choices: int
    skip: int
    targets: int


class SoFar(NamedTuple):
    """What conditions read of the match so far: rows, aggregates that go with them, and programs over these.

    A *set* has the rows of some variables, in order. The *numbers* of an aggregate are added up row by row of
    its set, so to give rows back is to count fewer. Programs read columns: first cells, then rows. The first
    cell is null, then come the names of variables, then what is written during the search, and constants.

    Attributes:
        most_steps: how many steps the search from one row may take.
        matches: int64[partitions], how many matches of each were found before.
        tests: int64[variables + 1], where the conditions of each variable begin; last how many there are.
        programs: the conditions.
        slots: int64[m, 11], what each condition reads, see `spark_pace.core.match.row_patterns.match_so_far`.
        slot_bounds: int64[c + 1], where those of each condition begin, and where the last ones end.
        places: int64[m], the place in the columns that each slot reads now.
        cells: how many cells the columns have before their rows.
        sets: int64[s], a bit for each variable of each set.
        counts: int64[s], how many rows each has.
        rows: int64[s, room], its rows.
        adding: int64[q, 2], of each column of numbers the set; and 0 if they are added up, 1 if the row of
            the least one is kept.
        numbers: int64[q, n], the numbers; `GREATEST` for none where the least one is sought.
        running: int64[q, room + 1], what they come to, by how many rows the set has; -1 for no row.
        digits: int64[], room for a sum.
        scales: float64[], 2 ** 32 to the power of what `FARTHEST` places before 0 up to as many behind it.
    """

    most_steps: int
    matches: Ints
    tests: Ints
    programs: Programs
    slots: Ints
    slot_bounds: Ints
    places: Ints
    cells: int
    sets: Ints
    counts: Ints
    rows: Ints
    adding: Ints
    numbers: Ints
    running: Ints
    digits: Ints
    scales: npt.NDArray[np.float64]


class Memory(NamedTuple):
    """What the search writes for itself.

    Attributes:
        marks: uint8[], a bit for each choice that is marked at each row, and behind the last one of each
            partition.
        way: int64[d], the ways that are left to try.
        row: int64[d], the row of each.
        height: int64[d], how many choices had been made before it.
        made: int64[d], the choices that are marked, each with its row.
    """

    marks: npt.NDArray[np.uint8]
    way: Ints
    row: Ints
    height: Ints
    made: Ints


class Output(NamedTuple):
    """What is found.

    Attributes:
        first: int64[n], the first row of each match.
        length: int64[n], how many rows it has.
        labels: int32[], the labels of the rows of the first match, then of the second, and so on.
        code: int64[n], up to where rows had to be known for the match and all before: 2r for row r, 2r - 1
            for a window, or the partition, that ends before row r.
        by: int64[n], the row that began this window; `BY_EVENT`, or `BY_END` for the end of the partition.
        next: int64[partitions], the first row at which it is not known whether a match begins.
        progress: int64[PLACES], where the search stands.
    """

    first: Ints
    length: Ints
    labels: npt.NDArray[np.int32]
    code: Ints
    by: Ints
    next: Ints
    progress: Ints


@inlined
def is_known(given: Input, output: Output, partition: int, row: int) -> int:
    """Note that a row had to be known; 0 if it may still come."""
    if row >= given.bounds[partition + 1] and given.open[partition]:
        return 0
    output.progress[ASKED] = max(output.progress[ASKED], row)
    return 1
