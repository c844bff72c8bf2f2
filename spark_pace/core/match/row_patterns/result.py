"""From a sorted table to the rows of the result, with the measures of all of them at once, on columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_pace.core.expr import ARROW_TYPES, decimal_digits, evaluate, evaluate_mask
from spark_pace.core.match.row_patterns.compiled import (
    AT_ROW,
    LABELS,
    NUMBER,
    PARTITION,
    ROW,
    TEST,
    Output,
)
from spark_pace.core.match.row_patterns.match_programs import so_far_of
from spark_pace.core.match.row_patterns.program import program_of
from spark_pace.core.match.row_patterns.rows import (
    Rows,
    SlotColumns,
    holding,
    partition_bounds,
    reaches,
    taken,
)
from spark_pace.core.match.row_patterns.search import Found, Known, search_compiled
from spark_pace.core.plan.row_pattern import (
    Computed,
    MatchNumber,
    Measure,
    Navigation,
    RowPattern,
    Slot,
    Summary,
    output_columns,
)
from spark_pace.core.ranks import expand, running
from spark_pace.core.summaries.distribution import extremes
from spark_pace.core.summaries.sums import sums_of
from spark_pace.core.tables import Bools, Ints, bools


@dataclass(frozen=True)
class Frames:
    """What measures of the rows of a result see. Rows of matches stand one behind the other, match by match.

    Attributes:
        plan: the plan.
        rows: the input.
        found: the matches.
        match: int64[o], the match of each row of the result.
        begin: int64[o], where the rows of that match begin.
        here: int64[o], the place behind the row at hand.
        end: int64[o], the place behind the last row of the match.
    """

    plan: RowPattern
    rows: Rows
    found: Found
    match: Ints
    begin: Ints
    here: Ints
    end: Ints

    def measure(self, one: Measure) -> pa.Array:
        """The values of a measure."""
        if one.stored is not None:
            (slot,) = one.value.slots
            assert isinstance(slot, Navigation)
            stored = self.rows.table.column(one.stored).combine_chunks()
            return taken(stored, *self._row(slot))
        slots = [self._slot(slot) for slot in one.value.slots]
        return evaluate(one.value.expr, SlotColumns(len(self.match), slots)).cast(one.type)

    def _slot(self, slot: Slot) -> pa.Array:
        if isinstance(slot, MatchNumber):
            return pa.array(self._numbers()[self.match])
        if isinstance(slot, Summary):
            return self._summary(slot)
        if slot.of is not None:
            return taken(self.rows.values(slot.of), *self._row(slot))
        place, known = self._place(slot)
        names = pa.array(self.plan.variables, pa.string())
        labels = self.found.labels if len(self.found.labels) else np.zeros(1, np.int32)
        return taken(names, labels[np.where(known, place, 0)] >> 1, known)

    def _numbers(self) -> Ints:
        """int64[m], the number of each match in its partition."""
        partition = np.searchsorted(self.rows.bounds, self.found.first, "right")
        first = np.searchsorted(partition, partition)
        return np.arange(len(partition)) - first + 1 + self.rows.extent.matches[partition - 1]

    def _member(self, variables: tuple[int, ...] | None) -> Bools:
        """bool[], which rows of matches are those of some variables."""
        if variables is None:
            return np.ones(len(self.found.labels), np.bool_)
        of = np.zeros(2 * len(self.plan.variables), np.bool_)
        of[[label for one in variables for label in (2 * one, 2 * one + 1)]] = True
        return of[self.found.labels]

    def _place(self, slot: Navigation) -> tuple[Ints, Bools]:
        """int64[o], the place of the row of a match that a slot counts off; and bool[o], whether there is."""
        member = self._member(slot.variables)
        places, count = np.flatnonzero(member), running(member)
        least, most = count[self.begin], count[self.end if slot.final else self.here]
        at = least + slot.back if slot.first else most - 1 - slot.back
        known = (least <= at) & (at < most)
        return places[np.where(known, at, 0)] if len(places) else np.zeros(len(at), np.int64), known

    def _row(self, slot: Navigation) -> tuple[Ints, Bools]:
        """int64[o], the row of the input that a slot reads; and bool[o], whether there is one."""
        place, known = self._place(slot)
        first = self.found.first[self.match]
        row = first + place - self.begin + slot.shift
        if slot.inside:
            return row, known & (row >= first) & (row < first + self.found.length[self.match])
        partition = np.searchsorted(self.rows.bounds, first, "right") - 1
        bounds = self.rows.bounds
        return row, known & (row >= bounds[partition]) & (row < bounds[partition + 1])

    def _rows_of_matches(self) -> Ints:
        """int64[], of each row of a match the row of the input."""
        _, row = expand(self.found.first, self.found.first + self.found.length)
        return row

    def _summary(self, slot: Summary) -> pa.Array:
        member = self._member(slot.variables)
        end = self.end if slot.final else self.here
        if slot.of is None:
            count = running(member)
            return pa.array(count[end] - count[self.begin])
        rows = self._rows_of_matches()
        values = self.rows.values(slot.of)
        if values.null_count:
            member = member & bools(pc.is_valid(values))[rows]
        count = running(member)
        kept = values.take(pa.array(rows[member]))
        return summary_of(slot, kept, count[self.begin], count[end])


def summary_of(one: Summary, values: pa.Array, start: Ints, end: Ints) -> pa.Array:
    """An aggregate of each range of values, `start` to the one before `end`; no value is null."""
    count = end - start
    if one.function == "count":
        return pa.array(count)
    if one.function in ("min", "max"):
        return extremes(values, start, end, least=one.function == "min")
    sums = sums_of(values).over(start, end)
    return sums.means(count) if one.function == "avg" else sums.totals(values.type, count)


def result_schema(plan: RowPattern, schema: pa.Schema) -> pa.Schema:
    """The schema of the result, for rows of this schema."""
    columns = []
    for name, one in output_columns(plan, tuple(schema.names)):
        column = name if one is None else one.stored
        columns.append((name, one.type if one is not None and column is None else schema.field(column).type))
    return pa.schema(columns)


def result_of(plan: RowPattern, table: pa.Table) -> pa.Table:
    """The rows of the result.

    Args:
        plan: the plan.
        table: the rows of each partition together, sorted as the plan says.

    Raises:
        ConfigError: a match cannot be skipped, or the search meets one of its limits.
    """
    rows = Rows(table, partition_bounds(table, plan.partition))
    return _rows_of_result(plan, rows, find(plan, rows))


def find(plan: RowPattern, rows: Rows) -> Found:
    """The matches."""
    return search(plan, rows, holding(plan, rows), reaches(plan, rows))


def search(plan: RowPattern, rows: Rows, holds: Ints, reach: Ints) -> Found:
    """The matches, where it is known which conditions hold and how far windows reach."""
    tests = [part for one in plan.conditions for part in one.of_match]
    known = Known(
        holds,
        reach,
        so_far_of(plan, rows) if tests else None,
        lambda output: _test(plan, rows, tests, output),
    )
    return search_compiled(plan, program_of(plan.pattern), rows, known)


def _test(plan: RowPattern, rows: Rows, tests: Sequence[Computed], output: Output) -> bool:
    """Tell whether the condition holds at which the search has stopped."""
    progress, test = output.progress, tests[output.progress[TEST]]
    start, first = progress[ROW], progress[LABELS]
    variables = output.labels[first : first + progress[AT_ROW] + 1 - start] >> 1
    bounds = rows.bounds[progress[PARTITION]], rows.bounds[progress[PARTITION] + 1]
    values = []
    for slot in test.slots:
        if isinstance(slot, MatchNumber):
            value = pa.array([rows.extent.matches[progress[PARTITION]] + progress[NUMBER] + 1])
        else:
            value = _value(plan, rows, slot, start, variables, bounds)
        values.append(value)
    return bool(evaluate_mask(test.expr, SlotColumns(1, values))[0])


_NEVER_TOO_WIDE = 28  # digits of DECIMALs of which ten billion come to a sum of 38 digits


def _value(
    plan: RowPattern,
    rows: Rows,
    slot: Navigation | Summary,
    start: int,
    variables: Ints,
    bounds: tuple[int, int],
) -> pa.Array:
    """The value of a slot, of a match so far that begins at `start`, in the partition with these bounds."""
    places = np.arange(len(variables))
    if slot.variables is not None:
        places = np.flatnonzero(np.isin(variables, slot.variables))
    if isinstance(slot, Summary):
        if slot.of is None:
            return pa.array([len(places)])
        values = rows.values(slot.of).take(pa.array(start + places)).drop_null()
        digits = decimal_digits(slot.of.type)
        if slot.function == "sum" and digits is not None and digits[0] <= _NEVER_TOO_WIDE:
            return pa.array([pc.sum(values).as_py()], ARROW_TYPES[slot.type])  # in a tenth of the time
        return summary_of(slot, values, np.array([0]), np.array([len(values)]))
    at = slot.back if slot.first else len(places) - 1 - slot.back
    if 0 <= at < len(places):
        if slot.of is None:
            return pa.array([plan.variables[variables[places[at]]]])
        row = start + int(places[at]) + slot.shift
        if bounds[0] <= row < bounds[1]:
            return rows.values(slot.of).slice(row, 1)
    return pa.nulls(1, ARROW_TYPES[slot.type])


def _rows_of_result(plan: RowPattern, rows: Rows, found: Found) -> pa.Table:
    ends = np.cumsum(found.length)
    begins = ends - found.length
    if plan.rows == "one":
        match, here, row = np.arange(len(ends)), ends, found.first
    else:
        match, here, row = _all_rows(plan, found, begins)
    frames = Frames(plan, rows, found, match, begins[match], here, ends[match])
    unmatched = _unmatched(rows.rows, found) if plan.rows == "unmatched" else np.zeros(0, np.int64)
    order = np.argsort(np.concatenate([found.first[match], unmatched]), kind="stable")
    at = pa.array(np.concatenate([row, unmatched])[order])
    columns = []
    for name, one in output_columns(plan, tuple(rows.table.column_names)):
        if one is None:
            columns.append(rows.table.column(name).take(at))
        else:
            values = frames.measure(one)
            nulls = pa.nulls(len(unmatched), values.type)
            columns.append(pa.chunked_array([values, nulls]).take(pa.array(order)))
    return pa.table(columns, result_schema(plan, rows.table.schema))


def _all_rows(plan: RowPattern, found: Found, begins: Ints) -> tuple[Ints, Ints, Ints]:
    """The match of each row of the result, the place behind it among the rows of matches, and its row.

    An empty match has one row unless these are omitted; its place is where its rows would begin.
    """
    owner = np.repeat(np.arange(len(begins)), found.length)
    place = np.flatnonzero(found.labels & 1 == 0)
    match, here = owner[place], place + 1
    row = found.first[match] + place - begins[match]
    if plan.rows == "omit":
        return match, here, row
    empty = np.flatnonzero(found.length == 0)
    order = np.argsort(np.concatenate([match, empty]), kind="stable")
    parts = ((match, empty), (here, begins[empty]), (row, found.first[empty]))
    merged = [np.concatenate(pair)[order] for pair in parts]
    return merged[0], merged[1], merged[2]


def _unmatched(rows: int, found: Found) -> Ints:
    """int64[], the rows that no match has taken, and at which no empty match was found."""
    change = np.zeros(rows + 1, np.int64)
    np.add.at(change, found.first, 1)
    np.add.at(change, found.first + np.maximum(found.length, 1), -1)
    return np.flatnonzero(np.cumsum(change)[:-1] == 0)
