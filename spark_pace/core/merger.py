"""The merger: puts the results of all operators into the order that one sequential operator would give.

Sources: semantics, section 5.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_pace.core.expr import ARROW_TYPES
from spark_pace.core.match.delay import is_awaited, waits_for_sure
from spark_pace.core.match.method import method_of
from spark_pace.core.match.release import NOTHING_WAITS, Waiting, come_to_wait
from spark_pace.core.operate.match_table import EVENTS_TYPE, FAILED_SCHEMA, FIXED_COLUMNS, Result, matched_us
from spark_pace.core.plan.members import names_of
from spark_pace.core.plan.plan import Plan, RulePlan
from spark_pace.core.plan.rule import Pattern, Rule, column_name
from spark_pace.core.plan.shape import shape_of
from spark_pace.core.ranks import in_order, running, sorted_rows
from spark_pace.core.tables import (
    MOST_COMPONENTS,
    NOTHING_US,
    UTC_TIME,
    array,
    boolean,
    numbers,
)

_FILLED_HERE = {"rule", "out_seq"}  # fixed columns that the merger fills; operators fill the others


@dataclass(frozen=True)
class Merged:
    """The output of a batch.

    Attributes:
        shown: the rules whose matches are the output.
        of_rules: the matches of each rule that has any, also of rules that others only read, sorted by
            out_seq; with the columns of `matches_schema` for this rule alone.
        failed: the selections on which a Python operator failed, as a table of `FAILED_SCHEMA`.
        next_out_seq: the number of the next match of each rule.
        waiting: how the matches that wait have changed, for the rules that others read.
    """

    shown: tuple[Rule, ...]
    of_rules: dict[str, pa.Table]
    failed: pa.Table
    next_out_seq: dict[str, int]
    waiting: Mapping[str, Waiting] = field(default_factory=dict)

    @cached_property
    def matches(self) -> pa.Table:
        """The matches with the columns of `matches_schema`, sorted by (rule, out_seq)."""
        schema = matches_schema(self.shown)
        names = sorted(rule.name for rule in self.shown if rule.name in self.of_rules)
        filled = [_filled(schema, self.of_rules[name]) for name in names if self.of_rules[name].num_rows]
        return pa.concat_tables(filled or [schema.empty_table()])

    def beside(self, other: Merged) -> Merged:
        """Add the output of other rules, which were numbered after these."""
        failed = _in_order(pa.concat_tables([self.failed, other.failed]))
        waiting = {**self.waiting, **other.waiting}
        return Merged(self.shown, self.of_rules | other.of_rules, failed, other.next_out_seq, waiting)


def matches_schema(rules: Iterable[Rule]) -> pa.Schema:
    """The columns of the matches of these rules: fixed columns, fields of `emit`, partition columns."""
    fixed = {name: kind for name, kind in FIXED_COLUMNS.items() if name != "events"}
    return pa.schema([*fixed.items(), *_own_fields(rules).items(), ("events", EVENTS_TYPE)])


def _own_fields(rules: Iterable[Rule]) -> dict[str, pa.DataType]:
    """The fields of `emit` and the partition columns of these rules."""
    fields: dict[str, pa.DataType] = {}
    for rule in rules:
        types = {field.name: field.type for field in rule.schema.fields}
        fields |= {field.name: _final(ARROW_TYPES[field.type]) for field in rule.emit}
        fields |= {column_name(name): _final(ARROW_TYPES[types[name]]) for name in rule.partition_by}
    return fields


def _final(kind: pa.DataType) -> pa.DataType:
    return UTC_TIME if pa.types.is_timestamp(kind) else kind


def merge(
    plan: Plan,
    results: Iterable[Result],
    next_out_seq: dict[str, int],
    waiting: Mapping[int, Sequence[Waiting]] | None = None,
) -> Merged:
    """Put a batch's matches in order and number them.

    Args:
        plan: the plan.
        results: the results of all operators of the batch, in any order.
        next_out_seq: the number of the next match of each rule; 0 for rules that are missing.
        waiting: what splitters tell of the matches that wait, by the rule's place in the plan; None: nothing.

    Returns:
        The output of the batch, which depends on these results and numbers only.
    """
    of_rules: dict[int, list[Result]] = {}
    for result in results:
        of_rules.setdefault(result.header.rule_index, []).append(result)
    following = dict(next_out_seq)
    tables, failed = dict[str, pa.Table](), [FAILED_SCHEMA.empty_table()]
    changes = {plan.rules[index].rule.name: [*parts] for index, parts in (waiting or {}).items()}
    for rule_index in sorted(of_rules, key=lambda index: plan.rules[index].rule.name):
        planned = plan.rules[rule_index]
        ordered, lifted = _ordered(planned, of_rules[rule_index])
        if is_awaited(planned):
            told = [lifted, *(result.waiting for result in of_rules[rule_index])]
            told.append(_gone_out(planned, ordered, of_rules[rule_index][0].header.passed_us))
            changes.setdefault(planned.rule.name, []).extend(told)
        base = following.get(planned.rule.name, 0)
        if not planned.rule.hands_on:  # its numbers only order events of one batch, and no rule reads them
            following[planned.rule.name] = base + ordered.num_rows
        tables[planned.rule.name] = _finished(planned, ordered, base)
        failed += [result.failed for result in of_rules[rule_index]]
    changed = {name: Waiting.sum(parts) for name, parts in changes.items()}
    return Merged(plan.shown, tables, _in_order(pa.concat_tables(failed)), following, changed)


def _gone_out(planned: RulePlan, matches: pa.Table, passed_us: int) -> Waiting:
    """The matches that have waited and go out now, as they wait no longer."""
    if not waits_for_sure(planned.rule):
        return NOTHING_WAITS
    times = matched_us(matches)
    return Waiting.change(times[:0], times[times < passed_us])


def _in_order(failed: pa.Table) -> pa.Table:
    return failed.sort_by([("rule", "ascending"), ("key", "ascending"), ("selection_id", "ascending")])


def _ordered(planned: RulePlan, results: list[Result]) -> tuple[pa.Table, Waiting]:
    """The matches of one rule in output order, and those that wait for other lanes."""
    results = sorted(results, key=lambda result: (result.header.bucket, result.header.number))
    lift = method_of(planned.rule).waits and planned.key_column is None
    tables, waiting = [result.matches for result in results], NOTHING_WAITS
    if lift:
        tables, waiting = _lifted(results, awaited=is_awaited(planned))
    filled = [table for table in tables if table.num_rows] or tables[:1]
    table = pa.concat_tables(filled, promote_options="default")
    if table.num_rows < 2:
        return table, waiting
    names = _sort_columns(planned, table.column_names)
    columns = {name: array(table, name) for name in names}
    if in_order(columns.values(), strictly=True):
        return table, waiting
    columns |= _production_sets(table["events"])
    pattern = planned.rule.pattern
    several = pattern is not None and (pattern.order != "sequence" or not shape_of(pattern).simple)
    if pattern is not None and several and not in_order(columns.values(), strictly=True):
        columns |= _whole_sets(pattern, table["events"])
    order = sorted_rows(columns)
    return (table if (order[1:] > order[:-1]).all() else table.take(pa.array(order))), waiting


def _lifted(results: list[Result], *, awaited: bool) -> tuple[list[pa.Table], Waiting]:
    """The matches of each lane, without those that still wait for selections of earlier lanes.

    If they are awaited, the second value has those that begin to wait so.
    """
    tables, waiting = [], list[Waiting]()
    base = NOTHING_US
    for result in results:
        matches, header = result.matches, result.header
        if not header.exact:
            time = np.maximum(numbers(matches, "@release_us"), base)
            out = time < header.frontier_us
            if awaited:
                waiting.append(come_to_wait(matched_us(matches), out, header.passed_us, header.frontier_us))
            now = (time >= header.passed_us) & out
            matches = matches if now.all() else matches.filter(boolean(now))
        tables.append(matches)
        base = max(base, result.resolved_us)
    return tables, Waiting.sum(waiting)


def _production_sets(events: pa.ChunkedArray) -> dict[str, pa.Array]:
    """The columns that order matches by their production sets, shorter ones first.

    They hold the first events of each match, as many as a candidate without groups can have. Matches of *all,
    selected* may have more, but no two of them share an event.
    """
    lengths = pc.list_value_length(events).to_numpy().astype(np.int64)
    start = np.cumsum(lengths) - lengths
    seq = pa.chunked_array([piece.flatten().field("seq") for piece in events.chunks]).combine_chunks()
    most = min(int(lengths.max(initial=0)), MOST_COMPONENTS)
    return {
        f"event {place}": seq.take(pa.array(start + place, mask=lengths <= place)) for place in range(most)
    }


def _whole_sets(pattern: Pattern, events: pa.ChunkedArray) -> dict[str, pa.Array]:
    """The columns that order matches with equal first events by all events, then by these events' components.

    Numbers whose bytes stand in this order are compared as bytes are.
    """
    names = pa.array([name for component in pattern.components for name in names_of(component)])
    lengths = pc.list_value_length(events).to_numpy().astype(np.int64)
    members = [piece.flatten() for piece in events.chunks]
    seq = pa.chunked_array([piece.field("seq") for piece in members]).to_numpy()
    components = pa.chunked_array([piece.field("component").cast(pa.string()) for piece in members])
    place = pc.index_in(components, value_set=names).to_numpy()
    return {
        name: pa.Array.from_buffers(
            pa.large_binary(),
            len(lengths),
            [None, pa.py_buffer(8 * running(lengths)), pa.py_buffer(numbers.astype(">i8"))],
        )
        for name, numbers in (("events", seq), ("components", place))
    }


def _sort_columns(planned: RulePlan, names: list[str]) -> list[str]:
    """The names of the columns that order a rule's matches before their production sets do."""
    if planned.key_column is None and planned.rule.merge == "selection":
        return ["selection_id", "seq"]
    ties = [name for name in names if name.startswith("@tie")]
    key = [] if planned.key_column is None else ["key"]
    seq = ["seq"] if planned.rule.merge == "selection" else []
    return ["@release_us", "@phase", *ties, *key, "selection_id", *seq]


def _finished(planned: RulePlan, ordered: pa.Table, base: int) -> pa.Table:
    """Number one rule's matches, which are in output order, and give them the rule's columns.

    Raises:
        ValueError: the operators gave a column too few or too many.
    """
    rows, schema = ordered.num_rows, matches_schema([planned.rule])
    given = {name: ordered.column(name) for name in ordered.column_names if not name.startswith("@")}
    if wrong := (set(schema.names) - _FILLED_HERE) ^ given.keys():
        must, got = "must have each of their columns and no other", ", ".join(sorted(wrong))
        raise ValueError(f"matches of {planned.rule.name} — {must}; got a difference in {got}")
    given["rule"] = pa.repeat(pa.scalar(planned.rule.name), rows)
    given["out_seq"] = pa.array(np.arange(base, base + rows))
    return pa.table([given[field.name].cast(field.type) for field in schema], schema=schema)


def _filled(schema: pa.Schema, matches: pa.Table) -> pa.Table:
    """Give one rule's matches the columns of several rules; columns of other rules are null."""
    columns = [
        matches.column(field.name)
        if field.name in matches.column_names
        else pa.nulls(matches.num_rows, field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)
