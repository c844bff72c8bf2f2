"""Texts of expressions as the compiler of expressions takes them: in Spark's words, each with its place."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from spark_pace.errors import ConfigError, Problem
from spark_pace.rules.document.document import Scalar
from spark_pace.rules.document.report import Place, Report, TooManyError
from spark_pace.rules.row_patterns.reader import Reader
from spark_pace.rules.row_patterns.words import as_spark

UNKNOWN_FUNCTION = "must be a known function"  # what the compiler of expressions says
ELSEWHERE = "Spark's own functions can be computed of the input in a subquery, or in the query around."
Replace = Callable[[Reader], "str | None"]  # reads words and gives what stands for them; None: it reads none


@dataclass(frozen=True)
class ExpressionText(Scalar):
    """An expression; `starts` are the places of its words in the text, `places` those in the query."""

    starts: tuple[int, ...] = ()
    places: tuple[Place, ...] = ()

    def at(self, offset: int) -> Place:
        """The place of the word at an offset of the text."""
        return self.places[max(0, bisect_right(self.starts, offset) - 1)]


def expression_text(reader: Reader, replaced: Replace) -> ExpressionText:
    """The text of all words of a reader, of which some are replaced."""
    query, starts, places = reader.query, [], []
    text, behind = "", reader.word.start
    first = query.place(behind)
    while not reader.is_done:
        word = reader.word
        text += " " * (word.start > behind)
        starts.append(len(text))
        places.append(query.place(word.start))
        found = replaced(reader)
        if found is None:
            found = as_spark(query, word)
            if word.kind == "word" and is_beside_a_dot(reader):
                found = f"`{found}`"  # so that a variable may have the name of a keyword
            reader.at += 1
        text += found
        behind = query.words[reader.at - 1].end
    return ExpressionText(first, text, text, None, starts=tuple(starts), places=tuple(places))


def is_beside_a_dot(reader: Reader) -> bool:
    """Tell whether the next word is a variable or a column of a pair, such as A.x."""
    words, at = reader.query.words, reader.at
    return (at > 0 and words[at - 1].is_sign(".")) or (at + 1 < reader.end and words[at + 1].is_sign("."))


def compiled(read: Callable[[Report], Any]) -> Any:
    """What a compiler of expressions makes, which notes in a report what is wrong.

    Raises:
        ConfigError: something is.
    """
    report, found = Report(), None
    with suppress(TooManyError):
        found = read(report)
    if found is None or not report.clean:
        raise ConfigError(tuple(map(_advised, report.problems)))
    return found


def _advised(problem: Problem) -> Problem:
    """Say of a function that is not known here that Spark may know it, and how one of Flink's is written."""
    if problem.must != UNKNOWN_FUNCTION:
        return problem
    if problem.got == '"match_rowtime"':
        return replace(problem, do="Write LAST of the column by which rows are ordered.")
    return replace(problem, do=f"{problem.do} {ELSEWHERE}")
