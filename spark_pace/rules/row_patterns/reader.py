"""Reads words one after the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

from spark_pace.rules.row_patterns.words import Query, Word

_MOST_DIGITS = 18


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
    raise query.error(query.words[opening], "must be a parenthesis that is closed", '"("', 'Write ")".')
