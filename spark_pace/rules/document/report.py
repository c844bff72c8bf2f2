"""Collects the problems that a check finds, with their places in files."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from spark_pace.errors import Problem, one_line

_SHOWN_CHARACTERS = 80
_MOST_COMPARED = 200
MOST_PROBLEMS = 50  # more would not help anybody, and would cost time


@dataclass(frozen=True)
class Place:
    """A position in a file: line and column count from 1; `path` is like ``rules[0].within``."""

    file: str
    line: int = 0
    column: int = 0
    path: str = ""

    def __str__(self) -> str:
        """The place as ``file:line:column path``, without unknown parts."""
        position = f"{self.file}:{self.line}:{self.column}" if self.line else self.file
        return f"{position} {self.path}" if self.path else position


class TooManyError(Exception):
    """Ends a check that has found too many problems; the report says so."""


@dataclass
class Report:
    """Collects problems, so that a check can go on and report up to `most` of them."""

    most: int = MOST_PROBLEMS
    _found: list[tuple[Place, Problem]] = field(default_factory=list)
    _more: tuple[Problem, ...] = ()

    def add(self, place: Place, must: str, got: str, do: str) -> None:
        """Add a problem.

        Raises:
            TooManyError: there are `most` already.
        """
        if len(self._found) == self.most:
            must = f"must have at most {self.most} problems to be checked to its end"
            self._more = (Problem(one_line(place.file), must, "more", "Correct these first."),)
            raise TooManyError
        self._found.append(
            (place, Problem(one_line(str(place)), one_line(must), one_line(got), one_line(do)))
        )

    def add_all(self, place: Place, problems: Iterable[Problem]) -> None:
        """Add problems that say themselves where they are: at a place, or behind it."""
        for problem in problems:
            self.add(place, problem.must, problem.got, problem.do)
            self._found[-1] = (place, problem)

    @property
    def problems(self) -> tuple[Problem, ...]:
        """The problems, file by file and from top to bottom.

        If the check was ended early, the last problem says that there are more.
        """
        files = list(dict.fromkeys(place.file for place, _ in self._found))
        ordered = sorted(
            self._found, key=lambda entry: (files.index(entry[0].file), entry[0].line, entry[0].column)
        )
        return (*(problem for _, problem in ordered), *self._more)

    @property
    def count(self) -> int:
        """The number of problems so far."""
        return len(self._found)

    @property
    def clean(self) -> bool:
        """True if there are no problems."""
        return not self._found


def quote(text: str) -> str:
    """The text in double quotes, on one line, cut if it is long."""
    return f'"{one_line(text, _SHOWN_CHARACTERS)}"'


def meant_by(word: str, valid: Sequence[str]) -> str | None:
    """The valid word most similar to a misspelt one; None if none is similar, or there are too many."""
    if len(word) > _SHOWN_CHARACTERS or len(valid) > _MOST_COMPARED:
        return None  # a comparison costs the product of the lengths
    return next(iter(difflib.get_close_matches(word, valid, n=1, cutoff=0.6)), None)


def nearest(word: str, valid: Iterable[str]) -> str:
    """Advice for a wrong word: the most similar valid one, or all valid ones."""
    choices = list(valid)
    if (meant := meant_by(word, choices)) is not None:
        return f"Did you mean {quote(meant)}?"
    if not choices:
        return "Nothing can be named here."
    return f"Use one of: {', '.join(quote(choice) if ',' in choice else choice for choice in choices)}."
