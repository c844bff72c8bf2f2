"""The search for matches as machine code, where conditions read the match so far.

They are tested as rows are taken. A choice that such a condition can follow may fail for one start and not
for another, so it is not marked; and the steps from each start have a limit. Where no program can say a
condition, the search stops; it goes on with what was computed outside. All else is as where conditions are
known, and of the same parts. That search has its own kernel: it would be slower by a fifth if it asked for
any of this.
"""

from __future__ import annotations

from spark_pace.core.match.row_patterns.compiled import (
    ASKED,
    AT,
    AT_ROW,
    CUT,
    ENDED,
    FAILED,
    FAR,
    FULL,
    GAVE,
    HEIGHT,
    LABELS,
    MADE,
    MANY,
    OPEN,
    PARTITION,
    ROW,
    SEARCHING,
    STATUS,
    STEPS,
    TEST,
    WAITING,
    Input,
    Memory,
    Output,
    SoFar,
    choose,
    forget,
    go_on,
    is_known,
    is_left,
    take,
)
from spark_pace.core.match.row_patterns.match_so_far import begin, give_back, hold, joins, remove
from spark_pace.core.match.row_patterns.program import AT_START, CHOOSE, DONE, TAKE, Program
from spark_pace.machine_code.kernel import Kernel, inlined, part


@inlined
def stand(
    program: Program, given: Input, output: Output, partition: int, start: int, at: int, row: int
) -> int:
    """End a match, or ask for an end of the partition; `row` for a match, `OPEN` if that is not known."""
    kind = program.kind[at]
    if kind == DONE:
        known = 1 if row == start else is_known(given, output, partition, row - 1 + given.beyond)
        return row if known else OPEN
    asked = given.first[partition] if kind == AT_START else given.bounds[partition + 1]
    return SEARCHING if row == asked else FAILED


@part
def joined(
    given: Input, output: Output, so_far: SoFar, partition: int, base: int, row: int, label: int, limit: int
) -> int:
    """Take a row if its conditions hold, or go on behind the one that was computed outside; see `joins`."""
    test = output.progress[TEST]
    output.progress[TEST] = -1
    if test < 0:
        found = take(given, output, base + row, partition, row, label, limit)
        return joins(given, output, so_far, partition, base, row, label >> 1) if found == SEARCHING else found
    if output.progress[GAVE]:
        return hold(given, output, so_far, partition, base, row, label >> 1, test + 1)
    remove(so_far, label >> 1)
    return FAILED


@inlined
def choose_tested(memory: Memory, pair: int, value: int, way: int, row: int, height: int, made: int) -> int:
    """As `choose`, but a choice whose number is -1 is not marked."""
    if value >= 0:
        return choose(memory, pair, way, row, height, made)
    if height == len(memory.way):
        return FULL
    memory.way[height], memory.row[height], memory.height[height] = way, row, made
    return SEARCHING


@part
def attempt_tested(
    program: Program, given: Input, memory: Memory, so_far: SoFar, output: Output, partition: int, start: int
) -> int:
    """As `attempt`.

    `MANY`: it takes too many steps; `WAITING`: a condition is to be computed outside, and then it goes on.
    """
    limit, progress = given.reach[start] if len(given.reach) else FAR, output.progress
    base = progress[LABELS] - start
    at, row, height, made, steps, found = 0, start, 0, 0, 0, SEARCHING
    if progress[TEST] < 0:
        progress[ASKED], progress[CUT] = start, 0
        begin(so_far)
    else:
        at, row, steps = progress[AT], progress[AT_ROW], progress[STEPS]
        height, made = progress[HEIGHT], progress[MADE]
    while found == SEARCHING:
        kind, value = program.kind[at], program.value[at]
        if steps == so_far.most_steps:
            found = MANY
        elif kind == TAKE:
            found = joined(given, output, so_far, partition, base, row, value, limit)
            row += found == SEARCHING
        elif kind == CHOOSE:
            way, pair = program.other[at], (row + partition) * given.choices + value
            found = choose_tested(memory, pair, value, way, row, height, made)
            if found == SEARCHING:
                height, made = height + 1, made + (value >= 0)
        else:
            found = stand(program, given, output, partition, start, at, row)
        if found == SEARCHING:
            at, steps = program.follow[at], steps + 1
        elif found == FAILED and height > 0:
            found, height, steps = SEARCHING, height - 1, steps + 1
            give_back(output, so_far, base + memory.row[height], base + row)
            at, row, made = memory.way[height], memory.row[height], memory.height[height]
    if found == WAITING:
        progress[AT], progress[AT_ROW], progress[STEPS] = at, row, steps
        progress[HEIGHT], progress[MADE] = height, made
    elif found != FAILED:
        forget(memory, made)
    return found


@Kernel
def search_tested(program: Program, given: Input, memory: Memory, so_far: SoFar, output: Output) -> None:
    """Find matches until there are no more, arrays must grow, a limit is met, or a condition is left open.

    The limits are the steps of the search from one row, and matches that cannot be skipped. A condition is
    left open where it is computed outside; called again, the search goes on there.
    """
    progress = output.progress
    progress[STATUS] = ENDED
    while is_left(given, output):
        partition, row = progress[PARTITION], progress[ROW]
        go_on(given, output, attempt_tested(program, given, memory, so_far, output, partition, row))
