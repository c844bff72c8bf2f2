"""The matches of a plan in a sorted table, whichever way they are searched."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from spark_pace.core.match.row_patterns.compiled import (
    BY,
    BY_EVENT,
    CODE,
    ENDED,
    GAVE,
    LABELS,
    MATCHES,
    NO_LABELS,
    NO_ROOM,
    NO_STEPS,
    NO_TARGET,
    PARTITION,
    PAST_LAST,
    PLACES,
    ROW,
    STATUS,
    TEST,
    TO_FIRST,
    TO_LAST,
    TO_NEXT,
    TO_TEST,
    Input,
    Memory,
    Output,
    SoFar,
    search,
)
from spark_pace.core.match.row_patterns.match_programs import with_room
from spark_pace.core.match.row_patterns.program import CHOOSE, Program, settled
from spark_pace.core.match.row_patterns.rows import Rows
from spark_pace.core.match.row_patterns.tested_search import search_tested
from spark_pace.core.plan.row_pattern import RowPattern, SkipMode
from spark_pace.core.tables import Ints
from spark_pace.errors import ConfigError

MOST_LABELS = 1 << 30  # rows of all matches together; matches may overlap
MOST_MARKS = 1 << 34  # choices times rows: two gigabytes
_FIRST_ROOM = 1 << 12
SKIPS: dict[SkipMode, int] = {
    "past last row": PAST_LAST,
    "to next row": TO_NEXT,
    "to first": TO_FIRST,
    "to last": TO_LAST,
}


@dataclass(frozen=True)
class Found:
    """Matches in the order of their first rows.

    Attributes:
        first: int64[m], the first row of each match; of an empty one the row at which it was sought.
        length: int64[m], how many rows it has.
        labels: int32[], the labels of their rows, match by match.
        code: see `spark_pace.core.match.row_patterns.compiled.Output`, as are the next two.
        by: see there.
        next: see there.
    """

    first: Ints
    length: Ints
    labels: npt.NDArray[np.int32]
    code: Ints
    by: Ints
    next: Ints


def skip_error(plan: RowPattern, missing: bool) -> ConfigError:
    """The error for a match from which ``SKIP TO`` leads nowhere."""
    name = plan.skip_name
    must = f"AFTER MATCH SKIP TO {name} must lead to a row behind the first row of every match"
    got = f"a match without a row of {name}" if missing else f"a match whose first row is that of {name}"
    do = "Write AFTER MATCH SKIP PAST LAST ROW or SKIP TO NEXT ROW, or name a variable that stands later."
    return ConfigError.of(plan.where, must, got, do)


def steps_error(plan: RowPattern) -> ConfigError:
    """The error for a search that takes too many steps from one row."""
    must = f"the search for a match from one row must take at most {plan.most_steps:,} steps"
    do = "Bound the pattern or define its variables more narrowly."
    return ConfigError.of(plan.where, must, "more", do)


@dataclass(frozen=True)
class Known:
    """What is known of each row before the search.

    Attributes:
        holds: see `spark_pace.core.match.row_patterns.compiled.Input`, as of the next one.
        reach: see there.
        so_far: what conditions read of the match so far; None if they do not.
        test: tells whether the condition holds at which the search has stopped.
    """

    holds: Ints
    reach: Ints
    so_far: SoFar | None
    test: Callable[[Output], bool]


def search_compiled(plan: RowPattern, program: Program, rows: Rows, known: Known) -> Found:
    """The matches, found by machine code.

    Raises:
        ConfigError: ``SKIP TO`` leads nowhere, the search from one row takes too many steps, or there are too
            many rows for so large a pattern.
    """
    program, choices = _numbered(plan, program, known)
    marks = (rows.rows + len(rows.bounds) + 1) * choices
    if marks > MOST_MARKS:
        must = f"the choices of a pattern times the rows of a task must be at most {MOST_MARKS:,}"
        do = "Write smaller bounds in {n,m}, or PARTITION BY a column, so that tasks have fewer rows."
        raise ConfigError.of(plan.where, must, f"{choices:,} times {rows.rows:,}", do)
    given = _input(plan, rows, known, choices)
    memory = _memory(np.zeros((marks >> 3) + 1, np.uint8), _FIRST_ROOM)
    output = _output(given, rows.rows)
    progress = output.progress
    _run(program, given, memory, output, known)
    while progress[STATUS] in (NO_ROOM, NO_LABELS):
        if progress[STATUS] == NO_ROOM:
            memory = _memory(memory.marks, 4 * len(memory.way))
        else:
            output = output._replace(labels=_longer(plan, output.labels))
        _run(program, given, memory, output, known)
    if progress[STATUS] == NO_STEPS:
        raise steps_error(plan)
    if progress[STATUS] != ENDED:
        raise skip_error(plan, progress[STATUS] == NO_TARGET)
    assert progress[PARTITION] == len(rows.bounds) - 1
    first, length, code, by = (
        column[: progress[MATCHES]] for column in (output.first, output.length, output.code, output.by)
    )
    return Found(first, length, output.labels[: progress[LABELS]], code, by, output.next)


def _numbered(plan: RowPattern, program: Program, known: Known) -> tuple[Program, int]:
    """The program, where choices that are not marked have the number -1; and how many are marked."""
    chooses = program.kind == CHOOSE
    if known.so_far is None:
        return program, int(chooses.sum())
    marked = chooses & np.array(settled(plan, program))
    numbers = np.where(marked, np.cumsum(marked) - 1, -1)
    return program._replace(value=np.where(chooses, numbers, program.value)), int(marked.sum())


def _run(program: Program, given: Input, memory: Memory, output: Output, known: Known) -> None:
    steps = float(len(given.holds)) * len(program.kind)
    if known.so_far is None:
        search(program, given, memory, output, steps=lambda: steps)
        return
    so_far = with_room(known.so_far, min(len(memory.way), len(given.holds) + 1))
    go_on = search_tested.bound(program, given, memory, so_far, output, steps=lambda: steps)
    output.progress[TEST] = -1
    go_on()
    while output.progress[STATUS] == TO_TEST:
        output.progress[GAVE] = known.test(output)
        go_on()


def _input(plan: RowPattern, rows: Rows, known: Known, choices: int) -> Input:
    extent, targets = rows.extent, sum(1 << one for one in plan.skip_variables)
    start = np.append(extent.start[: len(rows.bounds) - 1], rows.rows)
    apart = int(rows.of_stream is not None)
    return Input(
        bounds=rows.bounds,
        holds=known.holds,
        reach=known.reach,
        first=np.ascontiguousarray(extent.first),
        start=start,
        open=extent.open,
        ahead=np.array(plan.ahead, np.int64),
        beyond=plan.beyond,
        apart=apart,
        choices=choices,
        skip=SKIPS[plan.skip],
        targets=targets,
    )


def _output(given: Input, rows: int) -> Output:
    progress = np.zeros(PLACES, np.int64)
    progress[ROW], progress[CODE], progress[BY] = given.start[0], -1, BY_EVENT
    first, length, code, by = (np.zeros(rows, np.int64) for _ in range(4))
    following = np.zeros(len(given.open), np.int64)
    return Output(first, length, np.zeros(rows + 1, np.int32), code, by, following, progress)


def _memory(marks: npt.NDArray[np.uint8], room: int) -> Memory:
    return Memory(marks, *(np.zeros(room, np.int64) for _ in range(4)))


def _longer(plan: RowPattern, labels: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    if len(labels) > MOST_LABELS:
        must = f"the matches of a task must have at most {MOST_LABELS:,} rows together"
        do = "Write AFTER MATCH SKIP PAST LAST ROW, so that matches do not overlap."
        raise ConfigError.of(plan.where, must, "more", do)
    return np.concatenate([labels, np.zeros(len(labels), np.int32)])
