"""The search for matches as machine code, where every condition is known of each row before.

A search follows the program, and goes back to the last choice where it fails. A choice that has failed at a
row fails there for every start, so it is marked and not tried again: a search takes no more steps than there
are rows times instructions. Choices on the way to a match have not failed; their marks are removed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spark_pace.core.columns import Ints
from spark_pace.core.match.row_patterns.program import AT_START, CHOOSE, DONE, TAKE, Program
from spark_pace.machine_code.kernel import Kernel, inlined, part

PARTITION, ROW, MATCHES, LABELS, STATUS = range(5)  # places in `Output.progress`
ENDED, NO_ROOM, NO_LABELS, NO_TARGET, NO_MOVE = range(5)  # values of its `STATUS`
PAST_LAST, TO_NEXT, TO_FIRST, TO_LAST = range(4)
_SEARCHING, _FAILED, _FULL, _LONG = -1, -2, -3, -4


class Input(NamedTuple):
    """The rows.

    Attributes:
        bounds: int64[partitions + 1], where the rows of each partition begin, and where the last ones end.
        holds: int64[n], a bit for each variable: its condition holds in the row.
        reach: int64[n], the first row that is too late for a match that begins in the row; or int64[0].
        choices: how many choices the program has.
        skip: `PAST_LAST`, `TO_NEXT`, `TO_FIRST` or `TO_LAST`.
        targets: a bit for each variable to whose rows a match is skipped.
    """

    bounds: Ints
    holds: Ints
    reach: Ints
    choices: int
    skip: int
    targets: int


class Memory(NamedTuple):
    """What the search writes for itself.

    Attributes:
        marks: uint8[], a bit for each choice at each row, and behind the last one of each partition.
        way: int64[d], the ways that are left to try.
        row: int64[d], the row of each.
        height: int64[d], how many choices had been made before it.
        made: int64[d], the choices, each with its row.
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
        progress: int64[5], where the search stands.
    """

    first: Ints
    length: Ints
    labels: npt.NDArray[np.int32]
    progress: Ints


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
def take(given: Input, output: Output, place: int, row: int, label: int, limit: int) -> int:
    """Take a row; `_FAILED` if it does not fit, `_LONG` if there is no room for its label."""
    if row >= limit or (given.holds[row] >> (label >> 1)) & 1 == 0:
        return _FAILED
    if place >= len(output.labels):
        return _LONG
    output.labels[place] = label
    return _SEARCHING


@inlined
def choose(memory: Memory, pair: int, way: int, row: int, height: int, made: int) -> int:
    """Make a choice and note the other way; `_FAILED` if it has failed before, `_FULL` without room."""
    if (memory.marks[pair >> 3] >> (pair & 7)) & 1:
        return _FAILED
    if height == len(memory.way) or made == len(memory.made):
        return _FULL
    memory.marks[pair >> 3] |= 1 << (pair & 7)
    memory.made[made] = pair
    memory.way[height], memory.row[height], memory.height[height] = way, row, made + 1
    return _SEARCHING


@part
def attempt(
    program: Program, given: Input, memory: Memory, output: Output, partition: int, start: int
) -> int:
    """The row behind the match that begins at `start`; `_FAILED`; `_FULL` or `_LONG`: arrays must grow."""
    begin, end = given.bounds[partition], given.bounds[partition + 1]
    limit = given.reach[start] if len(given.reach) else end
    base = output.progress[LABELS] - start
    at, row, height, made, cut, found = 0, start, 0, 0, 0, _SEARCHING
    while found == _SEARCHING:
        kind, value = program.kind[at], program.value[at]
        if kind == TAKE:
            found = take(given, output, base + row, row, value, limit)
            if found == _SEARCHING:
                at, row = program.follow[at], row + 1
                continue
            cut |= limit <= row < end
        elif kind == CHOOSE:
            pair = (row + partition) * given.choices + value
            found = choose(memory, pair, program.other[at], row, height, made)
            if found == _SEARCHING:
                at, height, made = program.follow[at], height + 1, made + 1
                continue
        elif kind == DONE:
            found = row
        elif row == (begin if kind == AT_START else end):
            at = program.follow[at]
        else:
            found = _FAILED
        if found == _FAILED and height > 0:
            found, height = _SEARCHING, height - 1
            at, row, made = memory.way[height], memory.row[height], memory.height[height]
    if found != _FAILED:  # else all choices have failed
        forget(memory, made)
    if cut:
        forget_between(memory, (start + partition) * given.choices, (limit + partition + 1) * given.choices)
    return found


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


@Kernel
def search(program: Program, given: Input, memory: Memory, output: Output) -> None:
    """Find matches until there are no more, or arrays must grow, or a match cannot be skipped."""
    progress = output.progress
    progress[STATUS] = ENDED
    while progress[PARTITION] < len(given.bounds) - 1 and progress[STATUS] == ENDED:
        partition, row = progress[PARTITION], progress[ROW]
        if row >= given.bounds[partition + 1]:
            progress[PARTITION] += 1
            continue
        behind = attempt(program, given, memory, output, partition, row)
        if behind in (_FULL, _LONG):
            progress[STATUS] = NO_ROOM if behind == _FULL else NO_LABELS
        elif behind == _FAILED:
            progress[ROW] = row + 1
        else:
            steps = target(given, output, progress[LABELS], behind - row)
            if steps <= 0:
                progress[STATUS] = NO_TARGET if steps < 0 else NO_MOVE
            else:
                output.first[progress[MATCHES]], output.length[progress[MATCHES]] = row, behind - row
                progress[MATCHES] += 1
                progress[LABELS] += behind - row
                progress[ROW] = row + steps
