"""Where ``MATCH_RECOGNIZE`` stands in a query, and what it is applied to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from spark_pace.rules.row_patterns.clause import Clause, read_clause
from spark_pace.rules.row_patterns.reader import Reader, closing
from spark_pace.rules.row_patterns.words import Query, Word, in_spark

_BEFORE_INPUT = ("FROM", "JOIN")
_MUST = "must follow a table, a view or a subquery in parentheses, behind FROM, JOIN or a comma"
_DO = "Write FROM name MATCH_RECOGNIZE (…)."


@dataclass(frozen=True)
class Occurrence:
    """One ``MATCH_RECOGNIZE`` with its input.

    Attributes:
        clause: the clause.
        start: the number of the first word of the input.
        behind_input: the number of the word behind the input.
        end: the number of the word behind the clause.
    """

    clause: Clause
    start: int
    behind_input: int
    end: int


def occurrences_in(query: Query) -> tuple[Occurrence, ...]:
    """All occurrences, the inner ones before those around them.

    Raises:
        ConfigError: a clause is not written as one, or there is nothing before it that it can be applied to.
    """
    found = []
    for at, word in enumerate(query.words):
        opens = at + 1 < len(query.words) and query.words[at + 1].is_sign("(")
        if word.upper == "MATCH_RECOGNIZE" and opens:
            end = closing(query, at + 1)
            start, behind = _input_before(query, at)
            found.append(Occurrence(read_clause(Reader(query, at + 2, end), word), start, behind, end + 1))
    return tuple(found)


def _input_before(query: Query, at: int) -> tuple[int, int]:
    """The numbers of the first word of an input, and of the word behind it; a name may follow."""
    words, behind = query.words, at
    listed = _alias_with_columns(query, at)
    if listed is None and at >= 2 and words[at - 1].is_name and not words[at - 2].is_sign("."):
        aliased = words[at - 2].upper == "AS"
        before = words[at - 2 - aliased] if at >= 2 + aliased else None
        behind = at - 1 - aliased if before is not None and _ends_input(before) else at
    start = _start_of_table(query, behind if listed is None else listed)
    opener = words[start - 1] if start > 0 else None
    if start == behind or opener is None or not (_opens(opener.upper) or opener.is_sign(",")):
        query.fail(words[at], _MUST, "MATCH_RECOGNIZE", _DO)
    return start, behind


def _alias_with_columns(query: Query, at: int) -> int | None:
    """The number of the first word of an alias such as ``AS t (id, x)`` before a word; None if there is none.

    It is a part of the input, for it names the columns.
    """
    words = query.words
    opening = _opening(query, at - 1) if at >= 1 and words[at - 1].is_sign(")") else 0
    listed = all(word.is_name or word.is_sign(",") for word in words[opening + 1 : at - 1])
    if opening < 3 or not listed or not words[opening - 1].is_name:
        return None
    begin = opening - 1 - (words[opening - 2].upper == "AS")
    return begin if _ends_table(query, begin - 1) else None


def _ends_table(query: Query, at: int) -> bool:
    """Tell whether a table, a function that gives one, or a subquery ends with a word; bare VALUES do not."""
    words = query.words
    if not words[at].is_sign(")"):
        return _ends_input(words[at])
    opening = _opening(query, at)
    called, inner = words[opening - 1] if opening else None, words[opening + 1]
    if called is not None and called.is_name and not _opens(called.upper):
        return called.upper != "VALUES"
    return inner.is_sign("(") or inner.upper in ("SELECT", "WITH", "VALUES", "TABLE", "FROM")


def _opening(query: Query, end: int) -> int:
    """The number of the parenthesis that a word closes; 0 if there is none."""
    words, depth = query.words, 0
    for at in range(end, -1, -1):
        depth += words[at].is_sign(")") - words[at].is_sign("(")
        if depth == 0:
            return at
    return 0


def _ends_input(word: Word) -> bool:
    """Tell whether a table, or a subquery, may end with a word."""
    return word.is_sign(")") or (word.is_name and not _opens(word.upper))


def _opens(upper: str) -> bool:
    return upper in _BEFORE_INPUT


def _start_of_table(query: Query, behind: int) -> int:
    """The number of the first word of ``a.b.c``, ``f(…)`` or ``(SELECT …)``; `behind` if there is none."""
    words, at = query.words, behind - 1
    if at < 0:
        return behind
    if words[at].is_sign(")"):
        at = _opening(query, at)
        if at <= 0 or not words[at - 1].is_name or _opens(words[at - 1].upper):
            return at
        at -= 1
    if not words[at].is_name:
        return behind
    while at >= 2 and words[at - 1].is_sign(".") and words[at - 2].is_name:
        at -= 2
    return at


@dataclass(frozen=True)
class Rewriting:
    """A query of which occurrences are replaced by the names of views, from the first one on.

    Attributes:
        query: the query.
        occurrences: see `occurrences_in`.
    """

    query: Query
    occurrences: tuple[Occurrence, ...]

    def input_of(self, number: int, views: Sequence[str]) -> str:
        """Spark's query for the input of an occurrence; `views` replace the occurrences before it.

        What ``WITH`` at the beginning of the query names before the occurrence can be used in it.
        """
        one = self.occurrences[number]
        table = self._text(one.start, one.behind_input, views)
        return f"{self._named_before(one.start, views)}SELECT * FROM {table}"

    def outer(self, views: Sequence[str]) -> str:
        """Spark's query for the whole, where `views` replace all occurrences."""
        end = len(self.query.words)
        while end and self.query.words[end - 1].is_sign(";"):
            end -= 1
        return self._text(0, end, views)

    def _text(self, start: int, end: int, views: Sequence[str]) -> str:
        """The words of a part of the query as Spark's, with views in place of occurrences."""
        inside = [
            (one, view)
            for one, view in zip(self.occurrences, views, strict=False)
            if start <= one.start and one.end <= end
        ]
        parts, at = [], start
        for one, view in sorted(inside, key=lambda pair: (pair[0].start, -pair[0].end)):
            if one.start >= at:  # else it is part of the input of one that is replaced
                parts += [self._written(at, one.start), f" {view} "]
                at = one.end
        return "".join([*parts, self._written(at, end)])

    def _written(self, start: int, end: int) -> str:
        """Neighbouring words as Spark writes them, with the white space behind them."""
        words = self.query.words
        if start >= end:
            return ""
        behind = words[end].start if end < len(words) else words[end - 1].end
        return in_spark(self.query, words[start].start, behind)

    def _named_before(self, at: int, views: Sequence[str]) -> str:
        """``WITH`` and the queries that it names, as far as they end before a word; else nothing."""
        words = self.query.words
        if not words or words[0].upper != "WITH":
            return ""
        begin = 1 + (len(words) > 1 and words[1].upper == "RECURSIVE")
        reader, end = Reader(self.query, begin, len(words)), 0
        while not reader.is_done:
            reader.until("(")
            while not reader.is_done and reader.word.is_sign("("):
                reader.inside()
                reader.takes("AS")
            if reader.at > at:
                break
            end = reader.at
            if not reader.takes_sign(","):
                break
        return self._text(0, end, views) + " " if end else ""


def replaced(rewriting: Rewriting, view: Callable[[int, str], str]) -> str:
    """Spark's query for the whole; `view` makes a view of an occurrence and of the query for its input."""
    views: list[str] = []
    for number in range(len(rewriting.occurrences)):
        views.append(view(number, rewriting.input_of(number, views)))
    return rewriting.outer(views)
