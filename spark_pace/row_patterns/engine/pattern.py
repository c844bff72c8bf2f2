"""What a pattern is: a tree of variables, sequences, alternatives and repetitions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True)
class Variable:
    """One row, for a variable."""

    number: int


@dataclass(frozen=True)
class Empty:
    """No row."""


@dataclass(frozen=True)
class Start:
    """No row, before the first row of the partition: ``^``."""


@dataclass(frozen=True)
class End:
    """No row, behind the last row of the partition: ``$``."""


@dataclass(frozen=True)
class Sequence:
    """One part after the other."""

    parts: tuple[Node, ...]


@dataclass(frozen=True)
class Alternatives:
    """One of several, the first one that leads to a match."""

    choices: tuple[Node, ...]


@dataclass(frozen=True)
class Repetition:
    """A part again and again: `most` times (None: without a limit), but no fewer times than `least`."""

    part: Node
    least: int
    most: int | None
    greedy: bool


@dataclass(frozen=True)
class Excluded:
    """A part whose rows do not come into the result: ``{- -}``."""

    part: Node


Node: TypeAlias = Variable | Empty | Start | End | Sequence | Alternatives | Repetition | Excluded
