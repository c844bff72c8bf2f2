"""Functions that only Spark has, in conditions and inside navigations: Spark computes them before."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from spark_pace.rules.expressions.functions import FUNCTIONS
from spark_pace.rules.row_patterns.clause import Clause, read_clause
from spark_pace.rules.row_patterns.navigation import begins_call
from spark_pace.rules.row_patterns.reader import Reader, closing
from spark_pace.rules.row_patterns.words import Query, Word, as_spark

# words that stand before a parenthesis and call nothing, though Spark knows some of them as functions
_OPERATORS = {
    *("AND", "OR", "NOT", "IN", "LIKE", "ILIKE", "RLIKE", "REGEXP", "BETWEEN", "IS", "DIV"),
    *("CASE", "WHEN", "THEN", "ELSE", "CAST", "EXTRACT", "INTERVAL", "DISTINCT", "OVER"),
}


@dataclass(frozen=True)
class Beforehand:
    """A clause over an input with further columns.

    Attributes:
        query: the query of its words, in which columns stand for calls.
        clause: the clause.
        columns: what Spark computes of each row of the input, by the names of the further columns.
    """

    query: Query
    clause: Clause
    columns: dict[str, str]


def beforehand(
    query: Query, clause: Clause, names: Sequence[str], is_sparks: Callable[[str, str], bool]
) -> Beforehand:
    """The clause with columns in place of what Spark computes before.

    Args:
        query: the query.
        clause: one of its clauses.
        names: the columns of the input.
        is_sparks: tells of a function and of a call of it, as Spark writes it, whether Spark can compute it
            of one row.
    """
    columns: dict[str, str] = {}
    words, behind = list[Word](), 0
    for at in sorted({*_places(clause)}):
        end = closing(query, at + 1) + 1 if at >= behind else 0
        prefix, sql = _call(query, clause, (at, end), names) if end else (None, "")
        if not sql or not is_sparks(query.words[at].text, sql):
            continue
        name = sql if sql not in names else f"{sql} of Spark"
        columns[name] = sql
        first, last = query.words[at], query.words[end - 1]
        words += query.words[behind:at]
        words += [] if prefix is None else query.words[prefix : prefix + 2]
        words.append(Word("name", name, first.start, last.end))
        behind = end
    if not columns:
        return Beforehand(query, clause, {})
    whole = replace(query, words=(*words, *query.words[behind:]))
    opening = next(at for at, word in enumerate(whole.words) if word is clause.opening) + 1
    inside = Reader(whole, opening + 1, closing(whole, opening))
    return Beforehand(whole, read_clause(inside, clause.opening), columns)


def _places(clause: Clause) -> Iterator[int]:
    """The numbers of words that begin calls which only Spark may know, and cannot compute behind."""
    for one in clause.definitions:
        yield from _calls(one.text, one.text.at, one.text.end)
    for measure in clause.measures:
        text = measure.text
        for at in range(text.at, text.end):
            if begins_call(text, at):
                yield from _calls(text, at + 2, closing(text.query, at + 1))


def _calls(text: Reader, begin: int, end: int) -> Iterator[int]:
    words = text.query.words
    for at in range(begin, end - 1):
        is_type = at > begin and words[at - 1].upper == "AS"  # as in CAST(x AS CHAR(3))
        called = words[at].kind == "word" and words[at + 1].is_sign("(") and not words[at - 1].is_sign(".")
        known = words[at].upper in _OPERATORS or words[at].text.lower() in FUNCTIONS
        if called and not is_type and not known and not begins_call(text, at):
            yield at


def _call(
    query: Query, clause: Clause, place: tuple[int, int], names: Sequence[str]
) -> tuple[int | None, str]:
    """The number of a word that names the variable whose rows a call reads, and the call as Spark writes it.

    There is no text if it reads rows of several variables, or what it reads must be found in the match.
    """
    words, variables = query.words, {word.folded for word in clause.variables}
    variables |= {name.folded for name, _ in clause.subsets}
    columns, sql = {name.lower() for name in names}, ""
    prefixes: dict[str | None, int | None] = {}
    at, end = place
    inside = Reader(query, at + 1, end)
    while at < end:
        word = words[at]
        if at > place[0] and begins_call(inside, at):
            return None, ""
        if word.is_name and words[at + 1].is_sign(".") and word.folded in variables:
            prefixes[word.folded] = at
            at += 2
            word = words[at]
        elif word.is_name and not words[at + 1].is_sign("(") and word.text.lower() in columns:
            prefixes[None] = None
        sql += f"{' ' * (bool(sql) and words[at - 1].end < word.start)}{as_spark(query, word)}"
        at += 1
    (prefix, *more) = prefixes.values() or [None]
    return (None, "") if more else (prefix, sql)
