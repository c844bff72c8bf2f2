"""The matches of a plan in a sorted table, whichever way they are searched."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from spark_pace.core.columns import Ints
from spark_pace.core.match.row_patterns.compiled import (
    BY,
    BY_EVENT,
    CODE,
    ENDED,
    LABELS,
    MATCHES,
    NO_LABELS,
    NO_ROOM,
    NO_TARGET,
    PARTITION,
    PAST_LAST,
    PLACES,
    ROW,
    STATUS,
    TO_FIRST,
    TO_LAST,
    TO_NEXT,
    Input,
    Memory,
    Output,
    search,
)
from spark_pace.core.match.row_patterns.program import CHOOSE, Program
from spark_pace.core.match.row_patterns.rows import Rows
from spark_pace.core.plan.row_pattern import RowPattern, SkipMode
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


def next_start(plan: RowPattern, labels: list[int]) -> int:
    """How many rows behind the first row of a match the search goes on.

    Raises:
        ConfigError: ``SKIP TO`` leads nowhere.
    """
    if not labels or plan.skip == "to next row":
        return 1
    if plan.skip == "past last row":
        return len(labels)
    places = [place for place, label in enumerate(labels) if label >> 1 in plan.skip_variables]
    place = places[0 if plan.skip == "to first" else -1] if places else -1
    if place <= 0:
        raise skip_error(plan, place < 0)
    return place


def search_bits(plan: RowPattern, program: Program, rows: Rows, holds: Ints, reach: Ints) -> Found:
    """The matches where all conditions are known of each row, as bits (`holds`, see `Input`).

    Raises:
        ConfigError: ``SKIP TO`` leads nowhere, or there are too many rows for so large a pattern.
    """
    bounds, choices = rows.bounds, int((program.kind == CHOOSE).sum())
    marks = (rows.rows + len(bounds) + 1) * choices
    if marks > MOST_MARKS:
        must = f"the choices of a pattern times the rows of a task must be at most {MOST_MARKS:,}"
        do = "Write smaller bounds in {n,m}, or PARTITION BY a column, so that tasks have fewer rows."
        raise ConfigError.of(plan.where, must, f"{choices:,} times {rows.rows:,}", do)
    given = _input(plan, rows, holds, reach, choices)
    memory = _memory(np.zeros((marks >> 3) + 1, np.uint8), _FIRST_ROOM)
    output = _output(given, rows.rows)
    progress, steps = output.progress, float(rows.rows) * len(program.kind)
    search(program, given, memory, output, steps=lambda: steps)
    while progress[STATUS] in (NO_ROOM, NO_LABELS):
        if progress[STATUS] == NO_ROOM:
            memory = _memory(memory.marks, 4 * len(memory.way))
        else:
            output = output._replace(labels=_longer(plan, output.labels))
        search(program, given, memory, output, steps=lambda: steps)
    if progress[STATUS] != ENDED:
        raise skip_error(plan, progress[STATUS] == NO_TARGET)
    assert progress[PARTITION] == len(bounds) - 1
    first, length, code, by = (
        column[: progress[MATCHES]] for column in (output.first, output.length, output.code, output.by)
    )
    return Found(first, length, output.labels[: progress[LABELS]], code, by, output.next)


def _input(plan: RowPattern, rows: Rows, holds: Ints, reach: Ints, choices: int) -> Input:
    extent, targets = rows.extent, sum(1 << one for one in plan.skip_variables)
    start = np.append(extent.start[: len(rows.bounds) - 1], rows.rows)
    apart = int(rows.of_stream is not None)
    ahead = np.array(plan.ahead, np.int64)
    return Input(
        rows.bounds, holds, reach, np.ascontiguousarray(extent.first), start, extent.open, ahead, plan.beyond,
        apart, choices, SKIPS[plan.skip], targets,
    )  # fmt: skip


def _output(given: Input, rows: int) -> Output:
    progress = np.zeros(PLACES, np.int64)
    progress[ROW], progress[CODE], progress[BY] = given.start[0], -1, BY_EVENT
    first, length, code, by = (np.zeros(rows, np.int64) for _ in range(4))
    following = np.zeros(len(given.open), np.int64)
    return Output(first, length, np.zeros(rows + 1, np.int32), code, by, following, progress)


def _memory(marks: npt.NDArray[np.uint8], room: int) -> Memory:
    return Memory(marks, *(np.zeros(room, np.int64) for _ in range(4)))


def require_few(plan: RowPattern, labels: int) -> None:
    """Refuse matches that have too many rows together.

    Raises:
        ConfigError: they have.
    """
    if labels > MOST_LABELS:
        must = f"the matches of a task must have at most {MOST_LABELS:,} rows together"
        do = "Write AFTER MATCH SKIP PAST LAST ROW, so that matches do not overlap."
        raise ConfigError.of(plan.where, must, "more", do)


def _longer(plan: RowPattern, labels: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    require_few(plan, len(labels))
    return np.concatenate([labels, np.zeros(len(labels), np.int32)])
