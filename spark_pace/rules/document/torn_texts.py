"""Texts between braces that YAML tears at their commas, such as ``{a: kind in ('x', 'y')}``.

YAML ends a plain text there at each comma and bracket, whatever parentheses or quotation marks stand around.
What comes behind is read as other keys, or not at all. So the text is found as it was meant, and the document
is read once more with the signs that tear it hidden.
"""

from __future__ import annotations

import re

_LONGEST = 2_000  # characters that are looked at for the end of a text
_SIGNS = re.compile(r"""[(){}\[\],'"]|:(?=[\s,\[\]{}])|\s\#""")
_HIDDEN = str.maketrans(",[]{}:#", "\ue000\ue001\ue002\ue003\ue004\ue005\ue006")


class TornText(Exception):
    """Ends a reading of a document, at a text of which YAML sees the beginning only."""


class TornTexts:
    """The torn texts of a document, as far as they have been found.

    Attributes:
        document: the document as it was written.
        hidden: the same, as long, with other characters for the signs that tear texts.
    """

    def __init__(self, document: str, most_characters: int) -> None:
        """Look for more until so many characters have been read anew: each text that is found costs that."""
        self.document = self.hidden = document
        self._found: dict[int, tuple[str, str]] = {}
        self._most = most_characters // (len(document) + 1)

    def at(self, start: int) -> tuple[str, str] | None:
        """The torn text that begins there: what YAML reads, and all, on one line; None where none does."""
        return self._found.get(start)

    def look(self, start: int, end: int, *, in_braces: bool) -> None:
        """Look for the end of a plain text that YAML reads from `start` to `end`.

        Between braces, what follows a comma without a colon of its own belongs to the text as well.

        Raises:
            TornText: it ends elsewhere, and the document must be read anew.
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
    """The text as YAML has it in quotation marks."""
    return f'"{text}"' if '"' not in text and "\\" not in text else "'" + text.replace("'", "''") + "'"


def _end_of(document: str, start: int, end: int, in_braces: bool) -> int:
    quote, depth, comma = "", 0, end
    for found in _SIGNS.finditer(document, start, start + _LONGEST):
        sign, at = found[0], found.start()
        if sign[0] == ":" or sign[-1] == "#":
            if at >= end:  # a key, or a comment: what is open there is never closed
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
    """Tell whether a text of SQL begins at a quotation mark; in words such as ``don't`` none does."""
    before = document[:at][-2:]
    return not before[-1:].isalnum() or (before[-1:] in "rR" and not before[:-1].isalnum())
