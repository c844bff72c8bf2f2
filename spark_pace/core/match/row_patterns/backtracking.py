"""The search for matches where conditions read the match so far: each start by itself, with a limit.

It follows the same program as `spark_pace.core.match.row_patterns.compiled`, row by row in Python. What has
failed is remembered only where no such condition can come any more.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from spark_pace.core.columns import Ints
from spark_pace.core.match.row_patterns.path import Path
from spark_pace.core.match.row_patterns.program import AT_START, CHOOSE, DONE, TAKE, Program
from spark_pace.core.match.row_patterns.rows import Rows
from spark_pace.core.match.row_patterns.search import Found, next_start, require_few
from spark_pace.core.plan.row_pattern import RowPattern
from spark_pace.errors import ConfigError


@dataclass(frozen=True)
class Steps:
    """A program and what is known of each row, as lists of Python.

    Attributes:
        kind: see `Program`, as are the next three.
        follow: see `Program`.
        other: see `Program`.
        value: see `Program`.
        settled: of each instruction whether no condition that reads the match can follow it.
        holds: see `spark_pace.core.match.row_patterns.compiled.Input`.
        reach: likewise.
    """

    kind: list[int]
    follow: list[int]
    other: list[int]
    value: list[int]
    settled: list[bool]
    holds: list[int]
    reach: list[int]


def search_paths(plan: RowPattern, program: Program, rows: Rows, holds: Ints, reach: Ints) -> Found:
    """The matches of all partitions.

    Raises:
        ConfigError: the search from one row takes too many steps, or ``SKIP TO`` leads nowhere.
    """
    steps = Steps(
        program.kind.tolist(),
        program.follow.tolist(),
        program.other.tolist(),
        program.value.tolist(),
        _settled(plan, program) if plan.within_us is None else [False] * len(program.kind),
        holds.tolist(),
        reach.tolist(),
    )
    path = Path(plan, rows)
    first: list[int] = []
    length: list[int] = []
    labels: list[int] = []
    for begin, end in zip(rows.bounds[:-1].tolist(), rows.bounds[1:].tolist(), strict=True):
        failed: set[tuple[int, int]] = set()
        path.number, row = 1, begin
        while row < end:
            path.begin(begin, end)
            found = _attempt(plan, _Search(steps, path, failed, begin, end, row))
            if found is None:
                row += 1
                continue
            first.append(row)
            length.append(len(found))
            labels += found
            require_few(plan, len(labels))
            path.number += 1
            row += next_start(plan, found)
    return Found(np.array(first, np.int64), np.array(length, np.int64), np.array(labels, np.int32))


def _settled(plan: RowPattern, program: Program) -> list[bool]:
    """Of each instruction whether no condition that reads the match can follow it."""
    reads = [bool(one.of_match) for one in plan.conditions]
    kinds, values = program.kind.tolist(), program.value.tolist()
    open_ = [kind == TAKE and reads[value >> 1] for kind, value in zip(kinds, values, strict=True)]
    before: list[list[int]] = [[] for _ in open_]
    for at, kind in enumerate(kinds):
        ways = [] if kind == DONE else [program.follow[at], *([program.other[at]] if kind == CHOOSE else [])]
        for way in ways:
            before[way].append(at)
    waiting = [at for at, one in enumerate(open_) if one]
    while waiting:
        for at in before[waiting.pop()]:
            if not open_[at]:
                open_[at] = True
                waiting.append(at)
    return [not one for one in open_]


def _attempt(plan: RowPattern, search: _Search) -> list[int] | None:
    """The labels of the match that begins at the start of a search; None if there is none."""
    for _ in range(plan.most_steps):
        if search.steps.kind[search.at] == DONE:
            return search.labels
        if not search.goes_on() and not search.goes_back():
            return None
    must = f"the search for a match from one row must take at most {plan.most_steps:,} steps"
    do = "Bound the pattern or define its variables more narrowly, or allow more steps."
    raise ConfigError.of(plan.where, must, "more", do)


@dataclass
class _Search:
    """The search from one row.

    Attributes:
        steps: the program.
        path: the rows taken so far, for conditions.
        failed: instructions with rows that have failed for any start.
        begin: the first row of the partition.
        end: the row behind its last one.
        start: the row.
        at: the next instruction.
        labels: the labels of the rows taken so far.
        ways: the ways that are left: an instruction, how many rows were taken and how many choices made.
        made: the choices made, each with its row.
    """

    steps: Steps
    path: Path
    failed: set[tuple[int, int]]
    begin: int
    end: int
    start: int
    at: int = 0
    labels: list[int] = field(default_factory=list)
    ways: list[tuple[int, int, int]] = field(default_factory=list)
    made: list[tuple[int, int]] = field(default_factory=list)

    def goes_on(self) -> bool:
        """Follow the next instruction; False if it fails."""
        steps, at, row = self.steps, self.at, self.start + len(self.labels)
        kind = steps.kind[at]
        if kind == TAKE:
            if not self._takes(steps.value[at], row):
                return False
        elif kind == CHOOSE:
            if steps.settled[at] and (at, row) in self.failed:
                return False
            self.made.append((at, row))
            self.ways.append((steps.other[at], len(self.labels), len(self.made)))
        elif row != (self.begin if kind == AT_START else self.end):
            return False
        self.at = steps.follow[at]
        return True

    def _takes(self, label: int, row: int) -> bool:
        limit = self.steps.reach[self.start] if self.steps.reach else self.end
        variable = label >> 1
        if row >= limit or not self.steps.holds[row] >> variable & 1 or not self.path.take(variable, row):
            return False
        self.labels.append(label)
        return True

    def goes_back(self) -> bool:
        """Go back to the last choice, and the other way; False if no way is left."""
        way, taken, kept = self.ways.pop() if self.ways else (-1, 0, 0)
        self.failed.update(pair for pair in self.made[kept:] if self.steps.settled[pair[0]])
        del self.made[kept:], self.labels[taken:]
        self.path.go_back(taken)
        self.at = way
        return way >= 0
