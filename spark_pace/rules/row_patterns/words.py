"""The words of an SQL text, with their places, as a dialect writes them; and what reads them one by one."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal, NoReturn, TypeVar

from spark_pace.errors import ConfigError, Problem, one_line
from spark_pace.rules.document import Place, Scalar, nearest, quote
from spark_pace.rules.expressions.types import Wrong

Found = TypeVar("Found")
Kind = Literal["word", "name", "text", "number", "sign"]
_MOST_DIGITS = 18


@dataclass(frozen=True)
class Dialect:
    """How SQL of some origin is written.

    Attributes:
        names: the quotation marks of names.
        texts: those of texts.
        escapes: whether a backslash in a text stands for the character behind it.
        nulls: which end of the order nulls are at, unless it is said: they are "least", "greatest" or "last".
        inside: whether PREV, NEXT, LAG and LEAD see only rows of the match in MEASURES.
    """

    names: str
    texts: str
    escapes: bool
    nulls: Literal["least", "greatest", "last"]
    inside: bool = False


DIALECTS = {
    "spark": Dialect("`", "'\"", True, "least"),
    "trino": Dialect('"', "'", False, "last"),
    "oracle": Dialect('"', "'", False, "greatest"),
    "snowflake": Dialect('"', "'", True, "greatest", inside=True),
    "flink": Dialect("`", "'", False, "least"),
    "bigquery": Dialect("`", "'\"", True, "least"),
}


def dialect_named(name: str) -> Dialect:
    """The dialect of this name.

    Raises:
        ConfigError: there is none.
    """
    if name in DIALECTS:
        return DIALECTS[name]
    raise ConfigError.of("dialect", "must be a known dialect", quote(name), nearest(name, DIALECTS))


@dataclass(frozen=True)
class Word:
    """A word of a text.

    Attributes:
        kind: "word" without quotation marks, "name" with them, "text", "number", or "sign".
        text: what it says, without quotation marks; of a text what stands between them.
        start: the place of its first character in the text.
        end: the place behind its last one.
        raw: whether it is a text in which backslashes stand for themselves, written r'…'.
    """

    kind: Kind
    text: str
    start: int
    end: int
    raw: bool = False

    @property
    def upper(self) -> str:
        """A word as keywords are compared; empty for what is none."""
        return self.text.upper() if self.kind == "word" else ""

    def is_sign(self, sign: str) -> bool:
        """Tell whether it is this sign."""
        return self.kind == "sign" and self.text == sign

    @property
    def is_name(self) -> bool:
        """Tell whether it may be the name of something."""
        return self.kind in ("word", "name")

    @property
    def folded(self) -> str:
        """The name by which variables are told apart, and which CLASSIFIER gives: capitals, unless quoted."""
        return self.text.upper() if self.kind == "word" else self.text


@dataclass(frozen=True)
class Query:
    """A text, with its words.

    Attributes:
        file: its name in messages.
        text: the text.
        dialect: how it is written.
        words: its words.
        written: the value of a rule file that has the text; None: it is a query of its own.
    """

    file: str
    text: str
    dialect: Dialect
    words: tuple[Word, ...]
    written: Scalar | None = None

    def place(self, start: int) -> Place:
        """The line and the column of a character."""
        if self.written is not None:
            return self.written.at(start)
        before = self.text[:start]
        return Place(self.file, before.count("\n") + 1, start - before.rfind("\n"))

    def fail(self, at: Word | int, must: str, got: str, do: str) -> NoReturn:
        """Raise the error for what stands at a word, or at a character.

        Raises:
            ConfigError: always.
        """
        place = self.place(at.start if isinstance(at, Word) else at)
        raise ConfigError((Problem(one_line(str(place)), *map(one_line, (must, got, do))),))

    def checked(self, at: Word, found: Found | Wrong) -> Found:
        """What was found for a word, or this error if it is wrong.

        Raises:
            ConfigError: it is.
        """
        if isinstance(found, Wrong):
            self.fail(at, found.must, found.got, found.do)
        return found

    def shown(self, words: Sequence[Word]) -> str:
        """Some neighbouring words as they are written, in quotation marks."""
        return quote(self.text[words[0].start : words[-1].end]) if words else "nothing"


def read_query(text: str, file: str, dialect: str) -> Query:
    """Split a text into words.

    Raises:
        ConfigError: there is no such dialect, or a quotation mark or comment is not closed.
    """
    query = Query(file, text, dialect_named(dialect), ())
    return replace(query, words=tuple(_words(query)))


def read_part(written: Scalar) -> Query:
    """Split a text that a rule file has into words, in Spark's dialect; an empty one stands behind the last.

    Raises:
        ConfigError: a quotation mark or comment is not closed.
    """
    query, end = Query(written.place.file, written.text, DIALECTS["spark"], (), written), len(written.text)
    return replace(query, words=(*_words(query), Word("sign", "", end, end)))


def _words(query: Query) -> Iterator[Word]:
    text, token, at = query.text, _token(query.dialect), 0
    while found := token.match(text, at):
        kind, written, start, at = found.lastgroup, found[0], at, found.end()
        if kind == "comment":
            at = _behind_comment(query, start)
        elif kind == "open":
            what = "name" if written in query.dialect.names else "text"
            got, do = quote(text[start : start + 20]), "Close the quotation mark."
            query.fail(start, f"must be a {what} that ends", got, do)
        elif kind in ("name", "text"):
            mark = written[-1]
            yield Word(kind, written[1:-1].replace(mark * 2, mark), start, at)  # type: ignore[arg-type]
        elif kind == "raw":
            yield Word("text", written[2:-1], start, at, raw=True)
        elif kind != "space":
            yield Word(kind, written, start, at)  # type: ignore[arg-type]


@cache
def _token(dialect: Dialect) -> re.Pattern[str]:
    """What a word of a dialect may be, with what stands between words, by the name of the group."""

    def quoted(marks: str, *, escapes: bool) -> str:
        inside = r"[^{0}\\]|\\." if escapes else "[^{0}]"
        return "|".join(f"{{0}}(?:{inside}|{{0}}{{0}})*{{0}}".format(mark) for mark in marks)

    names, texts = quoted(dialect.names, escapes=False), quoted(dialect.texts, escapes=dialect.escapes)
    raw = "[rR](?:" + "|".join(f"{mark}[^{mark}]*{mark}" for mark in dialect.texts) + ")"
    kinds = {
        "space": r"\s+|--[^\n]*",
        "comment": r"/\*",
        "raw": raw if dialect.escapes else "(?!)",
        "name": names,
        "text": texts,
        "open": f"[{dialect.names}{dialect.texts}]",
        "word": r"[^\W\d]\w*",
        "number": r"\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?",
        "sign": ".",
    }
    return re.compile("|".join(f"(?P<{kind}>{one})" for kind, one in kinds.items()), re.DOTALL)


def _behind_comment(query: Query, at: int) -> int:
    """The place behind a comment, which may hold others."""
    depth = 0
    for mark in re.finditer(r"/\*|\*/", query.text[at:]):
        depth += 1 if mark[0] == "/*" else -1
        if not depth:
            return at + mark.end()
    return query.fail(at, "must be a comment that ends", quote(query.text[at : at + 20]), "Close it by */.")


def as_spark(query: Query, word: Word) -> str:
    """A word as Spark SQL writes it."""
    written = query.text[word.start : word.end]
    if word.kind == "name":
        return "`" + word.text.replace("`", "``") + "`"
    if word.kind != "text" or word.raw or query.dialect.texts == "'\"":
        return written
    # each character with its backslash or second quotation mark, if it has one
    units = re.findall(r"\\.|''|." if query.dialect.escapes else r"''|.", written[1:-1], re.DOTALL)
    return "'" + "".join({"''": "\\'", "\\": "\\\\"}.get(one, one) for one in units) + "'"


def in_spark(query: Query, start: int, end: int) -> str:
    """The text from one place to another as Spark SQL writes it."""
    parts, at = [], start
    for word in query.words:
        if start <= word.start and word.end <= end:
            parts += [query.text[at : word.start], as_spark(query, word)]
            at = word.end
    return "".join([*parts, query.text[at:end]])


@dataclass
class Reader:
    """The words of a part of a query, and how far they have been read.

    Attributes:
        query: the query.
        at: the number of the next word.
        end: the number behind the last word; there is a word with that number.
    """

    query: Query
    at: int
    end: int

    @property
    def is_done(self) -> bool:
        """Tell whether all words have been read."""
        return self.at >= self.end

    @property
    def word(self) -> Word:
        """The next word; behind the last one the word that ends the part."""
        return self.query.words[min(self.at, self.end, len(self.query.words) - 1)]

    def is_next(self, *keywords: str) -> bool:
        """Tell whether these keywords come next."""
        words = self.query.words[self.at : min(self.end, self.at + len(keywords))]
        return tuple(word.upper for word in words) == keywords

    def takes(self, *keywords: str) -> bool:
        """Read these keywords if they come next, and tell whether they did."""
        found = self.is_next(*keywords)
        self.at += len(keywords) * found
        return found

    def takes_sign(self, sign: str) -> bool:
        """Read a sign if it comes next, and tell whether it did."""
        found = not self.is_done and self.word.is_sign(sign)
        self.at += found
        return found

    def need(self, *keywords: str) -> None:
        """Read these keywords, or fail."""
        if not self.takes(*keywords):
            self.fail(f"must be {' '.join(keywords)}", "Write the clause as docs/match_recognize.md has it.")

    def need_sign(self, sign: str, where: str) -> None:
        """Read a sign, or fail."""
        if not self.takes_sign(sign):
            self.fail(f'must be "{sign}" {where}', f'Write "{sign}".')

    def name(self, of: str) -> Word:
        """Read a name, or fail."""
        if self.is_done or not self.word.is_name:
            self.fail(f"must be the name of {of}", "Write a name.")
        self.at += 1
        return self.query.words[self.at - 1]

    def number(self) -> int | None:
        """Read a whole number if one comes next; at most 10 ** 18."""
        if self.is_done or self.word.kind != "number" or not self.word.text.isdecimal():
            return None
        self.at += 1
        text = self.query.words[self.at - 1].text
        return int(text) if len(text) <= _MOST_DIGITS else 10**_MOST_DIGITS

    def fail(self, must: str, do: str) -> NoReturn:
        """Raise the error for what comes next."""
        got = "the end" if self.is_done else self.query.shown([self.word])
        self.query.fail(self.word, must, got, do)

    def listed(self, read: Callable[[Reader], Found]) -> list[Found]:
        """Read what commas divide, one by one."""
        found = [read(self)]
        while self.takes_sign(","):
            found.append(read(self))
        return found

    def inside(self) -> Reader:
        """Read what stands in the parentheses that are opened next, and what closes them."""
        self.need_sign("(", "here")
        inner = Reader(self.query, self.at, closing(self.query, self.at - 1))
        self.at = inner.end + 1
        return inner

    def until(self, *stops: str, clauses: tuple[tuple[str, ...], ...] = ()) -> Reader:
        """Read up to one of some signs or keywords, or one of some clauses, outside parentheses."""
        begin, depth = self.at, 0
        while not self.is_done:
            word = self.word
            ends = word.text in stops if word.kind == "sign" else word.upper in stops
            if depth == 0 and (ends or any(self.is_next(*one) for one in clauses)):
                break
            depth += word.is_sign("(") - word.is_sign(")")
            self.at += 1
        return Reader(self.query, begin, self.at)


def closing(query: Query, opening: int) -> int:
    """The number of the word that closes a parenthesis.

    Raises:
        ConfigError: none does.
    """
    depth = 0
    for at in range(opening, len(query.words)):
        depth += query.words[at].is_sign("(") - query.words[at].is_sign(")")
        if depth == 0:
            return at
    return query.fail(query.words[opening], "must be a parenthesis that is closed", '"("', 'Write ")".')
