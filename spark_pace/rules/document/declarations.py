"""The text of a schema, as names and types: ``id BIGINT, price DECIMAL(10,2)``."""

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
_DECIMAL = re.compile(r"(?:DECIMAL|NUMERIC|DEC)\s*\(\s*(\d{1,4})\s*(?:,\s*(\d{1,4})\s*)?\)", re.IGNORECASE)


@dataclass(frozen=True)
class Declared:
    """A name and what is said of its type.

    Attributes:
        part: the whole declaration.
        at: where it begins in the text of the schema.
        name: the name; empty where this is no declaration.
        written: the type as it is written.
        kind: the type's one name; None where there is no such type.
    """

    part: str
    at: int
    name: str
    written: str
    kind: str | None


def declared(text: str) -> Iterator[Declared]:
    """What stands between the commas of a schema."""
    for at, part in _parts(text):
        at += len(part) - len(part.lstrip())
        match = _DECLARATION.fullmatch(part)
        if match is None:
            yield Declared(part.strip(), at, "", "", None)
        else:
            yield Declared(part.strip(), at, match[1] or match[2], match[3], type_of(match[3]))


def type_of(written: str) -> str | None:
    """The one name of a type of single values, in any case; None where there is no such type."""
    decimal = _DECIMAL.fullmatch(written)
    if decimal is None:
        return SCALARS.get(written.upper())
    precision, scale = int(decimal[1]), int(decimal[2] or 0)
    possible = 1 <= precision <= _MAX_DIGITS and scale <= precision
    return f"DECIMAL({precision},{scale})" if possible else None


def _parts(text: str) -> Iterator[tuple[int, str]]:
    """Each text between commas with its place, but for commas in backticks, parentheses and ``<>``."""
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
