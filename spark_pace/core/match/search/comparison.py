"""Which conditions compare two components, and how: by integers that compare as the values do in SQL.

With them stand the levels of a search, the rows among which the next event of a candidate is sought, and the
choice of the least or the greatest production set.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from typing import Any, TypeAlias, TypeGuard

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from spark_pace.core.expr import (
    Aggregate,
    Call,
    Column,
    EventColumns,
    Expr,
    Previous,
    evaluate,
    of_component,
    walk,
)
from spark_pace.core.match.compiled.operations import EQUAL, GREATER, LESS
from spark_pace.core.match.stream import Stream
from spark_pace.core.plan.rule import Conjunct, Pattern
from spark_pace.core.plan.shape import places_of, shape_of
from spark_pace.core.ranks import expand, segments_of, value_codes, value_orders
from spark_pace.core.tables import NULL_ORDER, Bools, Ints

ACCEPTS = {
    "<": LESS,
    "<=": LESS | EQUAL,
    "=": EQUAL,
    ">=": GREATER | EQUAL,
    ">": GREATER,
    "<>": LESS | GREATER,
}
_WRITTEN = {accepts: function for function, accepts in ACCEPTS.items()}
_COMPARE: dict[int, Callable[[Any, Any], Any]] = {
    LESS: np.less,
    LESS | EQUAL: np.less_equal,
    EQUAL: np.equal,
    GREATER | EQUAL: np.greater_equal,
    GREATER: np.greater,
    LESS | GREATER: np.not_equal,
}


@dataclass(frozen=True)
class Comparison:
    """A comparison between the rows of two components of one stream of n rows.

    Attributes:
        earlier: the index of the component that comes first.
        later: the index of the other one.
        earlier_ranks: int64[n], what the comparison sees of each row as the earlier component. Those of an
            equality are the numbers from 0 on. `NULL_ORDER` for null, for which no comparison holds.
        later_ranks: int64[n], the same as the later one.
        accepts: which orders of the earlier rank to the later one hold: the sum of LESS, EQUAL and GREATER.
    """

    earlier: int
    later: int
    earlier_ranks: Ints
    later_ranks: Ints
    accepts: int

    def holds(self, matrix: Ints) -> Bools:
        """bool[m], for which candidates (int64[m, k]) the comparison holds."""
        left = self.earlier_ranks[matrix[:, self.earlier]]
        right = self.later_ranks[matrix[:, self.later]]
        compared: Bools = _COMPARE[self.accepts](left, right)
        not_null: Bools = (left != NULL_ORDER) & (right != NULL_ORDER)
        return compared & not_null

    def turned(self) -> Comparison:
        """Turn the comparison round, as if the later component came first."""
        ranks = (self.later_ranks, self.earlier_ranks)
        return Comparison(self.later, self.earlier, *ranks, _turned(self.accepts))

    def placed(self, places: Sequence[int]) -> Comparison:
        """Make this comparison of components that have other indices, `places`."""
        earlier, later = places[self.earlier], places[self.later]
        moved = replace(self, earlier=earlier, later=later)
        return moved if earlier < later else moved.turned()

    def may_hold(self, earlier: Ints, later: Ints) -> Bools:
        """bool[m], for which of m rows of the earlier component it holds with some row of the later one."""
        left, right = self.earlier_ranks[earlier], self.later_ranks[later]
        right = right[right != NULL_ORDER]
        if not len(right):
            return np.zeros(len(left), np.bool_)
        holds: Bools = np.isin(left, right) if self.accepts == EQUAL else np.zeros(len(left), np.bool_)
        if self.accepts & LESS:
            holds |= left <= right.max() if self.accepts & EQUAL else left < right.max()
        if self.accepts & GREATER:
            holds |= left >= right.min() if self.accepts & EQUAL else left > right.min()
        holds &= left != NULL_ORDER
        return holds


def is_comparison(expr: Expr, components: Mapping[str | None, int]) -> bool:
    """Tell whether a condition is a comparison of two components.

    Args:
        expr: the condition.
        components: the index of each component, by name.
    """
    if not isinstance(expr, Call) or expr.function not in ACCEPTS:
        return False
    left, right = expr.arguments
    if any(isinstance(node, Aggregate) for node in walk(expr)):
        return False
    sides = [components_of(side, components) for side in expr.arguments]
    one_each = len(sides[0]) == len(sides[1]) == 1 and sides[0] != sides[1]
    return one_each and left.type == right.type != "NULL"


def comparison_of(expr: Expr, components: Mapping[str | None, int], stream: Stream) -> Comparison:
    """The comparison of two components that a condition is, over the rows of a stream."""
    assert isinstance(expr, Call)
    sides = [(min(components_of(side, components)), of_component(side, None)) for side in expr.arguments]
    events = EventColumns(stream.events)
    accepts = ACCEPTS[expr.function]
    ranks_of = _numbered if accepts == EQUAL else value_orders
    if sides[0][1] == sides[1][1]:
        ranks = ranks_of([evaluate(sides[0][1], events)]) * 2
    else:
        ranks = ranks_of([evaluate(side, events) for _, side in sides])
    if sides[0][0] < sides[1][0]:
        return Comparison(sides[0][0], sides[1][0], ranks[0], ranks[1], accepts)
    return Comparison(sides[1][0], sides[0][0], ranks[1], ranks[0], _turned(accepts))


def _numbered(columns: list[pa.Array]) -> list[Ints]:
    """For each column of one type a number of each value, from 0 on; `NULL_ORDER` for null."""
    codes = value_codes(pa.concat_arrays(columns))
    codes = np.where(codes < 0, NULL_ORDER, codes)
    return np.split(codes, np.cumsum([len(column) for column in columns])[:-1])


@lru_cache(maxsize=4096)
def implied(pattern: Pattern) -> tuple[Conjunct, ...]:
    """What comparisons in a chain say of two components more: ``a.x < c.x`` if a.x < b.x and b.x = c.x."""
    steps = len(shape_of(pattern).anchors)
    places = {name: place for name, place in places_of(pattern).items() if place < steps}  # not negated ones
    says: dict[tuple[Expr, Expr], int] = {}  # of two sides that the first is less, equal, or either
    for one in pattern.where:
        if is_comparison(one.expr, places) and isinstance(one.expr, Call) and one.expr.function != "<>":
            left, right = one.expr.arguments
            accepts = ACCEPTS[one.expr.function]
            if not accepts & GREATER:
                says.setdefault((left, right), accepts)
            if not accepts & LESS:
                says.setdefault((right, left), _turned(accepts))
    stated = [{*pair} for pair in says]
    sides = list(dict.fromkeys(side for pair in says for side in pair))
    for middle, left, right in product(sides, repeat=3):
        if left != right and (left, middle) in says and (middle, right) in says:
            both = says[left, middle], says[middle, right]
            follows = EQUAL if both == (EQUAL, EQUAL) else (both[0] & both[1] & EQUAL) | LESS
            says[left, right] = says.get((left, right), follows) & follows or follows
    found = []
    for (left, right), accepts in says.items():
        two = (*components_of(left, places), *components_of(right, places))
        if {left, right} not in stated and two[0] != two[1]:
            comparison = Call(_WRITTEN[accepts], (left, right), "BOOLEAN")
            found.append(Conjunct(comparison, (min(two), max(two))))
            stated.append({left, right})
    return tuple(found)


def is_equality(expr: Expr, components: Mapping[str | None, int]) -> TypeGuard[Call]:
    """Tell whether a condition says that two components are equal; see `is_comparison`."""
    return is_comparison(expr, components) and isinstance(expr, Call) and expr.function == "="


def _turned(accepts: int) -> int:
    """What the comparison accepts when its sides change places."""
    return accepts & EQUAL | LESS * bool(accepts & GREATER) | GREATER * bool(accepts & LESS)


def components_of(expr: Expr, components: Mapping[str | None, int]) -> set[int]:
    """The components that an expression names; columns of other names are the same for all events."""
    named = (node.component for node in walk(expr) if isinstance(node, Column | Previous))
    return {components[name] for name in named if name in components}


@dataclass(frozen=True)
class Level:
    """What may be taken at one level of a search, given the rows of the levels before.

    Attributes:
        pool: int64[p], the rows of the level's component, in the order of their keys.
        keys: int64[p], ascending: ``rank * rows + row`` of each row; the rank is 0 without an equality.
        equality: the comparison by which rows are looked up, None where it is by their place alone.
        comparisons: the other comparisons that are decided at this level.
        others: what else is decided there.
        bound: whether what stands between the rows is tested as well.
    """

    pool: Ints
    keys: Ints
    equality: Comparison | None
    comparisons: list[Comparison]
    others: list[Expr]
    bound: bool

    @property
    def looked_up(self) -> bool:
        """True if all that is decided at this level is looked up."""
        return not self.comparisons and not self.others and not self.bound


# m production sets. offsets: int64[m + 1], set i has the events offsets[i]:offsets[i + 1]; members: int64[k],
# the rows of the events, ascending in each set; roles: int8[k], the components that they stand for
Sets: TypeAlias = tuple[Ints, Ints, npt.NDArray[np.int8]]


def best(sets: Sets, owner: Ints, *, backwards: bool) -> Ints:
    """The best production set of each owner.

    In each round the sets of an owner are compared in pairs, and the better one of each pair goes on.

    Args:
        sets: m production sets.
        owner: int64[m], the number of each set's owner.
        backwards: whether the best is the greatest, compared from the last event back; else it is the least,
            compared from the first event on. See semantics, sections 1 and 4.

    Returns:
        int64[k], the index of one set for each owner, in the order of the owners.
    """
    left = np.argsort(owner, kind="stable")
    while True:
        starts = segments_of(owner[left])
        if len(starts) == len(left):
            return left
        lengths = np.diff(np.append(starts, len(left)))
        place = np.arange(len(left)) - np.repeat(starts, lengths)
        first = np.flatnonzero(place % 2 == 0)
        paired = place[first] + 1 < np.repeat(lengths, lengths)[first]
        one, other = left[first], left[np.minimum(first + 1, len(left) - 1)]
        keeps = ~paired
        keeps[paired] = _is_better(sets, one[paired], other[paired], backwards=backwards)
        left = np.where(keeps, one, other)


def _is_better(sets: Sets, one: Ints, other: Ints, *, backwards: bool) -> Bools:
    offsets, members, roles = sets
    order = _order(offsets, members, one, other, backwards=backwards)
    equal = np.flatnonzero(order == 0)
    order[equal] = _order(offsets, roles, one[equal], other[equal], backwards=backwards)
    return order > 0 if backwards else order < 0


def _order(offsets: Ints, values: npt.NDArray[Any], one: Ints, other: Ints, *, backwards: bool) -> Ints:
    """int64[p]: -1, 0 or 1 where set `one` is less than, equal to or greater than `other`, by `values`."""
    sizes = offsets[one + 1] - offsets[one], offsets[other + 1] - offsets[other]
    common = np.minimum(*sizes)
    pair, place = expand(np.zeros(len(one), np.int64), common)
    if backwards:
        left, right = offsets[one + 1][pair] - 1 - place, offsets[other + 1][pair] - 1 - place
    else:
        left, right = offsets[one][pair] + place, offsets[other][pair] + place
    order = np.sign(sizes[0] - sizes[1])
    differ = np.flatnonzero(values[left] != values[right])
    pairs, at = np.unique(pair[differ], return_index=True)
    differ = differ[at]
    order[pairs] = np.where(values[left[differ]] > values[right[differ]], 1, -1)
    return order
