"""The search for matches as machine code, where conditions read the match so far.

They are tested as rows are taken. A choice that such a condition can follow may fail for one start and not
for another, so it is not marked; and the steps from each start have a limit. All else is as where conditions
are known, and of the same parts. That search has its own kernel: it would be slower by a fifth if it asked
for any of this.
"""

from __future__ import annotations

from spark_pace.core.match.row_patterns.compiled import (
    ASKED,
    CUT,
    ENDED,
    FAILED,
    FAR,
    FULL,
    LABELS,
    MANY,
    OPEN,
    PARTITION,
    ROW,
    SEARCHING,
    STATUS,
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
from spark_pace.core.match.row_patterns.match_so_far import begin, give_back, joins
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
def attempt_tested(
    program: Program, given: Input, memory: Memory, so_far: SoFar, output: Output, partition: int, start: int
) -> int:
    """As `attempt`; choices whose number is -1 are not marked. `MANY`: it takes too many steps."""
    limit = given.reach[start] if len(given.reach) else FAR
    base = output.progress[LABELS] - start
    output.progress[ASKED], output.progress[CUT] = start, 0
    at, row, height, made, steps, found = 0, start, 0, 0, 0, SEARCHING
    begin(so_far)
    while found == SEARCHING:
        kind, value = program.kind[at], program.value[at]
        if steps == so_far.most_steps:
            found = MANY
        elif kind == TAKE:
            found = take(given, output, base + row, partition, row, value, limit)
            if found == SEARCHING:
                found = joins(given, output, so_far, partition, base, row, value >> 1)
            row += found == SEARCHING
        elif kind == CHOOSE:
            way, pair = program.other[at], (row + partition) * given.choices + value
            if value >= 0:
                found = choose(memory, pair, way, row, height, made)
            elif height == len(memory.way):
                found = FULL
            else:
                memory.way[height], memory.row[height], memory.height[height] = way, row, made
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
    if found != FAILED:
        forget(memory, made)
    return found


@Kernel
def search_tested(program: Program, given: Input, memory: Memory, so_far: SoFar, output: Output) -> None:
    """Find matches until there are no more, or arrays must grow, or a limit is met.

    The limits are the steps of the search from one row, and matches that cannot be skipped.
    """
    progress = output.progress
    progress[STATUS] = ENDED
    while is_left(given, output):
        partition, row = progress[PARTITION], progress[ROW]
        go_on(given, output, attempt_tested(program, given, memory, so_far, output, partition, row))
