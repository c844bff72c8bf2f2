"""The search for matches where conditions read the match so far: each start by itself, with a limit.

It follows the same program as `spark_pace.row_patterns.engine.compiled`, row by row in Python. What has
failed is remembered only where no such condition can come any more.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spark_pace.core.columns import Ints
from spark_pace.errors import ConfigError
from spark_pace.row_patterns.engine.path import Path
from spark_pace.row_patterns.engine.plan import Plan
from spark_pace.row_patterns.engine.program import AT_END, AT_START, CHOOSE, DONE, TAKE, Program
from spark_pace.row_patterns.engine.rows import Rows
from spark_pace.row_patterns.engine.search import Found, next_start


@dataclass(frozen=True)
class Steps:
    """A program and what is known of each row, as lists of Python.

    Attributes:
        kind: see `Program`, as are the next three.
        follow: see `Program`.
        other: see `Program`.
        value: see `Program`.
        settled: of each instruction whether no condition that reads the match can follow it.
        holds: see `spark_pace.row_patterns.engine.compiled.Input`.
        reach: likewise.
    """

    kind: list[int]
    follow: list[int]
    other: list[int]
    value: list[int]
    settled: list[bool]
    holds: list[int]
    reach: list[int]


def search_paths(plan: Plan, program: Program, rows: Rows, holds: Ints, reach: Ints) -> Found:
    """The matches of all partitions.

    Raises:
        ConfigError: the search from one row takes more than `Plan.most_steps`, or ``SKIP TO`` leads nowhere.
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
            found = _attempt(plan, steps, path, failed, (begin, end, row))
            if found is None:
                row += 1
                continue
            first.append(row)
            length.append(len(found))
            labels += found
            path.number += 1
            row += next_start(plan, found)
    return Found(np.array(first, np.int64), np.array(length, np.int64), np.array(labels, np.int32))


def _settled(plan: Plan, program: Program) -> list[bool]:
    """Of each instruction whether no condition that reads the match can follow it."""
    reads = [bool(one.of_match) for one in plan.conditions]
    open_ = [kind == TAKE and reads[value >> 1] for kind, value in zip(*_lists(program), strict=True)]
    before: list[list[int]] = [[] for _ in open_]
    for at, kind in enumerate(program.kind.tolist()):
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


def _lists(program: Program) -> tuple[list[int], list[int]]:
    return program.kind.tolist(), program.value.tolist()


def _attempt(
    plan: Plan, steps: Steps, path: Path, failed: set[tuple[int, int]], where: tuple[int, int, int]
) -> list[int] | None:
    """The labels of the match that begins at a row; None if there is none."""
    begin, end, start = where
    limit = steps.reach[start] if steps.reach else end
    path.begin(begin, end)
    labels: list[int] = []
    ways: list[tuple[int, int, int]] = []  # instruction, rows taken, choices made
    made: list[tuple[int, int]] = []
    at = 0
    for _ in range(plan.most_steps):
        kind, row = steps.kind[at], start + len(labels)
        if kind == DONE:
            return labels
        fails = False
        if kind == TAKE:
            label = steps.value[at]
            if row < limit and steps.holds[row] >> (label >> 1) & 1 and path.take(label >> 1, row):
                labels.append(label)
                at = steps.follow[at]
            else:
                fails = True
        elif kind == CHOOSE:
            if steps.settled[at] and (at, row) in failed:
                fails = True
            else:
                made.append((at, row))
                ways.append((steps.other[at], len(labels), len(made)))
                at = steps.follow[at]
        else:
            fails = not ((kind == AT_START and row == begin) or (kind == AT_END and row == end))
            at = steps.follow[at]
        if fails:
            at, taken, kept = ways.pop() if ways else (-1, 0, 0)
            failed.update(pair for pair in made[kept:] if steps.settled[pair[0]])
            del made[kept:], labels[taken:]
            path.go_back(taken)
            if at < 0:
                return None
    must = f"the search for a match from one row must take at most {plan.most_steps:,} steps"
    do = "Bound the pattern or define its variables more narrowly, or allow more steps."
    raise ConfigError.of(plan.where, must, "more", do)
