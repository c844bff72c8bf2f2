"""The numbers of rows that the compiled search adds up as it takes them, for aggregates in conditions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow.compute as pc

from spark_pace.core.columns import GREATEST, NULL_ORDER, Ints
from spark_pace.core.match.row_patterns.match_so_far import FARTHEST, MOST_DIGITS
from spark_pace.core.match.row_patterns.rows import Rows
from spark_pace.core.plan.row_pattern import Summary
from spark_pace.core.ranks import value_orders
from spark_pace.core.summaries.column_sums import sums_of
from spark_pace.core.summaries.sums import ODD
from spark_pace.core.tables import bools

_NEAR = FARTHEST - 3  # digits at places nearer to 0 are rounded with those around them

Variables: TypeAlias = tuple[int, ...] | None


class FarApartError(Exception):
    """The numbers of a column have digits at too many places, or too far from 0."""


class Total(NamedTuple):
    """Where a sum is found; see the last columns of `SoFar.slots`."""

    first: int
    digits: int
    lowest: int
    odd: bool


def is_running(one: Summary) -> bool:
    """Tell whether the compiled search can compute an aggregate."""
    return one.function not in ("sum", "avg") or (one.of is not None and one.of.type in ("BIGINT", "DOUBLE"))


@dataclass
class RunningNumbers:
    """Sets of variables, and columns of numbers that are added up over their rows; each is made once."""

    rows: Rows
    variables: int
    _sets: list[int] = field(default_factory=list)
    _adding: list[tuple[int, int]] = field(default_factory=list)
    _numbers: list[Ints] = field(default_factory=list)
    _known: dict[tuple[object, ...], int] = field(default_factory=dict)
    _totals: dict[tuple[object, ...], Total] = field(default_factory=dict)

    @property
    def sets(self) -> Ints:
        """See `SoFar`, as of the next two."""
        return np.array(self._sets, np.int64)

    @property
    def adding(self) -> Ints:
        """See there."""
        return np.array(self._adding, np.int64).reshape(len(self._adding), 2)

    @property
    def numbers(self) -> Ints:
        """See there."""
        return np.array(self._numbers, np.int64).reshape(len(self._numbers), self.rows.rows)

    def set_of(self, variables: Variables) -> int:
        """The number of the set of some variables; of all, if it is None."""
        of = range(self.variables) if variables is None else variables
        mask = sum(1 << one for one in of)
        if mask not in self._sets:
            self._sets.append(mask)
        return self._sets.index(mask)

    def known(self, one: Summary) -> int:
        """The column that counts the values of an aggregate; -1 if all rows have one."""
        of = self.set_of(one.variables)
        if one.of is None or not self.rows.values(one.of).null_count:
            return -1
        key = ("known", of, one.of)
        if key not in self._known:
            self._known[key] = self._add(of, bools(pc.is_valid(self.rows.values(one.of))).astype(np.int64))
        return self._known[key]

    def extreme(self, one: Summary) -> int:
        """The column of which the least number tells the row of an extreme value."""
        assert one.of is not None
        key = (one.function, of := self.set_of(one.variables), one.of)
        if key not in self._known:
            (orders,) = value_orders([self.rows.values(one.of)])
            # of the greatest value the complement is least; no number is `GREATEST` but that of null
            numbers = ~orders if one.function == "max" else orders - 1
            numbers = np.where(orders == NULL_ORDER, GREATEST, numbers)
            self._known[key] = self._add(of, numbers, least=True)
        return self._known[key]

    def total(self, one: Summary) -> Total:
        """The columns of digits of the numbers of a sum.

        Raises:
            FarApartError: there are too many.
        """
        assert one.of is not None
        key = (of := self.set_of(one.variables), one.of)
        if key not in self._totals:
            self._totals[key] = self._total(of, one)
        return self._totals[key]

    def _total(self, of: int, one: Summary) -> Total:
        assert one.of is not None
        sums = sums_of(self.rows.values(one.of))
        odd = any(place in ODD for place in sums.places)
        places = [place for place in sums.places if place not in ODD] or [0]
        between = range(min(places), max(places) + 1)
        if len(between) > MOST_DIGITS or max(map(abs, places)) > _NEAR:
            raise FarApartError
        none, first = np.zeros(self.rows.rows, np.int64), len(self._numbers)
        for place in [*between, *(ODD if odd else ())]:
            self._add(of, sums.at(place) if place in sums.places else none)
        return Total(first, len(between), between[0], odd)

    def _add(self, of: int, numbers: Ints, *, least: bool = False) -> int:
        self._adding.append((of, int(least)))
        self._numbers.append(numbers)
        return len(self._numbers) - 1
