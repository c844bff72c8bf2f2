"""The search for matches in Python, where no program can say what conditions read of the match so far.

It follows the same program as `spark_pace.core.match.row_patterns.compiled`, each start by itself, with a
limit. What has failed is remembered only where no such condition can come any more. Beside it are the rows
that a search has taken so far, the aggregates that go with them, and expressions on single values: each gives
what the kernels of `spark_pace.core.expr` give. TIMESTAMPs and DATEs are whole numbers here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Context, Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from spark_pace.core.expr import ARROW_TYPES, Call, Column, Expr, Literal, decimal_digits, evaluate
from spark_pace.core.match.row_patterns.compiled import BY_END, BY_EVENT
from spark_pace.core.match.row_patterns.program import AT_START, CHOOSE, DONE, TAKE, Program, settled
from spark_pace.core.match.row_patterns.rows import Rows, SlotColumns
from spark_pace.core.match.row_patterns.search import Found, next_start, require_few, steps_error
from spark_pace.core.plan.row_pattern import Computed, MatchNumber, Navigation, RowPattern, Slot, Summary
from spark_pace.core.tables import Ints

Values = Sequence[Any]
Scalar = Callable[[Values], Any]  # the values of the slots in, one value out

_LEAST, _ABOVE = -(2**63), 2**63
_AS_NUMBERS = {"TIMESTAMP": pa.int64(), "DATE": pa.int32()}


def as_values(column: pa.Array, kind: str) -> list[Any]:
    """The values of a column as they are computed with here."""
    return (column.cast(_AS_NUMBERS[kind]) if kind in _AS_NUMBERS else column).to_pylist()  # type: ignore[no-any-return]


def scalar_function(expr: Expr, types: Sequence[str]) -> Scalar:
    """The function that computes an expression over slots of these types."""
    if _is_plain(expr):
        return _function(expr)

    def by_columns(values: Values) -> Any:
        columns = [
            pa.array([value], _AS_NUMBERS.get(kind, ARROW_TYPES[kind])).cast(ARROW_TYPES[kind])
            for value, kind in zip(values, types, strict=True)
        ]
        return as_values(evaluate(expr, SlotColumns(1, columns)), expr.type)[0]

    return by_columns


def _is_plain(expr: Expr) -> bool:
    """Tell whether all of an expression has a function here."""
    if decimal_digits(expr.type):
        return False
    if not isinstance(expr, Call):
        return isinstance(expr, Column | Literal)
    widens = expr.function == "cast" and (expr.arguments[0].type, expr.type) == ("BIGINT", "DOUBLE")
    return (expr.function in _FUNCTIONS or widens) and all(map(_is_plain, expr.arguments))


def _function(expr: Expr) -> Scalar:
    if isinstance(expr, Column):
        place = int(expr.attribute[1:])
        return lambda values: values[place]
    if isinstance(expr, Literal):
        value = expr.value
        return lambda values: value
    assert isinstance(expr, Call)
    compute = _FUNCTIONS.get(expr.function, float)
    arguments = [_function(one) for one in expr.arguments]
    if expr.function in _OF_NULLS:
        return lambda values: compute(*[one(values) for one in arguments])

    def of_known(values: Values) -> Any:
        known = [one(values) for one in arguments]
        return None if None in known else compute(*known)

    return of_known


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def equal(left: Any, right: Any) -> bool:
    """``left = right``, where NaN equals NaN."""
    return bool(left == right) or (_is_nan(left) and _is_nan(right))


def less(left: Any, right: Any) -> bool:
    """``left < right``, where NaN is greater than every number."""
    if _is_nan(right):
        return not _is_nan(left)
    return bool(left < right)


def _bounded(value: Any) -> Any:
    return None if isinstance(value, int) and not _LEAST <= value < _ABOVE else value


def _and(*values: Any) -> Any:
    return False if False in values else None if None in values else True


def _or(*values: Any) -> Any:
    return True if True in values else None if None in values else False


def _case(*values: Any) -> Any:
    for place in range(0, len(values) - 1, 2):
        if values[place]:
            return values[place + 1]
    return values[-1]


def _in(sought: Any, *items: Any) -> Any:
    return _or(*(None if None in (sought, item) else equal(sought, item) for item in items))


_OF_NULLS = {"and", "or", "is_null", "case", "coalesce", "<=>", "in"}
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "and": _and,
    "or": _or,
    "is_null": lambda value: value is None,
    "case": _case,
    "coalesce": lambda *values: next((value for value in values if value is not None), None),
    "<=>": lambda left, right: left is right if None in (left, right) else equal(left, right),
    "in": _in,
    "not": lambda value: not value,
    "=": equal,
    "<>": lambda left, right: not equal(left, right),
    "<": less,
    ">": lambda left, right: less(right, left),
    "<=": lambda left, right: not less(right, left),
    ">=": lambda left, right: not less(left, right),
    "+": lambda left, right: _bounded(left + right),
    "-": lambda left, right: _bounded(left - right),
    "*": lambda left, right: _bounded(left * right),
    "/": lambda left, right: left / right if right else None,
    "negate": lambda value: _bounded(-value),
    "abs": lambda value: _bounded(abs(value)),
}


_SCALE = 1074  # every DOUBLE is a whole number of 2 ** -1074
_WIDE = Context(prec=80)

# a state is a count of values and what they come to; None before the first value
State = tuple[int, Any] | None
Step = Callable[[Any, Any], Any]  # what the values before come to, and the next value


def step_of(one: Summary) -> Step:
    """How the next value changes what the values come to."""
    if one.function == "count":
        return lambda before, value: None
    if one.function in ("min", "max"):
        return _least if one.function == "min" else _greatest
    assert one.of is not None
    if decimal_digits(one.of.type):
        return lambda before, value: _WIDE.add(before or Decimal(0), value)
    return _add_whole if one.of.type == "BIGINT" else _add


def result_of(one: Summary, state: State) -> Any:
    """The value of an aggregate."""
    if state is None:
        return 0 if one.function == "count" else None
    count, total = state
    if one.function == "count":
        return count
    if one.function in ("min", "max"):
        return total + 0.0 if isinstance(total, float) else total
    assert one.of is not None
    if one.of.type != "DOUBLE":
        if one.function == "avg":
            return float(total) / count
        if (digits := decimal_digits(one.type)) is not None:
            return total if total.adjusted() < digits[0] - digits[1] else None
        return total if _LEAST <= total < _ABOVE else None
    whole = _rounded(total)
    return whole / count if one.function == "avg" else whole


def _least(before: Any, value: Any) -> Any:
    return value if before is None or less(value, before) else before


def _greatest(before: Any, value: Any) -> Any:
    return value if before is None or less(before, value) else before


def _add_whole(before: Any, value: int) -> int:
    return value + (before or 0)


def _add(before: Any, value: float) -> tuple[int, frozenset[float]]:
    """The exact sum of the finite numbers, in 2 ** -1074, and which infinities and NaNs there are."""
    total, odd = before or (0, frozenset())
    if value - value != 0:  # NaN or infinite
        return total, odd | {value if value == value else 0.0}
    numerator, denominator = value.as_integer_ratio()
    return total + (numerator << (_SCALE + 1 - denominator.bit_length())), odd


def _rounded(total: tuple[int, frozenset[float]]) -> float:
    whole, odd = total
    if odd:
        return float("nan") if len(odd) > 1 or 0.0 in odd else next(iter(odd))
    try:
        return whole / (1 << _SCALE)
    except OverflowError:
        return float("inf") if whole > 0 else float("-inf")


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


@dataclass(frozen=True)
class Steps:
    """A program and what is known of each row, as lists of Python.

    Attributes:
        kind: see `Program`, as are the next three.
        follow: see `Program`.
        other: see `Program`.
        value: see `Program`.
        settled: of each instruction whether no condition that reads the match can follow it.
        holds: see `spark_pace.core.match.row_patterns.compiled.Input`, as are the next three.
        reach: see there.
        ahead: see there.
        apart: see there.
    """

    kind: list[int]
    follow: list[int]
    other: list[int]
    value: list[int]
    settled: list[bool]
    holds: list[int]
    reach: list[int]
    ahead: tuple[int, ...]
    apart: bool


def search_paths(plan: RowPattern, program: Program, rows: Rows, holds: Ints, reach: Ints) -> Found:
    """The matches of all partitions.

    Raises:
        ConfigError: the search from one row takes too many steps, or ``SKIP TO`` leads nowhere.
    """
    steps = _steps(plan, program, rows, (holds, reach))
    path, found, extent = Path(plan, rows), _Matches(), rows.extent
    bounds = rows.bounds[:-1], rows.bounds[1:]
    columns = (*bounds, extent.first, extent.start, extent.open, extent.matches)
    for begin, end, *of_partition in zip(*(column.tolist() for column in columns), strict=False):
        path.enter(begin, end, is_open=bool(of_partition[2]), number=of_partition[3] + 1)
        search = _Search(steps, path, set(), of_partition[0], end, of_partition[1])
        found.next.append(_search_partition(plan, search, found))
    return found.found()


def _steps(plan: RowPattern, program: Program, rows: Rows, known: tuple[Ints, Ints]) -> Steps:
    holds, reach = known
    return Steps(
        program.kind.tolist(),
        program.follow.tolist(),
        program.other.tolist(),
        program.value.tolist(),
        settled(plan, program),
        holds.tolist(),
        reach.tolist(),
        plan.ahead,
        rows.of_stream is not None,
    )


def _search_partition(plan: RowPattern, first: _Search, found: _Matches) -> int:
    """Add the matches of a partition; the row from which on they are not known yet."""
    known, path, row = _Known(first.end), first.path, first.start
    while row < first.end:
        search = _Search(first.steps, path, first.failed, first.first, first.end, row)
        path.begin(row)
        try:
            labels = _attempt(plan, search)
        except UnknownError:
            break
        known.add(search)
        if labels is None:
            row += 1
            continue
        found.add(row, labels, known)
        require_few(plan, len(found.labels))
        path.number += 1
        row += next_start(plan, labels)
    return row


@dataclass
class _Known:
    """Up to where rows of a partition had to be known so far; see `Found`."""

    end: int
    code: int = -1
    by: int = BY_EVENT

    def add(self, search: _Search) -> None:
        """Note what a search had to know."""
        asked, start = search.path.asked, search.start
        code, by = 2 * asked, BY_EVENT
        if asked >= self.end:
            code, by = 2 * self.end - 1, BY_END
        elif search.cut and 2 * search.steps.reach[start] - 1 > code:
            code, by = 2 * search.steps.reach[start] - 1, start
        if by == BY_END or (code >= self.code and self.by != BY_END):
            self.code, self.by = code, by


@dataclass
class _Matches:
    """The matches so far; see `Found`."""

    first: list[int] = field(default_factory=list)
    length: list[int] = field(default_factory=list)
    labels: list[int] = field(default_factory=list)
    code: list[int] = field(default_factory=list)
    by: list[int] = field(default_factory=list)
    next: list[int] = field(default_factory=list)

    def add(self, row: int, labels: list[int], known: _Known) -> None:
        """Add a match."""
        self.first.append(row)
        self.length.append(len(labels))
        self.labels += labels
        self.code.append(known.code)
        self.by.append(known.by)

    def found(self) -> Found:
        """All of them."""
        first, length, code, by, following = (
            np.array(column, np.int64) for column in (self.first, self.length, self.code, self.by, self.next)
        )
        return Found(first, length, np.array(self.labels, np.int32), code, by, following)


def _attempt(plan: RowPattern, search: _Search) -> list[int] | None:
    """The labels of the match that begins at the start of a search; None if there is none."""
    for _ in range(plan.most_steps):
        if search.steps.kind[search.at] == DONE:
            if search.labels:
                search.path.need(search.start + len(search.labels) - 1 + plan.beyond)
            return search.labels
        if not search.goes_on() and not search.goes_back():
            return None
    raise steps_error(plan)


@dataclass
class _Search:
    """The search from one row.

    Attributes:
        steps: the program.
        path: the rows taken so far, for conditions.
        failed: instructions with rows that have failed for any start.
        first: the first row of the partition; -1 if it is not there.
        end: the row behind its last one.
        start: the row.
        at: the next instruction.
        labels: the labels of the rows taken so far.
        ways: the ways that are left: an instruction, how many rows were taken and how many choices made.
        made: the choices made, each with its row.
        cut: whether a row was too late.
    """

    steps: Steps
    path: Path
    failed: set[tuple[int, int]]
    first: int
    end: int
    start: int
    at: int = 0
    labels: list[int] = field(default_factory=list)
    ways: list[tuple[int, int, int]] = field(default_factory=list)
    made: list[tuple[int, int]] = field(default_factory=list)
    cut: bool = False

    def goes_on(self) -> bool:
        """Follow the next instruction; False if it fails."""
        steps, at, row = self.steps, self.at, self.start + len(self.labels)
        kind = steps.kind[at]
        if kind == TAKE:
            if not self._takes(steps.value[at], row):
                return False
        elif kind == CHOOSE:
            if steps.settled[at] and (at, row) in self.failed:
                return False
            self.made.append((at, row))
            self.ways.append((steps.other[at], len(self.labels), len(self.made)))
        elif row != (self.first if kind == AT_START else self.end):
            return False
        self.at = steps.follow[at]
        return True

    def _takes(self, label: int, row: int) -> bool:
        steps, variable = self.steps, label >> 1
        if steps.reach and row >= steps.reach[self.start]:
            self.cut |= steps.apart or row < self.end
            return False
        self.path.need(row + steps.ahead[variable])
        if row >= self.end or not steps.holds[row] >> variable & 1 or not self.path.take(variable, row):
            return False
        self.labels.append(label)
        return True

    def goes_back(self) -> bool:
        """Go back to the last choice, and the other way; False if no way is left."""
        way, taken, kept = self.ways.pop() if self.ways else (-1, 0, 0)
        self.failed.update(pair for pair in self.made[kept:] if self.steps.settled[pair[0]])
        del self.made[kept:], self.labels[taken:]
        self.path.go_back(taken)
        self.at = way
        return way >= 0
