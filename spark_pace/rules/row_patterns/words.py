"""The words of an SQL text, with their places, as a dialect writes them; and what reads them one by one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NoReturn, TypeVar

from spark_pace.errors import ConfigError, Problem, one_line
from spark_pace.rules.document.document import Scalar
from spark_pace.rules.document.report import Place, nearest, quote
from spark_pace.rules.expressions.types import Wrong

Found = TypeVar("Found")
Kind = Literal["word", "name", "text", "number", "sign"]
_NUMBER = re.compile(r"\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?")
_WORD = re.compile(r"[^\W\d]\w*")
_SPACE = re.compile(r"\s+")
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
    text, at = query.text, 0
    while at < len(text):
        if (behind := _behind_space(query, at)) > at:
            at = behind
            continue
        word = _quoted(query, at) or _plain(text, at)
        yield word
        at = word.end


def _behind_space(query: Query, at: int) -> int:
    """The place behind the white space, or the comment, that begins at `at`; `at` itself if none does."""
    text = query.text
    if found := _SPACE.match(text, at):
        return found.end()
    if text.startswith("--", at):
        end = text.find("\n", at)
        return len(text) if end < 0 else end
    if not text.startswith("/*", at):
        return at
    depth, behind = 0, at
    for mark in re.finditer(r"/\*|\*/", text[at:]):
        depth += 1 if mark[0] == "/*" else -1
        behind = at + mark.end()
        if not depth:
            return behind
    return query.fail(at, "must be a comment that ends", quote(text[at : at + 20]), "Close it by */.")


def _quoted(query: Query, at: int) -> Word | None:
    """The name or text in quotation marks that begins at `at`."""
    text, dialect = query.text, query.dialect
    raw = dialect.escapes and text[at] in "rR" and text[at + 1 : at + 2] in ("'", '"')
    mark = text[at + raw]
    if mark not in dialect.names + dialect.texts:
        return None
    kind: Kind = "name" if mark in dialect.names else "text"
    escapes = dialect.escapes and kind == "text" and not raw
    behind = at + raw + 1
    while behind < len(text):
        doubled = not raw and text.startswith(mark * 2, behind)
        if doubled or (escapes and text[behind] == "\\"):
            behind += 2
        elif text[behind] == mark:
            held = text[at + raw + 1 : behind].replace(mark * 2, mark)
            return Word(kind, held, at, behind + 1, raw)
        else:
            behind += 1
    must, do = f"must be a {kind} that ends", "Close the quotation mark."
    return query.fail(at, must, quote(text[at : at + 20]), do)


def _plain(text: str, at: int) -> Word:
    if found := _WORD.match(text, at):
        return Word("word", found[0], at, found.end())
    if found := _NUMBER.match(text, at):
        return Word("number", found[0], at, found.end())
    return Word("sign", text[at], at, at + 1)


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
        return self.query.words[min(self.at, self.end)]

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
