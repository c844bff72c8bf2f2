"""The rows that a search has taken so far, and the conditions that read them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from spark_pace.core.match.row_patterns.rows import Rows
from spark_pace.core.match.row_patterns.running import State, Step, result_of, step_of
from spark_pace.core.match.row_patterns.scalars import Scalar, as_values, scalar_function
from spark_pace.core.plan.row_pattern import Computed, MatchNumber, Navigation, RowPattern, Slot, Summary

Variables = tuple[int, ...] | None


class UnknownError(Exception):
    """It rests on rows that may still come."""


class Path:
    """The rows taken since a start, by the sets of variables that conditions name.

    Each set has the rows that its variables have, in order, and with them the states of its aggregates. To
    take a row adds to the ends of these lists, to go back removes from there.
    """

    def __init__(self, plan: RowPattern, rows: Rows) -> None:
        """Compute what conditions read of each row, for all rows."""
        self.number = 0  # of the match that is sought
        self.asked = 0  # the last row that had to be known since the start
        self._names = plan.variables
        self._begin, self._end, self._open = 0, 0, False
        self._taken: list[tuple[int, int]] = []  # rows, each with its variable
        self._rows_of: dict[Variables, list[int]] = {}
        self._running: dict[Summary, list[State]] = {}
        self._steps: dict[Summary, Step] = {}
        self._values: dict[Slot, list[Any]] = {}
        self._tests = [[self._test(part) for part in one.of_match] for one in plan.conditions]
        slots = list(_slots(plan))
        for slot in slots:
            self._add_slot(slot, rows)
        self._sets = [
            [rows_of for of, rows_of in self._rows_of.items() if of is None or variable in of]
            for variable in range(len(plan.variables))
        ]
        self._summaries = [
            [one for one in self._running if one.variables is None or variable in one.variables]
            for variable in range(len(plan.variables))
        ]

    def _add_slot(self, slot: Slot, rows: Rows) -> None:
        if isinstance(slot, MatchNumber):
            return
        self._rows_of.setdefault(slot.variables, [])
        if slot.of is not None:
            self._values[slot] = as_values(rows.values(slot.of), slot.of.type)
        if isinstance(slot, Summary):
            self._running[slot], self._steps[slot] = [], step_of(slot)

    def _test(self, part: Computed) -> tuple[Scalar, tuple[Slot, ...]]:
        return scalar_function(part.expr, [slot.type for slot in part.slots]), part.slots

    def enter(self, begin: int, end: int, *, is_open: bool, number: int) -> None:
        """Search in the partition with these rows from now on, for the match of this number."""
        self._begin, self._end, self._open = begin, end, is_open
        self.number = number

    def begin(self, start: int) -> None:
        """Forget all rows; the search begins at a row."""
        self.asked = start
        self.go_back(0)

    def need(self, row: int) -> None:
        """Note that a row had to be known.

        Raises:
            UnknownError: it may still come.
        """
        if row >= self._end and self._open:
            raise UnknownError
        self.asked = max(self.asked, row)

    def take(self, variable: int, row: int) -> bool:
        """Take a row for a variable if its condition holds then."""
        self._taken.append((row, variable))
        for rows_of in self._sets[variable]:
            rows_of.append(row)
        for one in self._summaries[variable]:
            self._running[one].append(self._next_state(one, row))
        if all(test([self._value(slot) for slot in slots]) for test, slots in self._tests[variable]):
            return True
        self.go_back(len(self._taken) - 1)
        return False

    def go_back(self, count: int) -> None:
        """Give rows back until so many are left."""
        while len(self._taken) > count:
            _, variable = self._taken.pop()
            for rows_of in self._sets[variable]:
                rows_of.pop()
            for one in self._summaries[variable]:
                self._running[one].pop()

    def _next_state(self, one: Summary, row: int) -> State:
        running = self._running[one]
        before = running[-1] if running else None
        value = 1 if one.of is None else self._values[one][row]
        if value is None:
            return before
        count, total = before or (0, None)
        return count + 1, self._steps[one](total, value)

    def _value(self, slot: Slot) -> Any:
        if isinstance(slot, MatchNumber):
            return self.number
        if isinstance(slot, Summary):
            running = self._running[slot]
            return result_of(slot, running[-1] if running else None)
        return self._navigated(slot)

    def _navigated(self, slot: Navigation) -> Any:
        rows_of = self._rows_of[slot.variables]
        place = slot.back if slot.first else len(rows_of) - 1 - slot.back
        if not 0 <= place < len(rows_of):
            return None
        row = rows_of[place]
        if slot.of is None:
            return self._names[self._taken[row - self._taken[0][0]][1]]
        at = row + slot.shift
        self.need(at)
        return self._values[slot][at] if self._begin <= at < self._end else None


def _slots(plan: RowPattern) -> Iterator[Slot]:
    for condition in plan.conditions:
        for part in condition.of_match:
            yield from dict.fromkeys(part.slots)
