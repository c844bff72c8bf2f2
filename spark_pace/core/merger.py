"""The merger: all operators' results of a batch into the one order a sequential operator would have produced.

Sources: semantics, section 5.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from spark_pace.core.columns import NOTHING_US, UTC_TIME, array, numbers, sorted_rows
from spark_pace.core.expr import ARROW_TYPES
from spark_pace.core.match.release import must_wait
from spark_pace.core.operate.match_table import EVENTS_TYPE
from spark_pace.core.operate.operator import FAILED_SCHEMA, Result, decode_result
from spark_pace.core.plan.plan import Plan, RulePlan

_FIRST_COLUMNS = [
    ("rule", pa.string()), ("key", pa.string()), ("out_seq", pa.int64()), ("selection_id", pa.int64()),
    ("seq", pa.int64()), ("opened_at", UTC_TIME), ("matched_at", UTC_TIME),
]  # fmt: skip


@dataclass(frozen=True)
class Merged:
    """A batch's output.

    Attributes:
        matches: columns of `matches_schema`, sorted by (rule, out_seq).
        failed: selections a Python operator failed on: rule, key, selection_id, reason.
        next_out_seq: for each rule the number of its next match.
    """

    matches: pa.Table
    failed: pa.Table
    next_out_seq: dict[str, int]


def matches_schema(plan: Plan) -> pa.Schema:
    """The columns of the matches of all rules: every emit field and partition column, null where a rule has none."""
    return pa.schema([*_FIRST_COLUMNS, *_own_fields(plan.rules).items(), ("events", EVENTS_TYPE)])


def _own_fields(rules: Iterable[RulePlan]) -> dict[str, pa.DataType]:
    fields: dict[str, pa.DataType] = {}
    for plan in rules:
        types = {field.name: field.type for field in plan.rule.schema.fields}
        fields |= {field.name: _final(ARROW_TYPES[field.type]) for field in plan.rule.emit}
        fields |= {name: _final(ARROW_TYPES[types[name]]) for name in plan.rule.partition_by}
    return fields


def _final(kind: pa.DataType) -> pa.DataType:
    return UTC_TIME if pa.types.is_timestamp(kind) else kind


def merge(plan: Plan, parcels: Iterable[bytes | memoryview], next_out_seq: dict[str, int]) -> Merged:
    """Put a batch's matches in order and number them.

    Args:
        plan: the plan.
        parcels: the results of all operators of the batch, in any order.
        next_out_seq: for each rule the number of its next match; 0 where it has none.

    Returns:
        The batch's output. The same parcels and numbers give the same output.
    """
    results: dict[int, list[Result]] = {}
    for parcel in parcels:
        result = decode_result(parcel)
        results.setdefault(result.header.rule_index, []).append(result)
    numbers_ = dict(next_out_seq)
    schema = matches_schema(plan)
    tables, failed = [schema.empty_table()], [FAILED_SCHEMA.empty_table()]
    for index in sorted(results, key=lambda index: plan.rules[index].rule.name):
        rule = plan.rules[index]
        ordered = _ordered(rule, results[index])
        base = numbers_.get(rule.rule.name, 0)
        numbers_[rule.rule.name] = base + ordered.num_rows
        tables.append(_finished(rule, ordered, base, schema))
        failed += [result.failed for result in results[index]]
    return Merged(pa.concat_tables(tables).combine_chunks(), _in_order(pa.concat_tables(failed)), numbers_)


def _in_order(failed: pa.Table) -> pa.Table:
    return failed.sort_by([("rule", "ascending"), ("key", "ascending"), ("selection_id", "ascending")])


def _ordered(rule: RulePlan, results: list[Result]) -> pa.Table:
    """One rule's matches in output order."""
    results = sorted(results, key=lambda result: (result.header.bucket, result.header.number))
    lift = must_wait(rule.rule) and rule.key_column is None
    tables = _lifted(results) if lift else [result.matches for result in results]
    table = pa.concat_tables(tables, promote_options="default")
    if not table.num_rows:
        return table
    names = _sort_columns(rule, table.column_names)
    return table.take(pa.array(sorted_rows({name: array(table, name) for name in names})))


def _lifted(results: list[Result]) -> list[pa.Table]:
    """Lanes after one another: a match also waits for the selections of the lanes before its own."""
    tables = []
    base = NOTHING_US
    for result in results:
        matches, header = result.matches, result.header
        if not header.exact:
            time = np.maximum(numbers(matches, "@release_us"), base)
            now = (time >= header.passed_us) & (time < header.frontier_us)
            matches = matches.filter(pa.array(now))
        tables.append(matches)
        base = max(base, result.resolved_us)
    return tables


def _sort_columns(rule: RulePlan, names: list[str]) -> list[str]:
    """What orders a rule's matches; production sets (``@p``) last, a shorter one first."""
    members = [name for name in names if name.startswith("@p") and name[2:].isdigit()]
    if rule.key_column is None and rule.rule.merge == "selection":
        return ["selection_id", "seq", *members]
    ties = [name for name in names if name.startswith("@tie")]
    key = [] if rule.key_column is None else ["key"]
    seq = ["seq"] if rule.rule.merge == "selection" else []
    return ["@release_us", "@phase", *ties, *key, "selection_id", *seq, *members]


def _finished(rule: RulePlan, ordered: pa.Table, base: int, schema: pa.Schema) -> pa.Table:
    rows = ordered.num_rows
    given = {
        "rule": pa.repeat(pa.scalar(rule.rule.name), rows),
        "out_seq": pa.array(np.arange(base, base + rows)),
    }
    columns = []
    for field in schema:
        if field.name in given:
            columns.append(given[field.name])
        elif field.name in ordered.column_names:
            column = ordered.column(field.name)
            columns.append(column if column.type == field.type else column.cast(field.type))
        else:
            columns.append(pa.nulls(rows, field.type))
    return pa.table(columns, schema=schema)
