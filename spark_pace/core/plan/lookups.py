"""Finds what many predicates have in common: a column that must equal a constant, and equal conjuncts.

If rules differ in a constant (``id = 17 and etype = 'A'``), one lookup in the column finds the events of all
these rules, and the rest of a predicate is tested on the few events with its constant.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from spark_pace import ways
from spark_pace.core.expr import Call, Column, Expr, Literal, conjunction
from spark_pace.core.plan.conditions import conjuncts

_EXACT = ("BIGINT", "STRING", "TIMESTAMP", "DATE")  # types whose equal values have equal bits


@dataclass(frozen=True)
class Sought:
    """A predicate that holds only where a column has a constant.

    Attributes:
        number: its index in `Plan.predicates`.
        constant: the index of the constant in `Lookup.constants`.
        shared: the indices in `Lookups.shared` of conjuncts that must hold too.
        rest: the condition that must hold besides; None: nothing more.
    """

    number: int
    constant: int
    shared: tuple[int, ...]
    rest: Expr | None


@dataclass(frozen=True)
class Lookup:
    """The predicates that hold only where one column equals a constant; one lookup serves all of them.

    Attributes:
        column: the column.
        constants: the distinct constants, never null.
        sought: the predicates, each with the index of its constant.
    """

    column: Column
    constants: tuple[bool | int | float | str | None, ...]
    sought: tuple[Sought, ...]


@dataclass(frozen=True)
class Lookups:
    """How the predicates of a plan are evaluated.

    Attributes:
        columns: the lookups, one for each column.
        shared: conjuncts that many predicates share, which are tested once for all.
        others: the indices in `Plan.predicates` of predicates without a lookup, which are tested one by one.
    """

    columns: tuple[Lookup, ...]
    shared: tuple[Expr, ...]
    others: tuple[int, ...]


def lookups_of(predicates: Sequence[Expr]) -> Lookups:
    """Decide how to evaluate some predicates, each about a single event."""
    parts = [dict.fromkeys(conjuncts(predicate)) for predicate in predicates]
    often = Counter(part for one in parts for part in one)
    constants: dict[Column, dict[bool | int | float | str | None, int]] = {}
    for part in often:
        if (equality := _equality(part)) is not None:
            known = constants.setdefault(equality[0], {})
            known.setdefault(equality[1].value, len(known))
    sought: dict[Column, list[Sought]] = {}
    shared: dict[Expr, int] = {}
    others = []
    for number, one in enumerate(parts):
        found = [(part, pair) for part in one if (pair := _equality(part)) is not None]
        chosen = max(found, key=lambda each: len(constants[each[1][0]]), default=None)
        if chosen is None or not ways.is_looked_up(len(constants[chosen[1][0]])):
            others.append(number)
            continue
        part, (column, literal) = chosen
        left = [other for other in one if other != part]
        common = [other for other in left if ways.is_shared(often[other])]
        alike = tuple(shared.setdefault(other, len(shared)) for other in common)
        own = [other for other in left if other not in common]
        place = constants[column][literal.value]
        sought.setdefault(column, []).append(Sought(number, place, alike, conjunction(own) if own else None))
    columns = tuple(Lookup(column, tuple(constants[column]), tuple(one)) for column, one in sought.items())
    return Lookups(columns, tuple(shared), tuple(others))


def _equality(expr: Expr) -> tuple[Column, Literal] | None:
    """The column and the constant of ``column = constant``, for types in `_EXACT`; None for anything else."""
    if not isinstance(expr, Call) or expr.function != "=":
        return None
    left, right = expr.arguments
    if isinstance(left, Literal):
        left, right = right, left
    if not isinstance(left, Column) or not isinstance(right, Literal) or right.value is None:
        return None
    return (left, right) if left.type == right.type and left.type in _EXACT else None
