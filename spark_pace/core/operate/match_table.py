"""Matches as a table: what operators hand to the merger.

Columns with "@" are for ordering and stay inside: ``@release_us, @phase`` (0: at an event, 1: directly behind all
events of that time), ``@tie0…`` (the releasing event's place among those of its time), ``@p0…`` (production set).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from spark_pace.core.columns import OFFSET, SOURCE, UTC_TIME, Ints, array
from spark_pace.core.match.found import Found
from spark_pace.core.match.release import Positions
from spark_pace.core.match.stream import Stream
from spark_pace.core.operate.emitted import emitted
from spark_pace.core.plan.plan import Plan, RulePlan

EVENTS_TYPE = pa.list_(
    pa.struct([
        ("component", pa.string()),
        ("seq", pa.int64()),
        ("event_time", UTC_TIME),
        ("source", pa.string()),
        ("offset", pa.int64()),
    ])
)  # fmt: skip
# The columns that every match has. The functions below fill all but `rule` and `out_seq`, which the merger fills.
# The partition columns and the fields of `emit` stand in front of `events`, and may not have these names.
FIXED_COLUMNS: dict[str, pa.DataType] = {
    "rule": pa.string(),
    "key": pa.string(),  # null without partition_by
    "out_seq": pa.int64(),
    "selection_id": pa.int64(),
    "seq": pa.int64(),
    "opened_at": UTC_TIME,
    "matched_at": UTC_TIME,
    "events": EVENTS_TYPE,
}


@dataclass(frozen=True)
class Labels:
    """What a match has from its selection.

    Attributes:
        selection_id: int64[m].
        opened_us: int64[m].
        release: where it may go out.
    """

    selection_id: Ints
    opened_us: Ints
    release: Positions


def pattern_matches(plan: Plan, rule: RulePlan, stream: Stream, found: Found, labels: Labels) -> pa.Table:
    """The table of the matches of a pattern."""
    columns = _head(plan, rule, stream, labels, found.first)
    columns["seq"] = pa.array(stream.seq[found.last])
    columns["matched_at"] = _utc(stream.time[found.last])
    lengths = np.diff(found.offsets)
    for place in range(int(lengths.max(initial=0)) if len(set(lengths.tolist())) == 1 else 0):
        columns[f"@p{place}"] = pa.array(stream.seq[found.members[found.offsets[:-1] + place]])
    columns |= emitted(rule.rule, stream, found)
    columns["events"] = _events(rule, stream, found)
    return pa.table(columns)


def operator_matches(
    plan: Plan, rule: RulePlan, stream: Stream, labels: Labels, last: Ints, matched_us: Ints, rows: pa.Table
) -> pa.Table:
    """The table of the rows that a Python operator has yielded; all arguments have one entry for each of `rows`."""
    columns = _head(plan, rule, stream, labels, last)
    columns["seq"] = pa.array(stream.seq[last])
    columns["matched_at"] = _utc(matched_us)
    columns["@p0"] = pa.array(np.arange(len(last)))
    columns |= {name: array(rows, name) for name in rows.column_names}
    offsets = pa.array(np.zeros(len(last) + 1, np.int32))
    columns["events"] = pa.ListArray.from_arrays(
        offsets, pa.array([], EVENTS_TYPE.value_type), type=EVENTS_TYPE
    )
    return pa.table(columns)


def _utc(times: Ints) -> pa.Array:
    return pa.array(times).view(UTC_TIME)


def _head(plan: Plan, rule: RulePlan, stream: Stream, labels: Labels, member: Ints) -> dict[str, pa.Array]:
    """Order, key, selection and partition columns; `member` is a row of each match."""
    columns = {"@release_us": pa.array(labels.release.time), "@phase": pa.array(labels.release.code & 1)}
    columns |= _ties(plan, rule, stream, labels.release)
    if rule.key_column is None:
        columns["key"] = pa.nulls(len(member), pa.string())
    else:
        columns["key"] = stream.attribute(rule.key_column).take(pa.array(member)).cast(pa.string())
    columns["selection_id"] = pa.array(labels.selection_id)
    columns["opened_at"] = _utc(labels.opened_us)
    for name in rule.rule.partition_by:
        columns[name] = stream.attribute(name).take(pa.array(member))
    return columns


def _ties(plan: Plan, rule: RulePlan, stream: Stream, release: Positions) -> dict[str, pa.Array]:
    """The place of the releasing event among those of its time; null behind them all."""
    at_event = release.code & 1 == 0
    rows = np.where(at_event, release.code // 2, 0)
    index = pa.array(rows, mask=~at_event)
    if rule.key_column is None:
        return {"@tie0": pa.array(stream.seq).take(index)}
    ties = {}
    for number, name in enumerate(plan.tie_columns):
        column = stream.attribute(name).take(index)
        ties[f"@tie{number}"] = column.cast(pa.string()) if name == SOURCE else column
    return ties


def _events(rule: RulePlan, stream: Stream, found: Found) -> pa.Array:
    """The production sets, each in stream order."""
    assert rule.rule.pattern is not None
    names = pa.array([component.name for component in rule.rule.pattern.components], pa.string())
    index = pa.array(found.members)
    events = pa.StructArray.from_arrays(
        [
            names.take(pa.array(found.roles)),
            pa.array(stream.seq[found.members]),
            _utc(stream.time[found.members]),
            array(stream.events, SOURCE).take(index).cast(pa.string()),
            array(stream.events, OFFSET).take(index),
        ],
        fields=list(EVENTS_TYPE.value_type),
    )
    return pa.ListArray.from_arrays(pa.array(found.offsets, pa.int32()), events, type=EVENTS_TYPE)
