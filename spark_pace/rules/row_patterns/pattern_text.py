"""Reads what stands in the parentheses of ``PATTERN``."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations

from spark_pace.core.plan.row_pattern import (
    Alternatives,
    Empty,
    End,
    Excluded,
    Node,
    Repetition,
    Sequence,
    Start,
    Variable,
)
from spark_pace.rules.row_patterns.reader import Reader
from spark_pace.rules.row_patterns.words import Word

MOST_PERMUTED = 6
MOST_TIMES = 10_000
MOST_VARIABLES = 63
MOST_NESTED = 50
_BOUNDS = "Write {n}, {n,}, {,m}, {n,m} or {,} with whole numbers, m at least 1 and at least n."


@dataclass(frozen=True)
class Pattern:
    """A pattern.

    Attributes:
        node: the pattern.
        variables: the names of its variables, by their numbers.
        excludes: whether it has ``{- -}``.
    """

    node: Node
    variables: tuple[Word, ...]
    excludes: bool


def read_pattern(reader: Reader) -> Pattern:
    """The pattern whose words a reader has.

    Raises:
        ConfigError: it is not written as a pattern is, or larger than can be taken.
    """
    parser = _Parser(reader)
    node: Node = Empty() if reader.is_done else parser.alternatives()
    if not reader.is_done:
        reader.fail("must be a part of a pattern", "Close every parenthesis, and open it before.")
    return Pattern(node, tuple(parser.variables.values()), parser.excludes)


class _Parser:
    """A parser by recursive descent."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._depth = 0
        self._excluded = False
        self.variables: dict[str, Word] = {}
        self.excludes = False

    def alternatives(self) -> Node:
        """``A B | C``."""
        self._depth += 1
        if self._depth > MOST_NESTED:
            self._reader.fail(f"must nest at most {MOST_NESTED} groups", "Write a simpler pattern.")
        choices = [self._sequence()]
        while self._reader.takes_sign("|"):
            choices.append(self._sequence())
        self._depth -= 1
        return choices[0] if len(choices) == 1 else Alternatives(tuple(choices))

    def _sequence(self) -> Node:
        parts: list[Node] = []
        while not self._reader.is_done and not self._ends():
            parts.append(self._quantified(self._part()))
        if not parts:
            self._reader.fail("must be a part of a pattern", "Write a variable, a group, or () for no row.")
        return parts[0] if len(parts) == 1 else Sequence(tuple(parts))

    def _ends(self) -> bool:
        return any(self._reader.word.is_sign(sign) for sign in "|),-")

    def _part(self) -> Node:
        reader = self._reader
        if reader.takes_sign("^"):
            return Start()
        if reader.takes_sign("$"):
            return End()
        if reader.takes_sign("("):
            if reader.takes_sign(")"):
                return Empty()
            inner = self.alternatives()
            reader.need_sign(")", "behind a group")
            return inner
        if reader.takes_sign("{"):
            return self._exclusion()
        word = reader.word
        name = reader.name("a variable")
        if name.upper == "PERMUTE" and reader.takes_sign("("):
            return self._permutations(word)
        if name.folded not in self.variables and len(self.variables) == MOST_VARIABLES:
            do = "Use one variable for several parts, or split the pattern."
            reader.query.fail(name, f"must name at most {MOST_VARIABLES} variables", "one more", do)
        self.variables.setdefault(name.folded, name)
        return Variable(list(self.variables).index(name.folded))

    def _exclusion(self) -> Node:
        reader = self._reader
        if self._excluded:
            reader.fail("must be no exclusion inside another", "Remove the inner {- and -}.")
        reader.need_sign("-", "behind { where no quantifier may stand")
        self.excludes = self._excluded = True
        inner = self.alternatives()
        self._excluded = False
        reader.need_sign("-", "at the end of an exclusion")
        reader.need_sign("}", "at the end of an exclusion")
        return Excluded(inner)

    def _permutations(self, word: Word) -> Node:
        parts = [self.alternatives()]
        while self._reader.takes_sign(","):
            parts.append(self.alternatives())
        self._reader.need_sign(")", "behind PERMUTE")
        if len(parts) > MOST_PERMUTED:
            must, do = f"must permute at most {MOST_PERMUTED} parts", "Permute groups of them."
            self._reader.query.fail(word, must, str(len(parts)), do)
        return Alternatives(tuple(Sequence(order) for order in permutations(parts)))

    def _quantified(self, part: Node) -> Node:
        bounds = self._bounds()
        if bounds is None:
            return part
        least, most = bounds
        greedy = not self._reader.takes_sign("?")
        if self._bounds_follow():
            do = "Put the part with its quantifier into parentheses."
            self._reader.fail("must have one quantifier", do)
        return Repetition(part, least, most, greedy)

    def _bounds_follow(self) -> bool:
        reader = self._reader
        if reader.is_done:
            return False
        follows = reader.query.words[reader.at + 1] if reader.at + 1 < reader.end else None
        braces = reader.word.is_sign("{") and follows is not None and not follows.is_sign("-")
        return braces or any(reader.word.is_sign(sign) for sign in "*+?")

    def _bounds(self) -> tuple[int, int | None] | None:
        reader = self._reader
        for sign, bounds in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if reader.takes_sign(sign):
                return bounds
        if not self._bounds_follow():
            return None
        opening = reader.word
        reader.takes_sign("{")
        least = most = reader.number()
        ranged = reader.takes_sign(",")
        if ranged:
            most = reader.number()
        if (least is None and not ranged) or not reader.takes_sign("}"):
            reader.fail("must be the bounds of a repetition", _BOUNDS)
        if (most is not None and most < max(1, least or 0)) or max(least or 0, most or 0) > MOST_TIMES:
            do = f"{_BOUNDS} They are at most {MOST_TIMES:,}."
            reader.query.fail(opening, "must be the bounds of a repetition", f"{least} and {most}", do)
        return least or 0, most
