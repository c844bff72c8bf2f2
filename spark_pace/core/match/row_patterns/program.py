"""A pattern as a program: instructions that a search follows from row to row, the preferred way first.

An iteration that takes no row ends its repetition, once the lower bound is reached; before that it counts as
any other. A search cannot see in an instruction and a row whether an iteration has taken rows. So parts of a
repetition whose body may be empty are there twice: entered before the iteration has taken a row, and after.

Sources: ISO/IEC 19075-5, Row pattern recognition in SQL, 7.2 (the order of preference; 7.2.8, empty matches).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from spark_pace.core.plan.row_pattern import (
    Alternatives,
    Empty,
    End,
    Excluded,
    Node,
    Repetition,
    RowPattern,
    Sequence,
    Start,
    Variable,
)
from spark_pace.core.tables import Ints

TAKE, CHOOSE, AT_START, AT_END, DONE = range(5)
MOST_INSTRUCTIONS = 50_000


class Program(NamedTuple):
    """The instructions; a search begins at the first one.

    Attributes:
        kind: int64[p], `TAKE` a row for a variable, `CHOOSE` between two ways, `AT_START` or `AT_END` of the
            partition, or `DONE`.
        follow: int64[p], the instruction that follows; of `CHOOSE` the preferred one.
        other: int64[p], of `CHOOSE` the other one.
        value: int64[p], of `TAKE` the label of the row, of `CHOOSE` its number among those of its kind.
    """

    kind: Ints
    follow: Ints
    other: Ints
    value: Ints


class TooLargeError(Exception):
    """The pattern needs more than `MOST_INSTRUCTIONS`."""


def label_of(variable: int, excluded: bool) -> int:
    """The label of a row: its variable, and whether it is excluded from the result."""
    return 2 * variable + excluded


def may_be_empty(node: Node) -> bool:
    """Tell whether a part can match without a row."""
    if isinstance(node, Sequence):
        return all(map(may_be_empty, node.parts))
    if isinstance(node, Alternatives):
        return any(map(may_be_empty, node.choices))
    if isinstance(node, Repetition):
        return node.least == 0 or may_be_empty(node.part)
    return may_be_empty(node.part) if isinstance(node, Excluded) else not isinstance(node, Variable)


def program_of(pattern: Node) -> Program:
    """The program of a pattern.

    Raises:
        TooLargeError: it has too many instructions.
    """
    builder = _Builder([], {})
    done = builder.add(DONE, 0, 0, 0)
    return _arranged(builder.rows, builder.entry(pattern, (done, done), False))


@dataclass
class _Builder:
    """Collects instructions from the end of the pattern to its beginning.

    A pair of instructions says what follows a part: the first one if no row has been taken since the
    innermost iteration around it began, the second one if some have.
    """

    rows: list[list[int]]
    known: dict[tuple[int, tuple[int, int], bool], int]

    def add(self, kind: int, follow: int, other: int, value: int) -> int:
        """A new instruction."""
        if len(self.rows) == MOST_INSTRUCTIONS:
            raise TooLargeError
        self.rows.append([kind, follow, other, value])
        return len(self.rows) - 1

    def entry(self, node: Node, then: tuple[int, int], excluded: bool) -> int:
        """Where a part is entered by an iteration that has taken no row yet; made once for each `then`."""
        if not may_be_empty(node):
            then = (then[1], then[1])
        key = (id(node), then, excluded)
        if key not in self.known:
            self.known[key] = self._made(node, then, excluded)
        return self.known[key]

    def _made(self, node: Node, then: tuple[int, int], excluded: bool) -> int:
        if isinstance(node, Variable):
            return self.add(TAKE, then[1], 0, label_of(node.number, excluded))
        if isinstance(node, Start | End):
            return self.add(AT_START if isinstance(node, Start) else AT_END, then[0], 0, 0)
        if isinstance(node, Excluded):
            return self.entry(node.part, then, True)
        if isinstance(node, Sequence):
            for part in reversed(node.parts):
                then = (self.entry(part, then, excluded), self._taken(part, then, excluded))
            return then[0]
        if isinstance(node, Alternatives):
            ways = [self.entry(choice, then, excluded) for choice in node.choices]
            way = ways.pop()
            while ways:
                way = self.add(CHOOSE, ways.pop(), way, 0)
            return way
        if isinstance(node, Repetition):
            return self._repeated(node, then, excluded)
        assert isinstance(node, Empty)
        return then[0]

    def _taken(self, node: Node, then: tuple[int, int], excluded: bool) -> int:
        """Where a part is entered by an iteration that has taken rows."""
        return self.entry(node, (then[1], then[1]), excluded)

    def _repeated(self, node: Repetition, then: tuple[int, int], excluded: bool) -> int:
        """The iterations beyond the lower bound, then those up to it, each from the last one on."""
        after = self._optional(node, then, excluded)
        left = then  # an iteration that takes no row and reaches the lower bound ends the repetition
        for _ in range(node.least):
            after = tuple(self.entry(node.part, (way, after[1]), excluded) for way in left)  # type: ignore[assignment]
            left = after
        return after[0]

    def _optional(self, node: Repetition, then: tuple[int, int], excluded: bool) -> tuple[int, int]:
        """The choices to iterate or to go on, where `then` follows; a pair like it."""
        if node.most is None:
            again = self._choice(node, then[1])
            self._set_body(again, node, then[1], again, excluded)
            if then[0] == then[1]:
                return again, again
            first = self._choice(node, then[0])
            self._set_body(first, node, then[0], again, excluded)
            return first, again
        empty, taken = then
        for _ in range(node.most - node.least):
            left = taken
            taken = self._choice(node, then[1])
            self._set_body(taken, node, then[1], left, excluded)
            if then[0] != then[1]:
                empty = self._choice(node, then[0])
                self._set_body(empty, node, then[0], left, excluded)
            else:
                empty = taken
        return empty, taken

    def _choice(self, node: Repetition, leave: int) -> int:
        """A choice of which the body of the repetition is not made yet."""
        return self.add(CHOOSE, 0, leave, 0) if node.greedy else self.add(CHOOSE, leave, 0, 0)

    def _set_body(self, choice: int, node: Repetition, leave: int, after: int, excluded: bool) -> None:
        """Let a choice lead into the body: an empty iteration leaves, after any other one comes `after`."""
        self.rows[choice][1 if node.greedy else 2] = self.entry(node.part, (leave, after), excluded)


def _arranged(rows: list[list[int]], entry: int) -> Program:
    """The instructions that can be reached, the first one first; choices are numbered."""
    order, places = [entry], {entry: 0}
    for at in order:
        kind, follow, other, _ = rows[at]
        for way in {DONE: (), CHOOSE: (follow, other)}.get(kind, (follow,)):
            if way not in places:
                places[way] = len(order)
                order.append(way)
    program = Program(*(np.zeros(len(order), np.int64) for _ in range(4)))
    choices = 0
    for place, at in enumerate(order):
        kind, follow, other, value = rows[at]
        program.kind[place], program.value[place] = kind, choices if kind == CHOOSE else value
        if kind != DONE:
            program.follow[place] = places[follow]
        if kind == CHOOSE:
            program.other[place] = places[other]
            choices += 1
    return program


def settled(plan: RowPattern, program: Program) -> list[bool]:
    """Of each instruction whether it fails at a row for every start, or for none.

    So it is if no condition that reads the match can follow it, and no window ends.
    """
    if plan.within_us is not None:
        return [False] * len(program.kind)
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
