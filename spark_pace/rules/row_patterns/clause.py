"""The parts of a ``MATCH_RECOGNIZE`` clause, as they are written, and what stands in its ``PATTERN``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import permutations

from spark_pace.core.plan.row_pattern import (
    Alternatives,
    Empty,
    End,
    Excluded,
    Node,
    Repetition,
    RowMode,
    Sequence,
    SkipMode,
    Start,
    Variable,
)
from spark_pace.rules.row_patterns.words import Reader, Word

_CLAUSES: tuple[tuple[str, ...], ...] = (
    ("PARTITION", "BY"),
    ("ORDER", "BY"),
    ("MEASURES",),
    ("ONE", "ROW", "PER", "MATCH"),
    ("ALL", "ROWS", "PER", "MATCH"),
    ("AFTER", "MATCH", "SKIP"),
    ("PATTERN",),
    ("WITHIN",),
    ("SUBSET",),
    ("DEFINE",),
)
_NO_VALUES = ("AND", "OR", "NOT", "IS", "IN", "LIKE", "BETWEEN", "ELSE", "THEN", "WHEN", "CASE", "DISTINCT")
_ORDER = "The parts stand in this order: " + ", ".join(" ".join(one) for one in _CLAUSES) + "."
MOST_PERMUTED = 6
MOST_TIMES = 10_000
MOST_VARIABLES = 63
MOST_NESTED = 50
_BOUNDS = "Write {n}, {n,}, {,m}, {n,m} or {,} with whole numbers, m at least 1 and at least n."


@dataclass(frozen=True)
class Key:
    """A column of ``ORDER BY``; None where nothing is said of nulls."""

    name: Word
    descending: bool
    nulls_first: bool | None


@dataclass(frozen=True)
class Named:
    """An expression with its name: a measure, or the condition of a variable.

    Attributes:
        name: its name.
        text: stands before its first word; a copy of it is read.
    """

    name: Word
    text: Reader


@dataclass(frozen=True)
class Clause:
    """A clause; names are not checked against each other, nor against columns."""

    opening: Word
    partition: tuple[Word, ...]
    order: tuple[Key, ...]
    measures: tuple[Named, ...]
    rows: RowMode
    rows_word: Word
    skip: SkipMode
    skip_to: Word | None
    pattern: Node
    variables: tuple[Word, ...]
    excludes: bool
    within: Reader | None
    subsets: tuple[tuple[Word, tuple[Word, ...]], ...]
    definitions: tuple[Named, ...]


def read_clause(reader: Reader, opening: Word) -> Clause:
    """The clause whose words, without the parentheses around it, a reader has.

    Raises:
        ConfigError: it is not written as a clause is.
    """
    column = partial(_name_alone, of="a column")
    partition = tuple(reader.listed(column)) if reader.takes("PARTITION", "BY") else ()
    order = tuple(read_keys(reader, column)) if reader.takes("ORDER", "BY") else ()
    measures = tuple(reader.listed(_measure)) if reader.takes("MEASURES") else ()
    rows_word, rows = reader.word, _rows(reader)
    skip, skip_to = _skip(reader)
    if not reader.takes("PATTERN"):
        reader.fail("must be PATTERN, or a part of MATCH_RECOGNIZE that stands before it", _ORDER)
    parser = _Parser(reader.inside())
    pattern = parser.whole()
    within = reader.until(clauses=_CLAUSES) if reader.takes("WITHIN") else None
    subsets = tuple(reader.listed(_subset)) if reader.takes("SUBSET") else ()
    definitions = tuple(reader.listed(_definition)) if reader.takes("DEFINE") else ()
    if not reader.is_done:
        reader.fail("must be the end of MATCH_RECOGNIZE, or a part of it that stands here", _ORDER)
    return Clause(
        opening, partition, order, measures, rows, rows_word, skip, skip_to,
        pattern, tuple(parser.variables.values()), parser.excludes, within, subsets, definitions,
    )  # fmt: skip


def _name_alone(reader: Reader, of: str) -> Word:
    name = reader.name(of)
    if not reader.is_done and (reader.word.is_sign("(") or reader.word.is_sign(".")):
        do = "Name it alone; what must be computed is computed in a subquery."
        reader.fail(f"must be nothing but the name of {of}", do)
    return name


def read_keys(reader: Reader, column: Callable[[Reader], Word]) -> list[Key]:
    """The columns of ``ORDER BY``, whose words are read, each by `column`."""

    def key(reader: Reader) -> Key:
        name, descending = column(reader), reader.takes("DESC")
        if not descending:
            reader.takes("ASC")
        first = reader.takes("NULLS", "FIRST")
        return Key(name, descending, False if not first and reader.takes("NULLS", "LAST") else first or None)

    return reader.listed(key)


def _measure(reader: Reader) -> Named:
    text = reader.until("AS", ",", clauses=_CLAUSES)
    if reader.takes("AS"):
        return Named(reader.name("a measure"), text)
    if not _ends_with_a_name(text):
        reader.fail("must be AS and the name of the measure", "Write for example LAST(A.x) AS last_x.")
    return Named(text.query.words[text.end - 1], Reader(text.query, text.at, text.end - 1))


def _ends_with_a_name(text: Reader) -> bool:
    """Tell whether the name of a measure stands behind its expression without AS: ``LAST(x) last_x``."""
    if text.end - text.at < 2:
        return False
    before, name = text.query.words[text.end - 2 : text.end]
    ends = before.is_sign(")") or (before.kind != "sign" and before.upper not in _NO_VALUES)
    return ends and name.is_name and name.upper not in ("NULL", "END", "TRUE", "FALSE")


def _rows(reader: Reader) -> RowMode:
    if reader.takes("ONE", "ROW", "PER", "MATCH"):
        return "one"
    if not reader.takes("ALL", "ROWS", "PER", "MATCH"):
        return "one"
    if reader.takes("OMIT", "EMPTY", "MATCHES"):
        return "omit"
    if reader.takes("WITH", "UNMATCHED", "ROWS"):
        return "unmatched"
    reader.takes("SHOW", "EMPTY", "MATCHES")
    return "show"


def _skip(reader: Reader) -> tuple[SkipMode, Word | None]:
    if not reader.takes("AFTER", "MATCH"):
        return "past last row", None
    reader.need("SKIP")
    if reader.takes("PAST"):
        reader.need("LAST", "ROW")
        return "past last row", None
    reader.need("TO")
    if reader.takes("NEXT", "ROW"):
        return "to next row", None
    named = len([word for word in reader.query.words[reader.at : reader.at + 2] if word.is_name]) == 2
    follows = any(Reader(reader.query, reader.at + 1, reader.end).is_next(*one) for one in _CLAUSES)
    if named and not follows and reader.takes("FIRST"):
        return "to first", reader.name("a variable")
    if named and not follows:
        reader.takes("LAST")
    return "to last", reader.name("a variable")


def _subset(reader: Reader) -> tuple[Word, tuple[Word, ...]]:
    name = reader.name("a union of variables")
    reader.need_sign("=", "behind the name of a union")
    inner = reader.inside()
    members = inner.listed(partial(_name_alone, of="a variable"))
    if not inner.is_done:
        inner.fail("must be a comma, or the end of the list", "Write for example SUBSET U = (A, B).")
    return name, tuple(members)


def _definition(reader: Reader) -> Named:
    name = reader.name("a variable")
    reader.need("AS")
    return Named(name, reader.until(","))


class _Parser:
    """A parser by recursive descent."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._depth = 0
        self._excluded = False
        self.variables: dict[str, Word] = {}
        self.excludes = False

    def whole(self) -> Node:
        """The pattern whose words the reader has.

        Raises:
            ConfigError: it is not written as a pattern is, or larger than can be taken.
        """
        node = Empty() if self._reader.is_done else self.alternatives()
        if not self._reader.is_done:
            self._reader.fail("must be a part of a pattern", "Close every parenthesis, and open it before.")
        return node

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
