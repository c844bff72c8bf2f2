"""How candidates are searched, as far as the rule alone decides it: chosen once for each pattern.

A `Search` has what is chosen for its pattern; kernels do it, and `explain` tells it. What depends on how much
there is to search is in `spark_pace.ways`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Literal, TypeAlias

from spark_pace.core.expr import Aggregate, walk
from spark_pace.core.match.search.comparison import is_comparison, is_equality
from spark_pace.core.match.search.programs import is_program, is_testable
from spark_pace.core.plan.rule import Component, Pattern, Strategy
from spark_pace.core.plan.shape import Gap, Shape, places_of, shape_of

# `METHODS` in `spark_pace.rules.cost` says what each is
How: TypeAlias = (
    Literal["nearest", "walk", "first candidate", "all candidates"]  # of sequences, step by step
    | Literal["nearest set", "any order"]  # of conjunctions
    | Literal["alternatives"]  # of disjunctions
    | Literal["in order", "in turn"]  # without the events that are used up
    | Strategy
)

Begin: TypeAlias = Literal["initiator", "terminator"]
BEGINS: tuple[Begin, Begin] = ("initiator", "terminator")


@dataclass(frozen=True)
class Technique:
    """How one thing is sought.

    Attributes:
        each: what a search begins with.
        how: how it goes on from there.
        compiled: whether compiled code searches.
    """

    each: Begin
    how: How
    compiled: bool = False


@dataclass(frozen=True)
class Techniques:
    """How everything is sought that kernels may ask for.

    Attributes:
        completion: the first event that completes a candidate of an initiator.
        walk: what the walk of *next* takes.
        best: the greatest or the least candidate of a terminator.
        unused: the least candidate of each terminator without the events that are used up by then.
    """

    completion: Technique
    walk: Technique
    best: Technique
    unused: Technique


@lru_cache(maxsize=4096)
def choose(pattern: Pattern) -> Techniques:
    """The techniques of a checked pattern."""
    if pattern.order == "disjunction":
        forwards, backwards = (Technique(each, "alternatives") for each in BEGINS)
        return Techniques(forwards, forwards, backwards, backwards)
    told = _Told(pattern)
    walk = _of_walk(told)
    return Techniques(_of_completion(told, walk), walk, _of_best(told, walk), _of_unused(told))


@lru_cache(maxsize=4096)
def follows_compiled(pattern: Pattern, *, walking: bool) -> bool:
    """True if compiled code finds the event of an optional component in last place that conditions choose.

    It does not if a condition is of a group of which the walk of *next* takes no more than its most events,
    or has an aggregate, such as a sum, of that one event. Where the event must come next, there is nothing to
    search.

    Args:
        pattern: the pattern with the component for one event, and with these conditions alone.
        walking: whether candidates are walks.
    """
    told, last = _Told(pattern), len(pattern.components) - 1
    named = {one for conjunct in pattern.where for one in conjunct.components} - {last}
    groups = [times for one in named if (times := pattern.components[one].times) is not None]
    capped = walking and any(times.most is not None for times in groups)
    nodes = (node for conjunct in pattern.where for node in walk(conjunct.expr))
    own = any(isinstance(one, Aggregate) and one.component == pattern.components[-1].name for one in nodes)
    return told.testable and not capped and not own and told.shape.gaps[-1] == Gap()


@dataclass(frozen=True)
class _Told:
    """What of a pattern decides about its techniques."""

    pattern: Pattern

    @cached_property
    def shape(self) -> Shape:
        return shape_of(self.pattern)

    @property
    def steps(self) -> int:
        return len(self.shape.anchors)

    @property
    def conjunction(self) -> bool:
        return self.pattern.order == "conjunction"

    @property
    def simple(self) -> bool:
        """True if nothing is said of what stands between its events."""
        return self.shape.simple and not self.conjunction

    @property
    def plain(self) -> bool:
        """True if nothing is said of several components either."""
        return self.shape.simple and not self.pattern.where

    @cached_property
    def comparable(self) -> bool:
        """True if each condition compares two components that stand for one event."""
        places = places_of(self.pattern)
        return all(is_comparison(one.expr, places) for one in self.pattern.where)

    @cached_property
    def runnable(self) -> bool:
        """True if compiled code can test each condition and find each group, whatever it searches for."""
        further = any(one.further is not None for one in self.sought)
        return self.testable and not further and self.shape.without_first is None

    @cached_property
    def testable(self) -> bool:
        """True if compiled code can test each condition, of groups on what they have so far too."""
        places = places_of(self.pattern)
        where = all(is_program(one.expr, places) for one in self.pattern.where)
        return where and all(map(is_testable, self.sought))

    @property
    def sought(self) -> list[Component]:
        """The components that searches look at: all but an optional one in last place."""
        components = enumerate(self.pattern.components)
        return [one for index, one in components if index != self.shape.optional_last]

    @property
    def looked_up(self) -> bool:
        """True if every condition is looked up: each is an equality, and alone at its level."""
        where, places = self.pattern.where, places_of(self.pattern)
        return len({*map(self.shape.level, where)}) == len(where) and all(
            is_equality(one.expr, places) for one in where
        )


def _of_walk(told: _Told) -> Technique:
    """It tests each event once, so what is no comparison of two components is tested as soon by columns."""
    if told.plain:
        return Technique("initiator", "nearest")
    return Technique("initiator", "walk", told.simple and told.comparable and not told.looked_up)


def _of_completion(told: _Told, walk: Technique) -> Technique:
    if told.steps == 2 and not told.conjunction:
        return walk  # nothing comes after its second step
    return _of_first(told, "initiator")


def _of_best(told: _Told, walk: Technique) -> Technique:
    if told.steps == 2 and told.simple:
        return replace(walk, each="terminator")
    return _of_first(told, "terminator")


def _of_first(told: _Told, each: Begin) -> Technique:
    if told.plain:
        return Technique(each, "nearest set", True) if told.conjunction else Technique(each, "nearest")
    if told.runnable:
        return Technique(each, "any order" if told.conjunction else "first candidate", True)
    return Technique(each if told.simple or told.conjunction else "initiator", "all candidates")


def _of_unused(told: _Told) -> Technique:
    if told.plain:
        in_lists = not told.conjunction and (told.pattern.within is None or told.steps <= 2)
        own: How = (
            "production_sets" if in_lists else "in order"
        )  # lists take half the time where they are exact
        return Technique("terminator", told.pattern.strategy or own, True)
    if told.testable or not told.simple:
        return Technique("terminator", "in turn", told.testable)
    return Technique("terminator", "all candidates")
