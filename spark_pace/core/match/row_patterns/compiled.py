"""The search for matches as machine code, where every condition is known of each row before.

A search follows the program, and goes back to the last choice where it fails. A choice that has failed at a
row fails there for every start, so it is marked and not tried again: a search takes no more steps than there
are rows times instructions. Choices on the way to a match have not failed; their marks are removed.

More rows may come of a partition that is *open*. A search there stops at the first start whose match, or
whose lack of one, rests on rows that are not there yet. Of each match it is told how far rows had to be known
for it and for all that was sought before.
"""

from __future__ import annotations

from spark_pace.core.match.row_patterns.program import AT_START, CHOOSE, DONE, TAKE, Program
from spark_pace.core.match.row_patterns.search_arrays import (
    ASKED,
    BY,
    BY_END,
    BY_EVENT,
    CODE,
    CUT,
    ENDED,
    FAILED,
    FAR,
    FULL,
    LABELS,
    LONG,
    MANY,
    MATCHES,
    NO_LABELS,
    NO_MOVE,
    NO_ROOM,
    NO_STEPS,
    NO_TARGET,
    NUMBER,
    OPEN,
    PARTITION,
    PAST_LAST,
    ROW,
    SEARCHING,
    STATUS,
    TO_LAST,
    TO_NEXT,
    Input,
    Memory,
    Output,
    is_known,
)
from spark_pace.machine_code.kernel import Kernel, inlined, part


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
    elif behind == MANY:
        progress[STATUS] = NO_STEPS
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
