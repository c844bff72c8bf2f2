"""How candidates are searched, as far as the rule alone decides it.

Kernels do what is chosen here, and `explain` tells it. There is a choice for each thing that may be sought.
What depends on how much there is to search is in `spark_pace.ways`: where compiled code can search, it does
so among many rows only.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from spark_pace import ways
from spark_pace.core.match.search.comparison import is_equality
from spark_pace.core.match.search.search import Search
from spark_pace.core.plan.rule import Strategy

# `METHODS` in `spark_pace.rules.explanation.cost` says what each is
How: TypeAlias = (
    Literal["nearest", "walk", "first candidate", "all candidates"]  # of sequences, step by step
    | Literal["nearest set", "all orders"]  # of conjunctions
    | Literal["in order", "in turn"]  # without the events that are used up
    | Strategy
)


Begin: TypeAlias = Literal["initiator", "terminator"]


@dataclass(frozen=True)
class Technique:
    """How candidates are searched.

    Attributes:
        each: what a search begins with.
        how: how it goes on from there.
        compilable: whether compiled code searches where rows are many.
    """

    each: Begin
    how: How
    compilable: bool = False


def of_completion(search: Search) -> Technique:
    """How to find the first event that completes a candidate of an initiator."""
    if search.pattern.order == "conjunction":
        return _of_conjunction(search, "initiator")
    if search.steps == 2:
        return of_walk(search)  # nothing comes after its second step
    return _of_sequence(search, "initiator")


def of_walk(search: Search) -> Technique:
    """How to find what the walk of *next* takes.

    It tests each event once, so what is no comparison of two components is tested as soon by columns.
    """
    if search.plain:
        return Technique("initiator", "nearest")
    return Technique("initiator", "walk", search.simple and search.comparable and not _is_looked_up(search))


def of_best(search: Search) -> Technique:
    """How to find the greatest or the least candidate of a terminator."""
    if search.pattern.order == "conjunction":
        return _of_conjunction(search, "terminator")
    if not search.simple:
        return Technique("initiator", "all candidates")
    if search.steps == 2:
        return replace(of_walk(search), each="terminator")
    return _of_sequence(search, "terminator")


def of_unused(search: Search) -> Technique:
    """How to find the least candidate of each terminator without the events that are used up by then."""
    if search.pattern.order == "conjunction":
        return Technique("terminator", "in turn")
    if not search.simple:
        return Technique("terminator", "in turn", search.runnable)
    if search.plain:
        return Technique("terminator", search.pattern.strategy or "in order")
    return _of_sequence(search, "terminator")


def _of_sequence(search: Search, each: Begin) -> Technique:
    if search.plain:
        return Technique(each, "nearest")
    if search.simple and search.runnable:
        return Technique(each, "first candidate", True)
    return Technique(each, "all candidates")


def _of_conjunction(search: Search, each: Begin) -> Technique:
    if search.plain:
        return Technique(each, "nearest set")
    return Technique(each, "all orders" if ways.is_in_orders(search.steps) else "all candidates")


def _is_looked_up(search: Search) -> bool:
    """Tell whether every condition is looked up: each is an equality, and alone at its level."""
    where, level = search.pattern.where, search.between.shape.level
    return len(set(map(level, where))) == len(where) and all(
        is_equality(one.expr, search.places) for one in where
    )
