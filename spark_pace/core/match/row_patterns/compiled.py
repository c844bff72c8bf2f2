"""The search for matches as machine code, where every condition is known of each row before, and its arrays.

A search follows the program, and goes back to the last choice where it fails. A choice that has failed at a
row fails there for every start, so it is marked and not tried again: a search takes no more steps than there
are rows times instructions. Choices on the way to a match have not failed; their marks are removed.

More rows may come of a partition that is *open*. A search there stops at the first start whose match, or
whose lack of one, rests on rows that are not there yet. Of each match it is told how far rows had to be known
for it and for all that was sought before.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spark_pace.core.match.compiled.arguments import Programs
from spark_pace.core.match.row_patterns.program import AT_START, CHOOSE, DONE, TAKE, Program
from spark_pace.core.tables import Bools, Ints
from spark_pace.machine_code.kernel import Kernel, inlined, part

# places in `Output.progress`
PARTITION, ROW, MATCHES, LABELS, NUMBER, STATUS, CODE, BY, ASKED, CUT = range(10)
# where a search from a row stands whose condition is computed outside: the number of the test, or -1; what it
# gave; the instruction, the row at hand, how many ways are left, how many choices made, how many steps taken
TEST, GAVE, AT, AT_ROW, HEIGHT, MADE, STEPS, PLACES = range(10, 18)
ENDED, NO_ROOM, NO_LABELS, NO_TARGET, NO_MOVE, NO_STEPS, TO_TEST = range(7)  # values of its `STATUS`
PAST_LAST, TO_NEXT, TO_FIRST, TO_LAST = range(4)
BY_EVENT, BY_END = -1, -2  # values of `Output.by`, beside rows
FAR = 1 << 62  # a row that never comes
# how a search from a row stands
SEARCHING, FAILED, FULL, LONG, OPEN, MANY, WAITING = range(-1, -8, -1)


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
        outside: bool[c], of each condition whether it is computed outside, for no program can say it.
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
    outside: Bools
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


@part
def forget(memory: Memory, count: int) -> None:
    """Remove the marks of choices that have not failed."""
    for place in range(count):
        pair = memory.made[place]
        memory.marks[pair >> 3] &= ~(1 << (pair & 7)) & 255


@part
def forget_between(memory: Memory, first: int, last: int) -> None:
    """Remove all marks in a range, for they may not hold for another start."""
    for place in range(first >> 3, (last >> 3) + 1):
        memory.marks[place] = 0


@inlined
def take(given: Input, output: Output, place: int, partition: int, row: int, label: int, limit: int) -> int:
    """Take a row.

    `FAILED` if it does not fit, `OPEN` if that is not known, `LONG` if there is no room for its label.
    """
    end = given.bounds[partition + 1]
    if row >= limit:
        output.progress[CUT] |= given.apart | (row < end)
        return FAILED
    if is_known(given, output, partition, row + given.ahead[label >> 1]) == 0:
        return OPEN
    if row >= end or (given.holds[row] >> (label >> 1)) & 1 == 0:
        return FAILED
    if place >= len(output.labels):
        return LONG
    output.labels[place] = label
    return SEARCHING


@inlined
def choose(memory: Memory, pair: int, way: int, row: int, height: int, made: int) -> int:
    """Make a choice and note the other way; `FAILED` if it has failed before, `FULL` without room."""
    if (memory.marks[pair >> 3] >> (pair & 7)) & 1:
        return FAILED
    if height == len(memory.way) or made == len(memory.made):
        return FULL
    memory.marks[pair >> 3] |= 1 << (pair & 7)
    memory.made[made] = pair
    memory.way[height], memory.row[height], memory.height[height] = way, row, made + 1
    return SEARCHING


@part
def attempt(
    program: Program, given: Input, memory: Memory, output: Output, partition: int, start: int
) -> int:
    """The row behind the match that begins at `start`.

    `FAILED` if there is none, `OPEN` if that is not known; `FULL` or `LONG`: arrays must grow.
    """
    limit = given.reach[start] if len(given.reach) else FAR
    base = output.progress[LABELS] - start
    output.progress[ASKED], output.progress[CUT] = start, 0
    at, row, height, made, found = 0, start, 0, 0, SEARCHING
    while found == SEARCHING:
        kind, value = program.kind[at], program.value[at]
        if kind == TAKE:
            found = take(given, output, base + row, partition, row, value, limit)
            if found == SEARCHING:
                at, row = program.follow[at], row + 1
        elif kind == CHOOSE:
            pair = (row + partition) * given.choices + value
            found = choose(memory, pair, program.other[at], row, height, made)
            if found == SEARCHING:
                at, height, made = program.follow[at], height + 1, made + 1
        elif kind == DONE:
            known = 1 if row == start else is_known(given, output, partition, row - 1 + given.beyond)
            found = row if known else OPEN
        elif row == (given.first[partition] if kind == AT_START else given.bounds[partition + 1]):
            at = program.follow[at]
        else:
            found = FAILED
        if found == FAILED and height > 0:
            found, height = SEARCHING, height - 1
            at, row, made = memory.way[height], memory.row[height], memory.height[height]
    if found != FAILED:  # else all choices have failed
        forget(memory, made)
    if output.progress[CUT]:
        forget_between(memory, (start + partition) * given.choices, (limit + partition + 1) * given.choices)
    return found


@part
def note_known(given: Input, output: Output, partition: int, start: int) -> None:
    """Note up to where rows had to be known to decide about a start, and about those before."""
    progress, end = output.progress, given.bounds[partition + 1]
    code, by = 2 * progress[ASKED], BY_EVENT
    if progress[ASKED] >= end:
        code, by = 2 * end - 1, BY_END
    elif progress[CUT] and 2 * given.reach[start] - 1 > code:
        code, by = 2 * given.reach[start] - 1, start
    if by == BY_END or (code >= progress[CODE] and progress[BY] != BY_END):
        progress[CODE], progress[BY] = code, by


@part
def target(given: Input, output: Output, base: int, length: int) -> int:
    """How many rows behind the first row of a match its search goes on; -1 if no row has the variable."""
    if length == 0 or given.skip == TO_NEXT:
        return 1
    if given.skip == PAST_LAST:
        return length
    found = -1
    for place in range(length):
        if (given.targets >> (output.labels[base + place] >> 1)) & 1 and (
            found == -1 or given.skip == TO_LAST
        ):
            found = place
    return found


@part
def leave(given: Input, output: Output, partition: int, row: int) -> None:
    """Go on with the next partition; the next match of this one is sought from a row on."""
    output.next[partition] = row
    output.progress[PARTITION], output.progress[ROW] = partition + 1, given.start[partition + 1]
    output.progress[CODE], output.progress[BY], output.progress[NUMBER] = -1, BY_EVENT, 0


@part
def add_match(given: Input, output: Output, start: int, behind: int) -> None:
    """Add the match from `start` to the row before `behind`, if it can be skipped."""
    progress = output.progress
    steps = target(given, output, progress[LABELS], behind - start)
    if steps <= 0:
        progress[STATUS] = NO_TARGET if steps < 0 else NO_MOVE
        return
    match = progress[MATCHES]
    output.first[match], output.length[match] = start, behind - start
    output.code[match], output.by[match] = progress[CODE], progress[BY]
    progress[MATCHES] += 1
    progress[NUMBER] += 1
    progress[LABELS] += behind - start
    progress[ROW] = start + steps


@inlined
def is_left(given: Input, output: Output) -> bool:
    """Go on to the next partition that has rows left; False if none has, or the search must stop."""
    progress = output.progress
    while progress[PARTITION] < len(given.bounds) - 1 and progress[STATUS] == ENDED:
        if progress[ROW] < given.bounds[progress[PARTITION] + 1]:
            return True
        leave(given, output, progress[PARTITION], progress[ROW])
    return False


@inlined
def go_on(given: Input, output: Output, behind: int) -> None:
    """Note what an attempt has found, and go on behind it."""
    progress = output.progress
    partition, row = progress[PARTITION], progress[ROW]
    if behind == OPEN:
        leave(given, output, partition, row)
    elif behind in (MANY, WAITING):
        progress[STATUS] = NO_STEPS if behind == MANY else TO_TEST
    elif behind in (FULL, LONG):
        progress[STATUS] = NO_ROOM if behind == FULL else NO_LABELS
    else:
        note_known(given, output, partition, row)
        if behind == FAILED:
            progress[ROW] = row + 1
        else:
            add_match(given, output, row, behind)


@Kernel
def search(program: Program, given: Input, memory: Memory, output: Output) -> None:
    """Find matches until there are no more, or arrays must grow, or a match cannot be skipped."""
    progress = output.progress
    progress[STATUS] = ENDED
    while is_left(given, output):
        behind = attempt(program, given, memory, output, progress[PARTITION], progress[ROW])
        go_on(given, output, behind)
