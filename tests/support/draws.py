"""Strategies of Hypothesis that are built once: to build one takes longer than to draw from it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Concatenate, ParamSpec, TypeVar

from hypothesis import strategies as st

T = TypeVar("T")
P = ParamSpec("P")
Strategies = Callable[P, st.SearchStrategy[T]]


def built_once(function: Strategies[P, T]) -> Strategies[P, T]:
    """The same arguments, which are few and hashable, give the same strategy."""
    return cache(function)


def composite(function: Callable[Concatenate[st.DrawFn, P], T]) -> Strategies[P, T]:
    """As `st.composite`, but the same arguments, which are few and hashable, give the same strategy."""
    return built_once(st.composite(function))


def chosen(draw: st.DrawFn, values: Sequence[T]) -> T:
    """One of the values, as `st.sampled_from` draws it."""
    return values[draw(_places(len(values)))]


def shuffled(draw: st.DrawFn, values: Sequence[T]) -> list[T]:
    """The values in any order, as `st.permutations` draws it."""
    return [values[place] for place in draw(_orders(len(values)))]


def some(draw: st.DrawFn, values: Sequence[T], least: int = 1, most: int | None = None) -> list[T]:
    """So many of the values in any order, each place once at most."""
    return [values[place] for place in draw(_subsets(len(values), least, most))]


@cache
def _places(count: int) -> st.SearchStrategy[int]:
    return st.sampled_from(range(count))


@cache
def _orders(count: int) -> st.SearchStrategy[list[int]]:
    return st.permutations(range(count))


@cache
def _subsets(count: int, least: int, most: int | None) -> st.SearchStrategy[list[int]]:
    return st.lists(_places(count), min_size=least, max_size=most, unique=True)
