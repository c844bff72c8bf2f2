"""Finds texts between braces that YAML splits at a comma, such as ``{a: kind in ('x', 'y')}``.

Between braces YAML ends an unquoted text at each comma and bracket, also inside parentheses and quotation
marks, and reads the rest as other keys. This module finds the end that the author meant. The document is then
read again, with other characters in place of those that split the text.
"""

from __future__ import annotations

import re

_LONGEST = 2_000  # characters that are looked at for the end of a text
_SIGNS = re.compile(r"""[(){}\[\],'"]|:(?=[\s,\[\]{}])|\s\#""")
_HIDDEN = str.maketrans(",[]{}:#", "\ue000\ue001\ue002\ue003\ue004\ue005\ue006")


class TornText(Exception):
    """Ends a reading of a document: a split text was found, and the document must be read again."""


class TornTexts:
    """The split texts of a document that are known so far.

    Attributes:
        document: the document as it was written.
        hidden: the document with other characters in place of those that split texts; it has the same length.
    """

    def __init__(self, document: str, most_characters: int) -> None:
        """Begin with no text. Each one found makes the document be read again, `most_characters` at most."""
        self.document = self.hidden = document
        self._found: dict[int, tuple[str, str]] = {}
        self._most = most_characters // (len(document) + 1)

    def at(self, start: int) -> tuple[str, str] | None:
        """Return the text that begins there, as YAML reads it and whole on one line; None if none does."""
        return self._found.get(start)

    def look(self, start: int, end: int, *, in_braces: bool) -> None:
        """Find the end that was meant of an unquoted text that YAML reads from `start` to `end`.

        Between braces a part behind a comma that has no colon belongs to the text, too.

        Raises:
            TornText: the text ends elsewhere.
        """
        if len(self._found) >= self._most:
            return
        meant = _end_of(self.document, start, end, in_braces)
        text = self.document[start:meant].rstrip()
        if start + len(text) > end:
            self._found[start] = self.document[start:end], " ".join(text.split())
            self.hidden = self.hidden[:start] + text.translate(_HIDDEN) + self.hidden[start + len(text) :]
            raise TornText


def in_quotes(text: str) -> str:
    """Return the text in the quotation marks of YAML."""
    return f'"{text}"' if '"' not in text and "\\" not in text else "'" + text.replace("'", "''") + "'"


def _end_of(document: str, start: int, end: int, in_braces: bool) -> int:
    quote, depth, comma = "", 0, end
    for found in _SIGNS.finditer(document, start, start + _LONGEST):
        sign, at = found[0], found.start()
        if sign[0] == ":" or sign[-1] == "#":
            if at >= end:  # a key or a comment follows, so an open parenthesis is never closed
                return comma if not quote and not depth else end
        elif quote:
            quote = "" if sign == quote and document[at - 1] != "\\" else quote
        elif sign in "'\"":
            quote = sign if _opens(document, at) else ""
        elif sign in "()":
            depth = max(0, depth + (1 if sign == "(" else -1))
        elif at >= end and depth == 0 and sign in "}]":
            return at
        elif at >= end and depth == 0 and sign == "," and in_braces:
            comma = at
        elif at >= end and (depth == 0 or sign != ","):
            return at if sign == "," else comma
    return end


def _opens(document: str, at: int) -> bool:
    """Tell whether a quotation mark begins a text of SQL; the one in ``don't`` does not."""
    before = document[:at][-2:]
    return not before[-1:].isalnum() or (before[-1:] in "rR" and not before[:-1].isalnum())
