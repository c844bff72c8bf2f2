"""Sequences in a conjunction: the components whose events stand in order."""

from __future__ import annotations

from spark_pace.core.plan.rule import Pattern
from tests.oracle.stream import Production


def ordered_pairs(pattern: Pattern) -> list[tuple[int, ...]]:
    """Of each two neighbours in a sequence the first component and the second."""
    return [one.components for one in pattern.where if one.is_order]


def first_ones(pattern: Pattern) -> list[int]:
    """The components that a candidate of the conjunction can begin with: those behind no other."""
    behind = {second for _, second in ordered_pairs(pattern)}
    return [index for index in range(len(pattern.components)) if index not in behind]


def is_in_order(pattern: Pattern, production: Production) -> bool:
    """Whether the events of each sequence stand in its order."""
    seqs = {bound.component: bound.placed.seq for bound in production}
    return all(seqs[first] < seqs[second] for first, second in ordered_pairs(pattern))
