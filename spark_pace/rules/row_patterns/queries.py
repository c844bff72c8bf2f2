"""Where ``MATCH_RECOGNIZE`` stands in a query, what it is applied to, and queries that need no Spark.

Such a query selects columns of one ``MATCH_RECOGNIZE`` over a table, perhaps sorted and cut.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from spark_pace.core.match.row_patterns.result import result_of
from spark_pace.core.match.row_patterns.rows import sorted_table
from spark_pace.rules.document import quote
from spark_pace.rules.row_patterns.clause import Clause, Key, read_clause, read_keys
from spark_pace.rules.row_patterns.expressions import Names
from spark_pace.rules.row_patterns.meaning import order_key, plan_of
from spark_pace.rules.row_patterns.words import Query, Reader, Word, closing, in_spark

_BEHIND_INPUT = ("ON", "USING", "WHERE")
_MUST = "must follow a table, a view or a subquery in parentheses, behind FROM, JOIN or a comma"
_DO = "Write FROM name MATCH_RECOGNIZE (…)."
_FORM = "must be of the form SELECT columns FROM table MATCH_RECOGNIZE (…) [ORDER BY columns] [LIMIT n]"
_ELSE = "Other queries need Spark: spark_pace.sql(spark, query)."


@dataclass(frozen=True)
class Occurrence:
    """One ``MATCH_RECOGNIZE`` with its input.

    Attributes:
        clause: the clause.
        start: the number of the first word of the input.
        at: the number of the first word of the clause.
        end: the number of the word behind the clause.
    """

    clause: Clause
    start: int
    at: int
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
            clause = read_clause(Reader(query, at + 2, end), word)
            found.append(Occurrence(clause, _input_before(query, at), at, end + 1))
    return tuple(found)


def _input_before(query: Query, at: int) -> int:
    """The number of the first word of the input of a clause: a table, with its alias if it has one."""
    words, start, depth, ends = query.words, at, 0, False
    while start and depth >= 0 and (depth or not _opens(words[start - 1])):
        start -= 1
        depth += words[start].is_sign(")") - words[start].is_sign("(")
        ends |= not depth and words[start].upper in _BEHIND_INPUT
    if not 0 < start < at or depth or ends:
        query.fail(words[at], _MUST, "MATCH_RECOGNIZE", _DO)
    return start


def _opens(word: Word) -> bool:
    return word.upper in ("FROM", "JOIN") or word.is_sign(",")


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
        table = self._text(one.start, one.at, views)
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


@dataclass(frozen=True)
class FileQuery:
    """A query over one table.

    Attributes:
        query: its words.
        one: its only ``MATCH_RECOGNIZE``.
        columns: the columns that are selected, each with its name in the result; empty for all.
        order: how the result is sorted.
        limit: how many rows there are at most; None: all.
    """

    query: Query
    one: Occurrence
    columns: tuple[tuple[Word, Word], ...]
    order: tuple[Key, ...]
    limit: int | None

    @property
    def table(self) -> str:
        """The name of the table."""
        return self.query.words[self.one.start].text

    def answer(self, table: pa.Table, most_steps: int) -> pa.Table:
        """The rows of the result.

        Raises:
            ConfigError: the clause does not fit the table, or a match cannot be found.
        """
        plan = plan_of(self.query, self.one.clause, table.schema, most_steps)
        found = result_of(plan, sorted_table(table, plan.partition, plan.order))
        names = Names(found.schema, {})
        found = sorted_table(found, (), [order_key(self.query, names, key) for key in self.order])
        if self.limit is not None:
            found = found.slice(0, self.limit)
        if not self.columns:
            return found
        chosen = [self.query.checked(word, names.column(word.text)) for word, _ in self.columns]
        return pa.table([found.column(one) for one in chosen], [name.text for _, name in self.columns])


def file_query(query: Query) -> FileQuery:
    """Read a query that needs no Spark.

    Raises:
        ConfigError: it is another one.
    """
    found = occurrences_in(query)
    if len(found) != 1:
        query.fail(0, _FORM, f"{len(found)} MATCH_RECOGNIZE", _ELSE)
    (one,), end = found, len(query.words)
    while query.words[end - 1].is_sign(";"):
        end -= 1
    reader, behind = Reader(query, 0, end), Reader(query, one.end, end)
    alias = _alias(behind)
    column = partial(_column, alias)
    if not reader.takes("SELECT"):
        _refuse(reader)
    columns = _columns(reader, alias)
    if not reader.takes("FROM") or reader.at != one.start:
        _refuse(reader)
    table = query.words[one.start : one.at]
    if not all(word.is_name for word in table) or len(table) - ("AS" in [word.upper for word in table]) > 2:
        _refuse(reader)
    reader = behind
    order = tuple(read_keys(reader, column)) if reader.takes("ORDER", "BY") else ()
    limit = reader.number() if reader.takes("LIMIT") else None
    if not reader.is_done or (limit is None and query.words[reader.at - 1].upper == "LIMIT"):
        _refuse(reader)
    return FileQuery(query, one, columns, order, limit)


def _refuse(reader: Reader) -> None:
    got = "the end" if reader.is_done else quote(reader.word.text)
    reader.query.fail(reader.query.words[min(reader.at, len(reader.query.words) - 1)], _FORM, got, _ELSE)


def _columns(reader: Reader, alias: str) -> tuple[tuple[Word, Word], ...]:
    def named(reader: Reader) -> tuple[Word, Word]:
        name = _column(alias, reader)
        return name, reader.name("a column") if reader.takes("AS") else name

    if [word.text.lower() for word in reader.query.words[reader.at : reader.at + 3]] == [alias, ".", "*"]:
        reader.at += 2
    return () if reader.takes_sign("*") else tuple(reader.listed(named))


def _column(alias: str, reader: Reader) -> Word:
    """Read a column, before which the name of the result may stand."""
    if reader.word.text.lower() == alias and reader.at + 2 < reader.end:
        reader.at += 2 * reader.query.words[reader.at + 1].is_sign(".")
    return reader.name("a column")


def _alias(reader: Reader) -> str:
    """Read the name of the result; it is empty where there is none."""
    named = reader.takes("AS") or not (reader.is_done or reader.word.upper in ("ORDER", "LIMIT"))
    if named and (reader.is_done or reader.word.upper in ("WHERE", "GROUP", "JOIN", "HAVING", "UNION")):
        _refuse(reader)
    return reader.name("the result").text.lower() if named else ""
