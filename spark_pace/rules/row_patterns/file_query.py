"""Queries that need no Spark: columns of one ``MATCH_RECOGNIZE`` over a table, perhaps sorted and cut."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa

from spark_pace.core.match.row_patterns.result import result_of
from spark_pace.core.match.row_patterns.rows import sorted_table
from spark_pace.core.plan.row_pattern import OrderKey
from spark_pace.rules.document.report import quote
from spark_pace.rules.expressions.types import Wrong
from spark_pace.rules.row_patterns.clause import Key, read_keys
from spark_pace.rules.row_patterns.columns import Names
from spark_pace.rules.row_patterns.meaning import order_key, plan_of
from spark_pace.rules.row_patterns.occurrences import Occurrence, occurrences_in
from spark_pace.rules.row_patterns.words import Query, Reader, Word

_MUST = "must be of the form SELECT columns FROM table MATCH_RECOGNIZE (…) [ORDER BY columns] [LIMIT n]"
_DO = "Other queries need Spark: spark_pace.sql(spark, query)."


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
        found = sorted_table(found, (), self._keys(found))
        if self.limit is not None:
            found = found.slice(0, self.limit)
        if not self.columns:
            return found
        names = Names(found.schema, {})
        chosen = [found.column(self._column(names, word)) for word, _ in self.columns]
        return pa.table(chosen, [name.text for _, name in self.columns])

    def _keys(self, found: pa.Table) -> tuple[OrderKey, ...]:
        return tuple(order_key(self.query, Names(found.schema, {}), key) for key in self.order)

    def _column(self, names: Names, word: Word) -> str:
        column = names.column(word.text)
        if isinstance(column, Wrong):
            self.query.fail(word, "must be a column of the result", column.got, column.do)
        return column


def file_query(query: Query) -> FileQuery:
    """Read a query that needs no Spark.

    Raises:
        ConfigError: it is another one.
    """
    query = _without_alias(query, occurrences_in(query))
    found = occurrences_in(query)
    reader = Reader(query, 0, len(query.words) - 1)
    while query.words and query.words[reader.end].is_sign(";"):
        reader.end -= 1
    reader.end += 1
    if len(found) != 1:
        query.fail(0, _MUST, f"{len(found)} MATCH_RECOGNIZE", _DO)
    (one,) = found
    if not reader.takes("SELECT"):
        _refuse(reader)
    columns = _columns(reader)
    if not reader.takes("FROM") or reader.at != one.start or one.behind_input != one.start + 1:
        _refuse(reader)
    reader.at = one.end
    _alias(reader)
    order = tuple(read_keys(reader)) if reader.takes("ORDER", "BY") else ()
    limit = reader.number() if reader.takes("LIMIT") else None
    if not reader.is_done or (limit is None and query.words[reader.at - 1].upper == "LIMIT"):
        _refuse(reader)
    return FileQuery(query, one, columns, order, limit)


def _without_alias(query: Query, found: tuple[Occurrence, ...]) -> Query:
    """The query without the name of the result before columns: ``m.x`` is ``x`` around the clause."""
    words = query.words
    if len(found) != 1:
        return query
    (one,) = found
    named = one.end + (one.end < len(words) and words[one.end].upper == "AS")
    alias = words[named].text.lower() if named < len(words) and words[named].is_name else ""
    around = [*range(one.start), *range(one.end, len(words) - 1)]
    first = {at for at in around if words[at].is_name and words[at].text.lower() == alias}
    gone = {at for at in first if words[at + 1].is_sign(".")}
    gone |= {at + 1 for at in gone}
    return replace(query, words=tuple(word for at, word in enumerate(words) if at not in gone))


def _refuse(reader: Reader) -> None:
    got = "the end" if reader.is_done else quote(reader.word.text)
    reader.query.fail(reader.query.words[min(reader.at, len(reader.query.words) - 1)], _MUST, got, _DO)


def _columns(reader: Reader) -> tuple[tuple[Word, Word], ...]:
    if reader.takes_sign("*"):
        return ()
    columns = []
    while True:
        name = reader.name("a column")
        columns.append((name, reader.name("a column") if reader.takes("AS") else name))
        if not reader.takes_sign(","):
            return tuple(columns)


def _alias(reader: Reader) -> None:
    named = reader.takes("AS") or not (reader.is_done or reader.word.upper in ("ORDER", "LIMIT"))
    if named and (reader.is_done or reader.word.upper in ("WHERE", "GROUP", "JOIN", "HAVING", "UNION")):
        _refuse(reader)
    if named:
        reader.name("the result")
