"""The search for matches where conditions read the match so far: each start by itself, with a limit.

It follows the same program as `spark_pace.core.match.row_patterns.compiled`, row by row in Python. What has
failed is remembered only where no such condition can come any more.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from spark_pace.core.columns import Ints
from spark_pace.core.match.row_patterns.path import Path, UnknownError
from spark_pace.core.match.row_patterns.program import AT_START, CHOOSE, DONE, TAKE, Program, settled
from spark_pace.core.match.row_patterns.rows import Rows
from spark_pace.core.match.row_patterns.search import Found, next_start, require_few, steps_error
from spark_pace.core.match.row_patterns.search_arrays import BY_END, BY_EVENT
from spark_pace.core.plan.row_pattern import RowPattern


@dataclass(frozen=True)
class Steps:
    """A program and what is known of each row, as lists of Python.

    Attributes:
        kind: see `Program`, as are the next three.
        follow: see `Program`.
        other: see `Program`.
        value: see `Program`.
        settled: of each instruction whether no condition that reads the match can follow it.
        holds: see `spark_pace.core.match.row_patterns.search_arrays.Input`, as are the next three.
        reach: see there.
        ahead: see there.
        apart: see there.
    """

    kind: list[int]
    follow: list[int]
    other: list[int]
    value: list[int]
    settled: list[bool]
    holds: list[int]
    reach: list[int]
    ahead: tuple[int, ...]
    apart: bool


def search_paths(plan: RowPattern, program: Program, rows: Rows, holds: Ints, reach: Ints) -> Found:
    """The matches of all partitions.

    Raises:
        ConfigError: the search from one row takes too many steps, or ``SKIP TO`` leads nowhere.
    """
    steps = _steps(plan, program, rows, (holds, reach))
    path, found, extent = Path(plan, rows), _Matches(), rows.extent
    bounds = rows.bounds[:-1], rows.bounds[1:]
    columns = (*bounds, extent.first, extent.start, extent.open, extent.matches)
    for begin, end, *of_partition in zip(*(column.tolist() for column in columns), strict=False):
        path.enter(begin, end, is_open=bool(of_partition[2]), number=of_partition[3] + 1)
        search = _Search(steps, path, set(), of_partition[0], end, of_partition[1])
        found.next.append(_search_partition(plan, search, found))
    return found.found()


def _steps(plan: RowPattern, program: Program, rows: Rows, known: tuple[Ints, Ints]) -> Steps:
    holds, reach = known
    return Steps(
        program.kind.tolist(),
        program.follow.tolist(),
        program.other.tolist(),
        program.value.tolist(),
        settled(plan, program),
        holds.tolist(),
        reach.tolist(),
        plan.ahead,
        rows.of_stream is not None,
    )


def _search_partition(plan: RowPattern, first: _Search, found: _Matches) -> int:
    """Add the matches of a partition; the row from which on they are not known yet."""
    known, path, row = _Known(first.end), first.path, first.start
    while row < first.end:
        search = _Search(first.steps, path, first.failed, first.first, first.end, row)
        path.begin(row)
        try:
            labels = _attempt(plan, search)
        except UnknownError:
            break
        known.add(search)
        if labels is None:
            row += 1
            continue
        found.add(row, labels, known)
        require_few(plan, len(found.labels))
        path.number += 1
        row += next_start(plan, labels)
    return row


@dataclass
class _Known:
    """Up to where rows of a partition had to be known so far; see `Found`."""

    end: int
    code: int = -1
    by: int = BY_EVENT

    def add(self, search: _Search) -> None:
        """Note what a search had to know."""
        asked, start = search.path.asked, search.start
        code, by = 2 * asked, BY_EVENT
        if asked >= self.end:
            code, by = 2 * self.end - 1, BY_END
        elif search.cut and 2 * search.steps.reach[start] - 1 > code:
            code, by = 2 * search.steps.reach[start] - 1, start
        if by == BY_END or (code >= self.code and self.by != BY_END):
            self.code, self.by = code, by


@dataclass
class _Matches:
    """The matches so far; see `Found`."""

    first: list[int] = field(default_factory=list)
    length: list[int] = field(default_factory=list)
    labels: list[int] = field(default_factory=list)
    code: list[int] = field(default_factory=list)
    by: list[int] = field(default_factory=list)
    next: list[int] = field(default_factory=list)

    def add(self, row: int, labels: list[int], known: _Known) -> None:
        """Add a match."""
        self.first.append(row)
        self.length.append(len(labels))
        self.labels += labels
        self.code.append(known.code)
        self.by.append(known.by)

    def found(self) -> Found:
        """All of them."""
        first, length, code, by, following = (
            np.array(column, np.int64) for column in (self.first, self.length, self.code, self.by, self.next)
        )
        return Found(first, length, np.array(self.labels, np.int32), code, by, following)


def _attempt(plan: RowPattern, search: _Search) -> list[int] | None:
    """The labels of the match that begins at the start of a search; None if there is none."""
    for _ in range(plan.most_steps):
        if search.steps.kind[search.at] == DONE:
            if search.labels:
                search.path.need(search.start + len(search.labels) - 1 + plan.beyond)
            return search.labels
        if not search.goes_on() and not search.goes_back():
            return None
    raise steps_error(plan)


@dataclass
class _Search:
    """The search from one row.

    Attributes:
        steps: the program.
        path: the rows taken so far, for conditions.
        failed: instructions with rows that have failed for any start.
        first: the first row of the partition; -1 if it is not there.
        end: the row behind its last one.
        start: the row.
        at: the next instruction.
        labels: the labels of the rows taken so far.
        ways: the ways that are left: an instruction, how many rows were taken and how many choices made.
        made: the choices made, each with its row.
        cut: whether a row was too late.
    """

    steps: Steps
    path: Path
    failed: set[tuple[int, int]]
    first: int
    end: int
    start: int
    at: int = 0
    labels: list[int] = field(default_factory=list)
    ways: list[tuple[int, int, int]] = field(default_factory=list)
    made: list[tuple[int, int]] = field(default_factory=list)
    cut: bool = False

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
        elif row != (self.first if kind == AT_START else self.end):
            return False
        self.at = steps.follow[at]
        return True

    def _takes(self, label: int, row: int) -> bool:
        steps, variable = self.steps, label >> 1
        if steps.reach and row >= steps.reach[self.start]:
            self.cut |= steps.apart or row < self.end
            return False
        self.path.need(row + steps.ahead[variable])
        if row >= self.end or not steps.holds[row] >> variable & 1 or not self.path.take(variable, row):
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
