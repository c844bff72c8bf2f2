"""From a sorted table to the rows of the result."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from spark_pace.core.columns import Ints
from spark_pace.core.match.row_patterns.backtracking import search_paths
from spark_pace.core.match.row_patterns.conditions import holding, reaches
from spark_pace.core.match.row_patterns.match_programs import so_far_of
from spark_pace.core.match.row_patterns.measures import Frames
from spark_pace.core.match.row_patterns.program import program_of
from spark_pace.core.match.row_patterns.rows import Rows, partition_bounds
from spark_pace.core.match.row_patterns.search import Found, Known, search_compiled
from spark_pace.core.plan.row_pattern import RowPattern, output_columns


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
    program = program_of(plan.pattern)
    so_far = None
    if any(one.of_match for one in plan.conditions):
        so_far = so_far_of(plan, rows)
        if so_far is None:
            return search_paths(plan, program, rows, holds, reach)
    return search_compiled(plan, program, rows, Known(holds, reach, so_far))


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
