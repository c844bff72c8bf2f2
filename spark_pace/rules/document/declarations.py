"""Parses the text of a schema into names and types: ``id BIGINT, price DECIMAL(10,2)``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

SCALARS: dict[str, str] = {
    "BOOLEAN": "BOOLEAN",
    "TINYINT": "BIGINT",
    "SMALLINT": "BIGINT",
    "INT": "BIGINT",
    "INTEGER": "BIGINT",
    "BIGINT": "BIGINT",
    "LONG": "BIGINT",
    "FLOAT": "DOUBLE",
    "DOUBLE": "DOUBLE",
    "STRING": "STRING",
    "TIMESTAMP": "TIMESTAMP",
    "DATE": "DATE",
}
_MAX_DIGITS = 38
_DECLARATION = re.compile(r"\s*(?:`([^`]+)`|([^\s`,]+))\s+(\S.*?)\s*", re.DOTALL)
_MEMBER = re.compile(r"\s*(?:`([^`]+)`|([^\s`,:]+))\s*[\s:]\s*(\S.*?)\s*", re.DOTALL)
_STRUCT = re.compile(r"STRUCT\s*<(.*)>", re.IGNORECASE | re.DOTALL)
_ARRAY = re.compile(r"ARRAY\s*<\s*(.*?)\s*>", re.IGNORECASE | re.DOTALL)
MAX_DEPTH = 20  # STRUCTs inside each other
_DECIMAL = re.compile(r"(?:DECIMAL|NUMERIC|DEC)\s*\(\s*(\d{1,4})\s*(?:,\s*(\d{1,4})\s*)?\)", re.IGNORECASE)


@dataclass(frozen=True)
class Declared:
    """A declaration: a name and its type.

    Attributes:
        part: the whole text of the declaration.
        at: the offset of its beginning in the text of the schema.
        name: the name, with the names of the STRUCTs around it; empty if the part is no declaration.
        written: the type as written.
        kind: the usual name of the type, the same for all spellings; None if there is no such type.
        path: the names of the STRUCTs around it, outermost first, then its own name.
    """

    part: str
    at: int
    name: str
    written: str
    kind: str | None
    path: tuple[str, ...] = ()


def declared(text: str) -> Iterator[Declared]:
    """Yield the declarations of a schema, in order; after a STRUCT those inside it: ``user``, ``user.id``."""
    yield from _declared(text, 0, ())


def _declared(text: str, start: int, outer: tuple[str, ...]) -> Iterator[Declared]:
    """Yield the declarations of a text inside the STRUCTs `outer`; `start` is its offset in the schema."""
    for at, part in _parts(text):
        begins = start + at + len(part) - len(part.lstrip())
        match = (_MEMBER if outer else _DECLARATION).fullmatch(part)
        if match is None:
            yield Declared(part.strip(), begins, "", "", None)
            continue
        path = (*outer, match[1] or match[2])
        struct = _STRUCT.fullmatch(match[3])
        if struct is None or len(path) > MAX_DEPTH:
            yield Declared(part.strip(), begins, ".".join(path), match[3], type_of(match[3]), path)
        else:
            yield Declared(part.strip(), begins, ".".join(path), match[3], "STRUCT", path)
            yield from _declared(struct[1], start + at + match.start(3) + struct.start(1), path)


def type_of(written: str) -> str | None:
    """The usual name of a type: BIGINT for ``int``; None for a STRUCT, or if there is no such type."""
    array = _ARRAY.fullmatch(written)
    if array is not None:
        element = None if _ARRAY.fullmatch(array[1]) else type_of(array[1])
        return element and f"ARRAY<{element}>"
    decimal = _DECIMAL.fullmatch(written)
    if decimal is None:
        return SCALARS.get(written.upper())
    precision, scale = int(decimal[1]), int(decimal[2] or 0)
    possible = 1 <= precision <= _MAX_DIGITS and scale <= precision
    return f"DECIMAL({precision},{scale})" if possible else None


def _parts(text: str) -> Iterator[tuple[int, str]]:
    """Split a text at its commas; yield (offset, part).

    Commas inside backticks, parentheses and ``<>`` do not split.
    """
    start = depth = 0
    quoted = False
    for at, sign in enumerate(text):
        if sign == "`":
            quoted = not quoted
        elif not quoted:
            depth = max(0, depth + (sign in "(<") - (sign in ")>"))
            if sign == "," and depth == 0:
                yield start, text[start:at]
                start = at + 1
    yield start, text[start:]
