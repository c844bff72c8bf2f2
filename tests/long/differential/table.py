"""The table: for each way and each form of rule, in how many pairs with a match the way was taken."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cache
from string import ascii_uppercase

from tests.long.differential.choices import WAYS
from tests.long.differential.forms import FORMS

Cell = tuple[str, str]  # a way and a form
Cells = Counter[Cell]

NOT_SIMPLE = (
    *("repeated", "optional", "until", "run", "further events", "optional first", "optional last"),
    *("groups beside groups", "negated", "negated last", "strict", "follows strict"),
)
ANY_ORDER = ("conjunction", "inner sequence")
FOLDS = ("moves", "function")
WITHOUT_PATTERN = ("aggregates", "operator", *FOLDS)
SPANS = ("opened span", "open", "grid span", "count span", "session span", *WITHOUT_PATTERN)
KEYS = ("keys", "forgotten keys")
NO_TIME = ("within events", "within both", "no window")
ZERO = ("each, zero", "latest, zero", "next, zero", "earliest, zero")
ONE_OPEN = ("each, selected", "latest, selected", "next, selected", "all, selected")
SELECTED = (*ONE_OPEN, "earliest, selected")
NEXT = ("next, zero", "next, selected")


@dataclass(frozen=True)
class Impossible:
    """Why some choices are never asked, or sizes never read, for rules of some forms."""

    names: tuple[str, ...]
    forms: tuple[str, ...]
    why: str


IMPOSSIBLE = (
    Impossible(
        ("is_much_carried", "is_rid_of_closed", "FIRST_UNRESOLVED"),
        (*NOT_SIMPLE, *SPANS, *KEYS, *NO_TIME, *SELECTED),
        "it is for simple patterns without keys, within a time, that use nothing up",
    ),
    Impossible(
        ("is_rid_of_closed",),
        (*ANY_ORDER, "alternatives", "close window", "latest, zero", "earliest, zero", "merge selection"),
        "it is for sequences whose selections close, and whose matches do not wait",
    ),
    Impossible(
        ("FIRST_UNRESOLVED",),
        ("close window", "latest, zero", "earliest, zero", "merge detection"),
        "it is for selections that close, and matches that wait",
    ),
    Impossible(
        ("FIRST_OPENINGS", "FIRST_HORIZON_ROWS", "USING_UP_ROWS"),
        ("close window",),
        "all candidates are made, nothing is chosen among them (but for what forbids an event before it)",
    ),
    Impossible(
        ("USING_UP_ROWS",),
        (*ANY_ORDER, *NOT_SIMPLE, *WITHOUT_PATTERN, *ZERO, *ONE_OPEN),
        "it is for *earliest, selected* of simple sequences",
    ),
    Impossible(
        ("FIRST_OPENINGS",),
        (*WITHOUT_PATTERN, *ZERO, "earliest, selected"),
        "it is for one selection that is open at a time",
    ),
    Impossible(
        ("FIRST_ROWS",),
        ANY_ORDER,
        "it is for walks, of patterns and to what closes a span, and for sequences",
    ),
    Impossible(
        ("FIRST_HORIZON_ROWS",),
        (*WITHOUT_PATTERN, *NEXT, "latest, zero", "earliest, zero", "earliest, selected"),
        "it is for selections that the first completion closes",
    ),
    Impossible(
        ("PIECE_ROWS", "FIRST_ROWS", "BLOCK_BITS"),
        FOLDS,
        "nothing is searched for: events go through states one after the other",
    ),
    Impossible(
        ("is_pruned",),
        (*ANY_ORDER, "alternatives", "optional first", *SPANS),
        "it is for negated components before one event of sequences, and inside spans nothing is kept",
    ),
    Impossible(("is_looked_up", "is_shared"), ("function",), "it has no conditions on values"),
)


@cache
def impossible() -> set[Cell]:
    """The cells that cannot be filled."""
    return {
        (way, form)
        for one in IMPOSSIBLE
        for way in WAYS
        for form in one.forms
        if way.partition(":")[0] in one.names
    }


def empty_cells(taken: Cells) -> list[Cell]:
    """The cells that could be filled and are not."""
    empty = ((way, form) for way in WAYS for form in FORMS if not taken[way, form])
    return [cell for cell in empty if cell not in impossible()]


def taken_though_impossible(taken: Cells) -> list[Cell]:
    """The cells that are filled: what is said of them in `IMPOSSIBLE` is wrong."""
    return [cell for cell in sorted(impossible()) if taken[cell]]


def as_text(taken: Cells) -> str:
    """A line for each way, a column for each form; a point where the form cannot take the way."""
    known = impossible()
    heads = [*ascii_uppercase, *(f"A{letter}" for letter in ascii_uppercase)][: len(FORMS)]
    lines = [f"{head:>3} {form}" for head, form in zip(heads, FORMS, strict=True)]
    wide = max(map(len, WAYS))
    lines.append(" " * wide + "".join(f"{head:>6}" for head in heads))
    for way in WAYS:
        cells = ["." if (way, form) in known else taken[way, form] for form in FORMS]
        lines.append(f"{way:<{wide}}" + "".join(f"{cell:>6}" for cell in cells))
    return "\n".join(lines) + "\n"
