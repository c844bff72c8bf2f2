"""The table: for each way and each form of rule, in how many pairs with a match the way was taken."""

from __future__ import annotations

from collections import Counter

from tests.long.differential.choices import WAYS
from tests.long.differential.forms import FORMS

Cells = Counter[tuple[str, str]]


def impossible() -> dict[tuple[str, str], str]:
    return {}


def empty_cells(taken: Cells) -> list[tuple[str, str]]:
    """The cells that could be filled and are not."""
    known = impossible()
    return [
        (way, form) for way in WAYS for form in FORMS if (way, form) not in known and not taken[way, form]
    ]


def as_text(taken: Cells) -> str:
    """A line for each way, a column for each form; a point where the form cannot take the way."""
    known = impossible()
    heads = [f"{chr(ord('A') + number)}" for number in range(26)]
    heads += [f"A{head}" for head in heads]
    lines = [f"{head:>3} {form}" for head, form in zip(heads, FORMS, strict=False)]
    wide = max(map(len, WAYS))
    lines.append(" " * wide + "".join(f"{head:>6}" for head in heads[: len(FORMS)]))
    for way in WAYS:
        cells = [
            "." if (way, form) in known and not taken[way, form] else str(taken[way, form]) for form in FORMS
        ]
        lines.append(f"{way:<{wide}}" + "".join(f"{cell:>6}" for cell in cells))
    return "\n".join(lines) + "\n"
